// Runs a program (program_abi.h). Slots are those of the whole program: what a body reads of the
// frames around it is simply there, and a body that runs again writes its slots anew. Bodies nest
// as deep as the compiler lets them; nothing here recurses deeper than that.
#include "tenon/program_abi.h"

#include "runtime/values/border.h"
#include "runtime/values/places.h"
#include "runtime/values/steps.h"
#include "tenon/kernel_abi.h"

extern "C" __attribute__((visibility("hidden"))) const uint32_t tn_blob_program[];

namespace tenon::runtime {
namespace {

int32_t MoveStep(const StepArgs& args) {
  args.out[0] = std::move(args.in[0]);
  return 0;
}
int32_t NoneStep(const StepArgs& args) {
  args.out[0] = Value();
  return 0;
}

int32_t FailStep(const StepArgs& args) {
  Text said{};
  if (args.strings->Get(args.numbers[0], &said) != 0) return -1;
  return FailWith("ValueError", "%.*s", static_cast<int>(said.size), said.data);
}

constexpr StepFn kSteps[] = {nullptr,          MoveStep,        nullptr,
                             nullptr,          nullptr,         MakeSequenceStep,
                             AtStep,           InsertStep,      EraseStep,
                             LengthStep,       SplitStep,       JoinStep,
                             NoneStep,         HasStep,         GetStep,
                             StringConcatStep, StringSplitStep, StringNormalizeStep,
                             RegexStep,        ToStringStep,    FromStringStep,
                             StringRanksStep,  ZipMapStep,      MapRowStep,
                             MapValuesStep,    nullptr,         FailStep,
                             nullptr};
static_assert(sizeof kSteps / sizeof kSteps[0] == TN_STEP_COUNT);

/// A list of a step's words.
struct Numbers {
  const int32_t* data;
  int32_t size;
  static Numbers Read(Words* w) {
    const auto size = static_cast<int32_t>(w->Next());
    const Numbers out{reinterpret_cast<const int32_t*>(w->at), size};
    w->at += size;
    return out;
  }
};

/// A body; `frame` is moved behind it by who runs it.
struct Body {
  Numbers inputs, outputs;
  Words frame;
};

/// One call. Keeps: slots hold what is live; whatever fails, they and all lists give back what they
/// hold.
class Run {
 public:
  explicit Run(const Places* places) : home_(places) {}
  ~Run() {
    for (tn_ffi_any& slot : slots_) Value::Take(slot);
  }

  int32_t operator()(const tn_ffi_any* args, int32_t n, tn_ffi_any* result) {
    Words w{tn_blob_program};
    if (w.Next() != TN_PROGRAM_MAGIC)
      return Fail("RuntimeError", "the library's program is damaged");
    const auto slots = static_cast<int64_t>(w.Next());
    if (!slots_.Resize(slots)) return OutOfMemory();
    const Numbers lengths = Numbers::Read(&w);
    const auto inputs = static_cast<int32_t>(w.Next());
    if (n != inputs)
      return FailWith("TypeError",
                      "Expected %d arguments but got %d: the sizes of outputs depend on values, so "
                      "that the call makes them",
                      inputs, n);
    Words head = w;
    for (int32_t i = 0; i < n; ++i) {
      ++head.at;
      const Text name = ReadText(&head);
      SkipType(&head);
      if (home_.Find(args[i]) != 0) return FailAbout(name);
    }
    Words tail = SkipFrame(head);
    if (AddStrings(lengths, tail) != 0) return -1;
    for (int32_t i = 0; i < n; ++i) {
      const auto slot = static_cast<int32_t>(w.Next());
      const Text name = ReadText(&w);
      Value given = Value::Share(args[i]), value;
      // What is no tensor by itself is copied, which is done on the host.
      if (*w.at != TN_TYPE_TENSOR && home_.ToHost(&given) != 0) return -1;
      if (Enter(given.any(), &w, &strings_, false, &value) != 0) return FailAbout(name);
      Set(slot, std::move(value));
    }
    if (RunFrame(&w) != 0) return -1;
    return Return(&w, args, n, result);
  }

 private:
  // The thread's error, with the argument that it is about.
  static int32_t FailAbout(Text name) {
    const char* kind = "";
    const char* message = LastError(&kind);
    constexpr int64_t kMostShown = 100;
    return FailWith(kind, "argument `%.*s`: %s",
                    static_cast<int>(name.size < kMostShown ? name.size : kMostShown), name.data,
                    message);
  }

  // The number in a slot.
  int32_t Number(int32_t slot, const char* what, int64_t* out) const {
    Value value = Get(slot);
    return home_.ToHost(&value) != 0 ? -1 : ReadNumber(value, what, out);
  }

  int32_t BringToHost(List<tn_ffi_any>* items) const {
    int32_t status = 0;
    for (int64_t i = 0; status == 0 && i < items->size(); ++i) {
      Value item = Value::Take((*items)[i]);
      status = home_.ToHost(&item);
      (*items)[i] = item.Release();
    }
    return status;
  }

  // Results are on the device, but for those with strings in them.
  int32_t BringToLeave(Words type, Value* value) const {
    uint32_t kind = type.Next();
    while (kind == TN_TYPE_SEQUENCE || kind == TN_TYPE_OPTIONAL) kind = type.Next();
    return kind == TN_TYPE_TENSOR ? home_.ToDevice(value) : home_.ToHost(value);
  }

  static Text ReadText(Words* w) {
    const auto size = static_cast<int64_t>(w->Next());
    const Text text = {reinterpret_cast<const char*>(w->at), size};
    w->at += (size + 3) / 4;
    return text;
  }
  static Body ReadBody(Words* w) {
    Body body{Numbers::Read(w), Numbers::Read(w), *w};
    *w = SkipFrame(*w);
    return body;
  }
  static Words SkipFrame(Words w) {
    for (uint32_t steps = w.Next(); steps > 0; --steps) {
      w.Next();
      const uint32_t words = w.Next();
      w.at += words;
    }
    return w;
  }

  // The program's strings lie behind its outputs.
  int32_t AddStrings(const Numbers& lengths, Words tail) {
    for (uint32_t outputs = tail.Next(); outputs > 0; --outputs) {
      tail.Next();
      SkipType(&tail);
    }
    const auto* bytes = reinterpret_cast<const char*>(tail.at);
    for (int32_t i = 0; i < lengths.size; ++i) {
      int64_t number = 0;
      if (strings_.Add({bytes, lengths.data[i]}, true, &number) != 0) return -1;
      bytes += lengths.data[i];
    }
    return 0;
  }

  void Set(int32_t slot, Value value) {
    if (slot < 0) return;
    Value old = Value::Take(slots_[slot]);
    slots_[slot] = value.Release();
  }
  Value Get(int32_t slot) const { return slot < 0 ? Value() : Value::Share(slots_[slot]); }

  int32_t RunFrame(Words* w) {
    for (uint32_t steps = w->Next(); steps > 0; --steps) {
      const auto operation = static_cast<int32_t>(w->Next());
      const uint32_t words = w->Next();
      Words step = *w;
      w->at += words;
      const Numbers in = Numbers::Read(&step), out = Numbers::Read(&step);
      const Numbers numbers = Numbers::Read(&step);
      Body bodies[2];
      const bool by_shape = operation == TN_STEP_BY_RANK || operation == TN_STEP_BY_LENGTH;
      const uint32_t count = by_shape ? 0 : step.Next();
      for (uint32_t b = 0; b < count; ++b) bodies[b] = ReadBody(&step);
      int32_t status = 0;
      switch (operation) {
        case TN_STEP_BY_RANK:
        case TN_STEP_BY_LENGTH: status = RunByShape(operation, in, out, numbers, step); break;
        case TN_STEP_PART: status = CallPart(numbers.data[0], in, out); break;
        case TN_STEP_IF: status = RunIf(in, out, bodies); break;
        case TN_STEP_LOOP: status = RunLoop(in, out, numbers, bodies[0]); break;
        case TN_STEP_MAP: status = RunMap(in, out, numbers, bodies[0]); break;
        default: status = Simple(operation, in, out, numbers);
      }
      if (status != 0) return status;
    }
    return 0;
  }

  int32_t Simple(int32_t operation, const Numbers& in, const Numbers& out, const Numbers& numbers) {
    constexpr int32_t kMostOutputs = 4;
    if (operation < 0 || operation >= TN_STEP_COUNT || out.size > kMostOutputs)
      return Fail("RuntimeError", "the library's program is damaged");
    auto* inputs = static_cast<Value*>(calloc(static_cast<size_t>(in.size) + 1, sizeof(Value)));
    if (!inputs) return OutOfMemory();
    for (int32_t i = 0; i < in.size; ++i) new (&inputs[i]) Value(Get(in.data[i]));
    Value results[kMostOutputs];
    int32_t status = 0;
    const uint32_t read = tn_step_reads(operation);
    for (int32_t i = 0; status == 0 && i < in.size; ++i) {
      if ((read >> (i < 2 ? i : 2) & 1) != 0) status = home_.ToHost(&inputs[i]);
    }
    if (status == 0)
      status = kSteps[operation](
          {inputs, in.size, results, out.size, numbers.data, numbers.size, &strings_});
    for (int32_t i = 0; i < in.size; ++i) inputs[i].~Value();
    free(inputs);
    for (int32_t i = 0; status == 0 && i < out.size; ++i) Set(out.data[i], std::move(results[i]));
    return status;
  }

  // The part's results are its own: one, or an array of them.
  int32_t CallPart(int32_t part, const Numbers& in, const Numbers& out) {
    Collected args;
    if (!args.items.Reserve(in.size + 1)) return OutOfMemory();
    for (int32_t i = 0; i < in.size; ++i) {
      Value value = Get(in.data[i]);
      if (home_.ToDevice(&value) != 0) return -1;
      args.items.Append(value.Release());
    }
    tn_ffi_any result = {TN_FFI_NONE, 0, {0}};
    if (tn_program_part(part, args.items.data(), in.size, &result) != 0) return -1;
    Value made = Value::Take(result);
    if (out.size == 1) {
      Set(out.data[0], std::move(made));
      return 0;
    }
    const tn_ffi_array* all = made.array();
    if (!all || all->size != out.size) return Fail("RuntimeError", "a part gave other results");
    for (int32_t i = 0; i < out.size; ++i) Set(out.data[i], Value::Share(all->data[i]));
    return 0;
  }

  int32_t RunIf(const Numbers& in, const Numbers& out, Body* bodies) {
    int64_t condition = 0;
    if (Number(in.data[0], "the condition of If", &condition) != 0) return -1;
    return RunBranch(out, &bodies[condition != 0 ? 0 : 1]);
  }

  int32_t RunByShape(int32_t operation, const Numbers& in, const Numbers& out,
                     const Numbers& numbers, Words bodies) {
    const Value value = Get(in.data[0]);
    const tn_dl_tensor* t = value.tensor();
    const bool by_rank = operation == TN_STEP_BY_RANK;
    if (!t || (!by_rank && t->ndim != 1))
      return FailWith("ValueError", "expected a %s, but there is none",
                      by_rank ? "tensor" : "vector");
    const int64_t number = by_rank ? t->ndim : t->shape[0];
    const uint32_t count = bodies.Next();
    for (uint32_t b = 0; b < count; ++b) {
      Body body = ReadBody(&bodies);
      if (numbers.data[1 + b] == number) return RunBranch(out, &body);
    }
    Text name{};
    if (strings_.Get(numbers.data[0], &name) != 0) return -1;
    return FailWith("ValueError", "what follows is not possible with %.*s of %s %lld",
                    static_cast<int>(name.size), name.data, by_rank ? "rank" : "length",
                    static_cast<long long>(number));
  }

  int32_t RunBranch(const Numbers& out, Body* taken) {
    if (RunFrame(&taken->frame) != 0) return -1;
    for (int32_t i = 0; i < out.size; ++i) Set(out.data[i], Get(taken->outputs.data[i]));
    return 0;
  }

  static int32_t Scalar(tn_dl_data_type type, int64_t number, Value* out) {
    void* data = nullptr;
    if (MakeTensor(type, 0, nullptr, out, &data) != 0) return -1;
    memcpy(data, &number, type.bits / 8U);  // little-endian
    return 0;
  }

  // What each iteration gives besides, by output.
  struct Collected {
    List<tn_ffi_any> items;
    ~Collected() {
      for (tn_ffi_any& item : items) Value::Take(item);
    }
  };

  // What a loop collects where it never runs.
  static int32_t Nothing(const int32_t** numbers, Value* out) {
    tn_dl_data_type type;
    memcpy(&type, (*numbers)++, sizeof type);
    int64_t shape[kMaxDims + 1] = {};
    const int32_t rank = *(*numbers)++;
    for (int32_t i = 0; i < rank; ++i) shape[i + 1] = *(*numbers)++;
    void* data = nullptr;
    return MakeTensor(type, rank + 1, shape, out, &data);
  }

  int32_t RunLoop(const Numbers& in, const Numbers& out, const Numbers& numbers, const Body& body) {
    const int32_t carried = numbers.data[0];
    const int32_t* of_collected = numbers.data + 1;
    int64_t trips = INT64_MAX, go_on = 1;
    if (in.data[0] >= 0 && Number(in.data[0], "the trip count of Loop", &trips) != 0) return -1;
    if (in.data[1] >= 0 && Number(in.data[1], "the condition of Loop", &go_on) != 0) return -1;
    const int32_t collected = out.size - carried;
    auto* lists =
        static_cast<Collected*>(calloc(static_cast<size_t>(collected) + 1, sizeof(Collected)));
    if (!lists) return OutOfMemory();
    for (int32_t i = 0; i < collected; ++i) new (&lists[i]) Collected();
    int32_t status = 0;
    for (int32_t i = 0; i < carried; ++i) Set(body.inputs.data[2 + i], Get(in.data[2 + i]));
    for (int64_t number = 0; status == 0 && go_on != 0 && number < trips; ++number) {
      status = Iterate(number, carried, collected, body, lists, &go_on);
    }
    for (int32_t i = 0; status == 0 && i < carried; ++i)
      Set(out.data[i], Get(body.inputs.data[2 + i]));
    for (int32_t i = 0; status == 0 && i < collected; ++i) {
      Value all;
      List<tn_ffi_any>& items = lists[i].items;
      if (items.size() == 0) {
        status = Nothing(&of_collected, &all);
      } else {
        of_collected += 2 + of_collected[1];
        status = BringToHost(&items);
        if (status == 0) status = JoinTensors(items.data(), items.size(), 0, true, &all);
      }
      Set(out.data[carried + i], std::move(all));
    }
    for (int32_t i = 0; i < collected; ++i) lists[i].~Collected();
    free(lists);
    return status;
  }

  // Whether the call may go on: a team asks before it starts, and a body may have no kernel.
  static int32_t GoesOn() {
    const auto nothing = [](void*, int32_t, int32_t, tn_team*) -> int32_t { return 0; };
    return tn_core_run_team(nothing, nullptr, 1);
  }

  // The results are copied only when all are there: one may be another's value of before.
  int32_t Iterate(int64_t number, int32_t carried, int32_t collected, const Body& body,
                  Collected* lists, int64_t* go_on) {
    if (GoesOn() != 0) return -1;
    Value i, condition;
    if (Scalar(kInt64Type, number, &i) != 0 || Scalar(kBoolType, 1, &condition) != 0) return -1;
    Set(body.inputs.data[0], std::move(i));
    Set(body.inputs.data[1], std::move(condition));
    Words frame = body.frame;
    if (RunFrame(&frame) != 0) return -1;
    if (Number(body.outputs.data[0], "the condition of Loop", go_on) != 0) return -1;
    Collected next;
    if (!next.items.Reserve(carried)) return OutOfMemory();
    for (int32_t k = 0; k < carried; ++k)
      next.items.Append(Get(body.outputs.data[1 + k]).Release());
    for (int32_t k = 0; k < carried; ++k) Set(body.inputs.data[2 + k], Value::Take(next.items[k]));
    next.items.Clear();
    for (int32_t k = 0; k < collected; ++k) {
      List<tn_ffi_any>& list = lists[k].items;
      if (!list.Reserve(list.size() + 1)) return OutOfMemory();
      list.Append(Get(body.outputs.data[1 + carried + k]).Release());
    }
    return 0;
  }

  int32_t RunMap(const Numbers& in, const Numbers& out, const Numbers& is_sequence,
                 const Body& body) {
    int64_t size = -1;
    for (int32_t i = 0; i < in.size; ++i) {
      if (is_sequence.data[i] == 0) continue;
      const Value sequence = Get(in.data[i]);
      if (!sequence.array()) return Fail("ValueError", "expected a sequence, but there is none");
      if (size >= 0 && sequence.array()->size != size)
        return Fail("ValueError", "expected sequences of one length");
      size = sequence.array()->size;
    }
    auto* lists =
        static_cast<Collected*>(calloc(static_cast<size_t>(out.size) + 1, sizeof(Collected)));
    if (!lists) return OutOfMemory();
    for (int32_t i = 0; i < out.size; ++i) new (&lists[i]) Collected();
    int32_t status = 0;
    for (int64_t number = 0; status == 0 && number < size; ++number) {
      for (int32_t i = 0; i < in.size; ++i) {
        Value value = Get(in.data[i]);
        Set(body.inputs.data[i], is_sequence.data[i] != 0
                                     ? Value::Share(value.array()->data[number])
                                     : std::move(value));
      }
      Words frame = body.frame;
      status = GoesOn() != 0 ? -1 : RunFrame(&frame);
      for (int32_t k = 0; status == 0 && k < out.size; ++k) {
        List<tn_ffi_any>& list = lists[k].items;
        if (!list.Reserve(list.size() + 1)) status = OutOfMemory();
        if (status == 0) list.Append(Get(body.outputs.data[k]).Release());
      }
    }
    for (int32_t k = 0; status == 0 && k < out.size; ++k) {
      Value all;
      status = MakeSequence(&lists[k].items, &all);
      Set(out.data[k], std::move(all));
    }
    for (int32_t i = 0; i < out.size; ++i) lists[i].~Collected();
    free(lists);
    return status;
  }

  // Results never share memory with arguments.
  int32_t Separate(const tn_ffi_any* args, int32_t n, Value* value) const {
    const tn_dl_tensor* t = value->tensor();
    for (int32_t i = 0; t && i < n; ++i) {
      const tn_dl_tensor* given = Value::TensorOf(args[i]);
      if (!given || given->data != t->data) continue;
      if (t->device.device_type != TN_DL_CPU) return home_.ToHost(value);
      Value copy;
      if (CopyTensor(*t, &copy) != 0) return -1;
      *value = std::move(copy);
      return 0;
    }
    if (const tn_ffi_array* array = value->array()) {
      List<tn_ffi_any> items;
      int32_t status = items.Reserve(array->size) ? 0 : OutOfMemory();
      for (int64_t i = 0; status == 0 && i < array->size; ++i) {
        Value item = Value::Share(array->data[i]);
        status = Separate(args, n, &item);
        if (status == 0) items.Append(item.Release());
      }
      if (status == 0) status = MakeSequence(&items, value);
      for (tn_ffi_any& item : items) Value::Take(item);
      return status;
    }
    return 0;
  }

  int32_t Return(Words* w, const tn_ffi_any* args, int32_t n, tn_ffi_any* result) {
    const auto count = static_cast<int32_t>(w->Next());
    Collected outputs;
    if (!outputs.items.Reserve(count)) return OutOfMemory();
    for (int32_t i = 0; i < count; ++i) {
      Value value = Get(static_cast<int32_t>(w->Next())), out;
      if (Separate(args, n, &value) != 0 || BringToLeave(*w, &value) != 0) return -1;
      if (Leave(std::move(value), w, strings_, &out) != 0) return -1;
      outputs.items.Append(out.Release());
    }
    const int32_t status = tn_core_return(outputs.items.data(), count, result);
    outputs.items.Clear();  // tn_core_return has taken them
    return status;
  }

  Home home_;
  StringTable strings_;
  List<tn_ffi_any> slots_;  // zero: None
};

}  // namespace

int32_t RunProgram(const tn_ffi_any* args, int32_t n, tn_ffi_any* result, const Places* places) {
  Run run(places);
  return run(args, n, result);
}

}  // namespace tenon::runtime

extern "C" __attribute__((visibility("hidden"))) int32_t tn_program_call(const tn_ffi_any* args,
                                                                         int32_t n,
                                                                         tn_ffi_any* result) {
  return tenon::runtime::RunProgram(args, n, result, nullptr);
}

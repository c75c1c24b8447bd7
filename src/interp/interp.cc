// One call from outside: arguments in, results out.
//
// The caller's tensors are row-major; a parameter may have a layout, strides and padding. So each
// gets memory of its own, as large as its storage, guarded by what Memory knows (nothing of it is
// written at first), and the elements are carried in one by one through the layout, and out again
// behind the call. Dims take their values from the arguments' shapes where they stand in one, else
// from the options:
//
//   func @f<n: 1..=64 step 3>(A: f32[n, 4] layout (i, j) -> (j, i), out C: f32[n])
//
// with A of shape [7, 4] runs with n = 7 after it is checked that 7 is one of 1, 4, 7, …. Outputs
// that nobody has written fail when they are carried out, unless the function may leave them.

#include "interp/interp.h"

#include <algorithm>
#include <numeric>

#include "arith/analyzer.h"
#include "interp/machine.h"
#include "interp/team.h"
#include "ir/visit.h"
#include "support/check.h"

namespace tenon {

InterpArg InterpArg::Tensor(DType dtype, std::vector<int64_t> shape, std::vector<uint8_t> bytes) {
  InterpArg out;
  out.dtype = dtype;
  out.shape = std::move(shape);
  out.bytes = std::move(bytes);
  TN_CHECK(static_cast<int64_t>(out.bytes.size()) == out.num_elements() * dtype.Bytes());
  return out;
}

InterpArg InterpArg::Tensor(DType dtype, std::vector<int64_t> shape,
                            const std::vector<double>& values) {
  std::vector<uint8_t> bytes(values.size() * static_cast<size_t>(dtype.Bytes()));
  for (size_t i = 0; i < values.size(); ++i) {
    interp::Lane v = interp::Convert(dtype, DType::Float(64), interp::FloatLane(values[i]));
    interp::Encode(dtype, v, &bytes[i * static_cast<size_t>(dtype.Bytes())]);
  }
  return Tensor(dtype, std::move(shape), std::move(bytes));
}

InterpArg InterpArg::Output(DType dtype, std::vector<int64_t> shape) {
  InterpArg out;
  out.dtype = dtype;
  out.shape = std::move(shape);
  out.defined = false;
  out.bytes.resize(static_cast<size_t>(out.num_elements() * dtype.Bytes()));
  return out;
}

InterpArg InterpArg::Int(int64_t value) {
  InterpArg out;
  out.kind = Kind::kScalar;
  out.scalar.i = value;
  return out;
}
InterpArg InterpArg::Float(double value) {
  InterpArg out;
  out.kind = Kind::kScalar;
  out.scalar.f = value;
  return out;
}
InterpArg InterpArg::Memory(int64_t bytes) {
  InterpArg out;
  out.kind = Kind::kMemory;
  out.memory_bytes = bytes;
  return out;
}

int64_t InterpArg::num_elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

double InterpArg::Get(int64_t i) const {
  interp::Lane v = interp::Decode(dtype, &bytes[static_cast<size_t>(i * dtype.Bytes())]);
  return interp::Convert(DType::Float(64), dtype, v).f;
}

namespace interp {

void Fail(std::string message) { throw Failure{MakeError(std::move(message))}; }

void Machine::TooLong() const {
  throw Failure{MakeLimitError("interpretation takes more than " +
                               std::to_string(options.max_steps) + " steps")};
}

std::unique_ptr<Memory> Machine::NewMemory(const std::string& name, int64_t elements,
                                           int64_t bytes_each) const {
  if (elements > options.max_bytes / bytes_each) {
    throw Failure{MakeLimitError("interpretation takes more than " +
                                 std::to_string(options.max_bytes) + " bytes for " + name)};
  }
  return std::make_unique<Memory>(name, elements * bytes_each, /*defined=*/false);
}

Func Machine::Callee(const std::string& name, const char* what) const {
  Func func = module.Find(name);
  if (!func) Fail(std::string(what) + " of " + name + ": the module has no such function");
  return func;
}

bool Machine::MentionsTeam(const Func& func) {
  auto [it, added] =
      mentions_team_.try_emplace(func.get(), false);  // false also stops recursive calls
  if (!added) return it->second;
  bool found = false;
  PreOrder(func->body, [&](const NodeRef& n) {
    if (const auto* call = As<Call>(n)) {
      found |= call->intrinsic == Intrinsic::kTeamRank || call->intrinsic == Intrinsic::kTeamSize;
    } else if (const auto* sync = As<Sync>(n)) {
      found |= sync->level == Level::kTeam;
    } else if (const auto* inner = As<CallFunc>(n)) {
      Func callee = module.Find(inner->callee);
      found |= callee && MentionsTeam(callee);
    }
    return !found;
  });
  return mentions_team_[func.get()] = found;
}

std::vector<int64_t> Machine::Order(int64_t n) {
  std::vector<int64_t> out(static_cast<size_t>(std::max<int64_t>(n, 0)));
  std::iota(out.begin(), out.end(), 0);
  // Not std::shuffle: its result differs between standard libraries.
  for (size_t i = out.size(); options.seed != 0 && i > 1; --i)
    std::swap(out[i - 1], out[random() % i]);
  return out;
}

std::vector<int64_t> Machine::ThreadOrderOf(int64_t n) {
  std::vector<int64_t> out(static_cast<size_t>(std::max<int64_t>(n, 0)));
  std::iota(out.begin(), out.end(), 0);
  if (options.order == ThreadOrder::kInOrder) return out;
  std::reverse(out.begin(), out.end());
  if (options.order == ThreadOrder::kReversed) return out;
  for (size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[random() % i]);
  return out;
}

const std::vector<Expr>& Machine::StorageOf(const Buffer& buffer) {
  auto [it, added] = storage_.try_emplace(buffer.get());
  if (added) {
    it->second = StorageExtents(buffer->shape, buffer->layout);
    keep_.push_back(buffer);
  }
  return it->second;
}

LayoutTable* Machine::TableOf(const Layout& layout, std::span<const int64_t> shape) {
  if (!layout) return nullptr;
  const auto found = tables_.find(layout.get());
  if (found != tables_.end()) return found->second->IsOf(shape) ? found->second.get() : nullptr;
  if (!LayoutTable::Serves(*layout, shape)) return nullptr;
  return tables_.emplace(layout.get(), std::make_unique<LayoutTable>(layout, shape))
      .first->second.get();
}

namespace {

// Moves the arguments of one call into memory and the results back: views_[i] is the memory of
// argument i, in the layout of its parameter.
class Call {
 public:
  Call(Machine& machine, const Func& func, std::vector<InterpArg>& args)
      : machine_(machine), func_(func), args_(args) {}

  void Run() {
    CheckKinds();
    Frame frame(machine_.variables);
    frame.func = func_;
    BindDims(&frame);
    for (size_t i = 0; i < func_->scalars.size(); ++i) BindScalar(i, &frame);
    binder_.frame() = std::move(frame);
    for (size_t i = 0; i < func_->buffers.size(); ++i) BindTensor(i);
    int64_t status = Worker::RunOnTeam(machine_, binder_.frame(), machine_.options.team_size);
    if (status != 0) Fail("function " + func_->name + " returned " + std::to_string(status));
    for (size_t i = 0; i < func_->buffers.size(); ++i) ReadBack(i);
  }

 private:
  void CheckKinds() {
    size_t expected = func_->buffers.size() + func_->scalars.size();
    if (args_.size() != expected) {
      Fail("function " + func_->name + " expects " + std::to_string(expected) + " arguments, got " +
           std::to_string(args_.size()));
    }
    for (size_t i = 0; i < args_.size(); ++i) {
      bool is_tensor = args_[i].kind == InterpArg::Kind::kTensor;
      if (is_tensor == (i < func_->buffers.size())) continue;
      Fail("argument " + std::to_string(i) + " of " + func_->name + " is of the wrong kind");
    }
  }

  // A dim is what stands in its place in an argument's shape, else what the options say.
  void BindDims(Frame* frame) {
    for (const Var& dim : func_->dims) {
      std::optional<int64_t> value;
      for (size_t b = 0; b < func_->buffers.size() && !value; ++b) {
        const std::vector<Expr>& shape = func_->buffers[b]->shape;
        for (size_t i = 0; i < shape.size() && i < args_[b].shape.size(); ++i) {
          if (shape[i].get() == dim.get()) value = args_[b].shape[i];
        }
      }
      auto it = machine_.options.dims.find(dim->name);
      if (it != machine_.options.dims.end()) value = it->second;
      if (!value) Fail("dim " + dim->name + " of " + func_->name + " is not told by any argument");
      frame->vars.Set(dim.get(), IntLane(*value));
    }
  }

  void BindScalar(size_t i, Frame* frame) {
    const Var& var = func_->scalars[i];
    InterpArg& arg = args_[func_->buffers.size() + i];
    Lane value = IntLane(arg.scalar.i);
    if (var->dtype.IsFloat()) value = FloatLane(RoundToType(var->dtype, arg.scalar.f));
    if (arg.kind == InterpArg::Kind::kMemory) {
      Memory* memory = machine_.memory.Add(machine_.NewMemory(var->name, arg.memory_bytes, 1));
      value = IntLane(static_cast<int64_t>(memory->address()));
    }
    frame->vars.Set(var.get(), value);
  }

  void BindTensor(size_t i) {
    const Buffer& param = func_->buffers[i];
    InterpArg& arg = args_[i];
    if (arg.dtype != param->dtype) {
      Fail("argument " + param->name + " expects " + param->dtype.ToString() + ", got " +
           arg.dtype.ToString());
    }
    int64_t bytes = binder_.StorageElements(param) * param->dtype.Bytes();
    Memory* memory = machine_.memory.Add(std::make_unique<Memory>(param->name, bytes, arg.defined));
    View view = binder_.MakeView(param, memory->address());
    view.memory = memory;
    if (view.shape != arg.shape)
      Fail("argument " + param->name + " has another shape than expected");
    std::fill_n(memory->data(), arg.defined ? bytes : 0, uint8_t{0});  // pads
    views_.push_back(view);
    if (arg.defined) {
      ForEach(i, [&](int64_t element, int64_t offset) {
        std::copy_n(&arg.bytes[static_cast<size_t>(element)], param->dtype.Bytes(),
                    memory->data() + offset);
      });
    }
    binder_.frame().buffers.Set(param.get(), view);
  }

  void ReadBack(size_t i) {
    InterpArg& arg = args_[i];
    Memory* memory = views_[i].memory;
    ForEach(i, [&](int64_t element, int64_t offset) {
      if (!memory->IsDefined(offset, arg.dtype.Bytes())) {
        Fail("element " + std::to_string(element / arg.dtype.Bytes()) + " of " + memory->name() +
             " is never written");
      }
      std::copy_n(memory->data() + offset, arg.dtype.Bytes(),
                  &arg.bytes[static_cast<size_t>(element)]);
    });
  }

  // Calls f(byte in the row-major tensor, byte in storage) for every element.
  template <class F>
  void ForEach(size_t i, F f) {
    const View& view = views_[i];
    const int64_t bytes = view.buffer->dtype.Bytes(), elements = args_[i].num_elements();
    std::vector<int64_t> at(view.shape.size(), 0);
    for (int64_t e = 0; e < elements; ++e) {
      f(e * bytes, binder_.Offset(view, at, /*check=*/true));
      for (size_t d = at.size(); d-- > 0;) {
        ++at[d];
        if (at[d] < view.shape[d]) break;
        at[d] = 0;
      }
    }
  }

  Machine& machine_;
  Func func_;
  std::vector<InterpArg>& args_;
  Worker binder_{machine_, nullptr, 0};
  std::vector<View> views_;
};

}  // namespace
}  // namespace interp

Status Interpret(const Module& module, const std::string& func, std::vector<InterpArg>& args,
                 const InterpOptions& options) {
  interp::Machine machine(module, options);
  Func entry = module.Find(func);
  if (!entry) return MakeError("the module has no function " + func);
  if (!options.weights.empty()) {
    machine.weights = machine.memory.Add(std::make_unique<interp::Memory>(
        "weights", options.weights.data(), static_cast<int64_t>(options.weights.size())));
  }
  try {
    interp::Call(machine, entry, args).Run();
  } catch (interp::Failure& failure) {
    failure.diagnostic.loc.item = "function " + func;
    return failure.diagnostic;
  }
  return Ok();
}

}  // namespace tenon

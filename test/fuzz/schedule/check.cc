#include "fuzz/schedule/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "arith/analyzer.h"
#include "driver/pipeline.h"
#include "interp/interp.h"
#include "intrin/tile_intrinsic.h"
#include "ir/visit.h"
#include "loop/parse.h"
#include "loop/pass/calls/outline_micro_kernels.h"
#include "loop/print.h"
#include "loop/threads.h"
#include "loop/verify.h"

namespace tenon::fuzz {

namespace {

constexpr uint32_t kValues = 7;  // the seed of all inputs
constexpr int64_t kMostSteps = 4'000'000, kMostBytes = 64 << 20;

// Runs it; what went wrong.
std::string Interpreted(const Module& module, const std::string& name, const DimValues& dims,
                        int team_size, uint64_t seed, std::vector<InterpArg>* args,
                        bool all_orders = false) {
  InterpOptions options;
  options.dims = dims;
  options.team_size = team_size;
  options.seed = seed;
  options.max_steps = kMostSteps;
  options.max_bytes = kMostBytes;
  try {
    const Status status = all_orders ? InterpretOrders(module, name, *args, options)
                                     : Interpret(module, name, *args, options);
    if (status) return "";
    const std::string why = ToString(status.errors());
    if (why.find("interpretation takes more than") != std::string::npos) throw TooLong(why);
    return why;
  } catch (const InternalError& error) {
    return error.what();
  } catch (const std::bad_alloc&) {
    throw TooLong("it takes more memory than there is");
  }
}

std::string At(const DimValues& dims) {
  std::string out;
  for (const auto& [name, value] : dims) out += fmt::format(" {} = {}", name, value);
  return out.empty() ? "" : "at" + out + ": ";
}

size_t NumInputs(const PrimFunc& func) {
  return func.buffers.size() - static_cast<size_t>(func.num_outputs);
}

}  // namespace

std::vector<Run> RunsOf(const Subject& subject) {
  std::vector<Run> out;
  const Func& func = subject.module.Find(kFunction);
  for (const DimValues& dims : subject.sizes) {
    Expected<std::vector<InterpArg>> args = SmallIntegerArgs(*func, dims, kValues);
    TN_CHECK(args, "{}", ToString(args.errors()));
    Run run{dims, *args, *args};
    const std::string error = Interpreted(subject.module, kFunction, dims, 1, 0, &run.want);
    TN_CHECK(error.empty(), "{}: {}", subject.name, error);
    out.push_back(std::move(run));
  }
  return out;
}

std::string Difference(const PrimFunc& func, const std::vector<InterpArg>& want,
                       const std::vector<InterpArg>& got) {
  for (size_t i = NumInputs(func); i < func.buffers.size(); ++i) {
    for (int64_t k = 0; k < want[i].num_elements(); ++k) {
      const double a = want[i].Get(k), b = got[i].Get(k);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      return fmt::format("element {} of {} is {}, expected {}", k, func.buffers[i]->name, b, a);
    }
  }
  return "";
}

// ---- Form ----

void CheckForm(const Subject& subject, const Schedule& schedule) {
  const Status valid = Verify(schedule.module(), Stage::kSchedulable);
  if (!valid) throw Finding("the verifier refuses it: " + ToString(valid.errors()));
  const std::string text = Print(schedule.module());
  Expected<Module> read = ParseModule(text);
  if (!read) throw Finding("its text is not read: " + ToString(read.errors()));
  for (const auto& [name, func] : schedule.module().funcs) {
    if (!StructuralEqual(read->Find(name), func)) throw Finding("its text reads differently");
  }
  Expected<Trace> trace = Trace::Parse(schedule.trace().ToString());
  if (!trace || *trace != schedule.trace()) throw Finding("its trace reads differently");
  Expected<Trace> stored = Trace::FromJson(schedule.trace().ToJson());
  if (!stored || *stored != schedule.trace()) throw Finding("its trace changes as JSON");
  Schedule again(subject.module, kFunction);
  const Status status = again.Replay(*stored);
  if (!status) throw Finding("its trace does not replay: " + ToString(status.errors()));
  if (Print(again.module()) != text) throw Finding("its trace replays to something else");
}

// ---- Meaning ----

namespace {

// Whether some loop's iterations may run in another order.
bool HasAnyOrder(const Module& module) {
  bool found = false;
  for (const auto& [name, func] : module.funcs) {
    PreOrder(func->body, [&](const NodeRef& n) {
      const auto* loop = As<For>(n);
      found = found ||
              (loop && loop->for_kind != ForKind::kSerial && loop->for_kind != ForKind::kUnrolled);
      return IsA<StmtNode>(n) && !found;
    });
  }
  return found;
}

}  // namespace

void CheckMeaning(const Schedule& schedule, const std::vector<Run>& runs, uint64_t seed) {
  std::vector<uint64_t> orders = {0};
  if (HasAnyOrder(schedule.module())) orders.push_back(seed);
  for (const Run& run : runs) {
    for (const uint64_t order : orders) {
      std::vector<InterpArg> args = run.given;
      std::string wrong = Interpreted(schedule.module(), kFunction, run.dims, 1, order, &args);
      if (wrong.empty()) wrong = Difference(*schedule.func(), run.want, args);
      if (!wrong.empty()) throw Finding(At(run.dims) + wrong);
    }
  }
}

// ---- Storage ----

namespace {

struct Stored {
  int64_t size = 1;
  std::vector<int64_t> offsets;  // of logical elements, row-major
};

int64_t NumberOf(const Expr& e, const DimValues& dims) {
  Expr value = PostOrderRewrite(e, [&](const NodeRef& n) -> NodeRef {
    const auto* var = As<VarNode>(n);
    auto it = var ? dims.find(var->name) : dims.end();
    return it == dims.end() ? n : NodeRef(IndexConst(it->second));
  });
  return AsInt(Simplify(value)).value();
}

Stored StorageOf(const Buffer& buffer, const std::vector<int64_t>& shape, const DimValues& dims) {
  Stored out;
  const std::vector<int64_t> extents = StorageShape(buffer, dims);
  for (int64_t e : extents) out.size *= e;
  std::vector<int64_t> at(shape.size(), 0);
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<Expr> indices;
    for (int64_t index : at) indices.push_back(IndexConst(index));
    int64_t offset = 0;
    const std::vector<Expr> place = ApplyLayout(buffer->layout, indices);
    for (size_t d = 0; d < place.size(); ++d)
      offset = offset * extents[d] + NumberOf(place[d], dims);
    out.offsets.push_back(offset);
    for (size_t d = at.size(); d-- > 0;) {
      ++at[d];
      if (at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
  return out;
}

}  // namespace

std::vector<int64_t> StorageShape(const Buffer& buffer, const DimValues& dims) {
  std::vector<int64_t> out;
  for (const Expr& e : StorageExtents(buffer->shape, buffer->layout))
    out.push_back(NumberOf(e, dims));
  return out;
}

InterpArg ToStorage(const InterpArg& arg, const Buffer& buffer, const DimValues& dims) {
  InterpArg out = arg;
  out.shape = {arg.num_elements()};
  if (!buffer->layout) return out;
  const Stored stored = StorageOf(buffer, arg.shape, dims);
  const auto bytes = static_cast<size_t>(arg.dtype.Bytes());
  out.shape = {stored.size};
  out.defined = true;  // nobody writes what lies between elements
  out.bytes.assign(static_cast<size_t>(stored.size) * bytes, 0);
  if (arg.bytes.empty()) return out;
  for (size_t i = 0; i < stored.offsets.size(); ++i) {
    std::memcpy(&out.bytes[static_cast<size_t>(stored.offsets[i]) * bytes], &arg.bytes[i * bytes],
                bytes);
  }
  return out;
}

void FromStorage(const InterpArg& stored, const Buffer& buffer, const DimValues& dims,
                 InterpArg* arg) {
  if (!buffer->layout) {
    arg->bytes = stored.bytes;
    return;
  }
  const Stored at = StorageOf(buffer, arg->shape, dims);
  const auto bytes = static_cast<size_t>(arg->dtype.Bytes());
  arg->bytes.resize(at.offsets.size() * bytes);
  for (size_t i = 0; i < at.offsets.size(); ++i) {
    std::memcpy(&arg->bytes[i * bytes], &stored.bytes[static_cast<size_t>(at.offsets[i]) * bytes],
                bytes);
  }
}

// ---- Lowering ----

Module Exported(const Schedule& schedule, const Target& target, const std::string& name) {
  std::map<std::string, std::string> names;
  for (const auto& [old, func] : schedule.module().funcs) {
    if (BuiltinTileIntrinsics().Find(old) == nullptr) names[old] = fmt::format("{}.{}", name, old);
  }
  names[kFunction] = name;
  Module out;
  for (const auto& [old, func] : schedule.module().funcs) {
    PrimFunc fields(*Renamed(func, names.count(old) ? names[old] : old, names));
    fields.target = target;
    if (old == kFunction) {
      fields.attrs.Set("exported", true);
      fields.attrs.Set("noalias", true);
    }
    out.Add(PrimFunc::Make(std::move(fields)));
  }
  return out;
}

namespace {

using AfterPass = std::function<void(const char* pass, const Module& after)>;

Expected<Module> Passed(const Module& module, const Target& target, const AfterPass& after) {
  PassContext context;
  context.target = &target;
  driver::PassHooks hooks;
  hooks.verify = true;
  if (after) {
    hooks.after_pass = [&](const char* pass, const Module&, const Module& result, double) {
      after(pass, result);
    };
  }
  try {
    return driver::RunPipeline(driver::KernelPipelineOf(target), module, context, hooks);
  } catch (const InternalError& error) {
    throw Finding(std::string("lowering throws ") + error.what());
  }
}

// "" or what is wrong.
std::string RunLowered(const Module& lowered, const std::string& name, const PrimFunc& before,
                       const Run& run, int team_size, uint64_t seed) {
  const Func& func = lowered.Find(name);
  Expected<std::vector<InterpArg>> args = SmallIntegerArgs(*func, run.dims, kValues, team_size);
  if (!args) return ToString(args.errors());
  for (size_t i = 0; i < before.buffers.size(); ++i) {
    const bool flat = func->buffers[i]->shape.size() == 1 && !func->buffers[i]->layout;
    (*args)[i] = flat ? ToStorage(run.given[i], before.buffers[i], run.dims) : run.given[i];
  }
  const bool launched = IsBound(*func);
  std::string wrong = Interpreted(lowered, name, run.dims, team_size, seed, &*args, launched);
  if (!wrong.empty()) return wrong;
  std::vector<InterpArg> got = run.want;
  for (size_t i = 0; i < before.buffers.size(); ++i) {
    const bool flat = func->buffers[i]->shape.size() == 1 && !func->buffers[i]->layout;
    if (flat) {
      FromStorage((*args)[i], before.buffers[i], run.dims, &got[i]);
    } else {
      got[i].bytes = (*args)[i].bytes;
    }
  }
  return Difference(before, run.want, got);
}

}  // namespace

// What is on the stack has a constant size; other code back ends refuse to make.
static bool FitsMemory(const Module& lowered) {
  bool fits = true;
  for (const auto& [name, func] : lowered.funcs) {
    PreOrder(func->body, [&](const NodeRef& n) {
      const auto* alloc = As<Alloc>(n);
      for (const Expr& e : alloc ? alloc->buffer->shape : std::vector<Expr>()) {
        fits = fits && AsInt(e).has_value();
      }
      return IsA<StmtNode>(n);
    });
  }
  return fits;
}

// What a processor has none of; what threads would need of a GPU that has no such thing.
static bool IsRefusal(const std::string& message, bool gpu) {
  const std::vector<const char*> on_cpu = {"unsupported: the thread axis",
                                           "unsupported: memory in shared"};
  const std::vector<const char*> on_gpu = {
      "blocks cannot wait for each other",
      "by one block of threads and touched by another: expected it in global",
      "by one block of a cluster and touched by another: expected it in global",
      "makes clusters of ",
      "expected a constant number of blocks",
      "by one thread and read by another: expected it in shared",
      "is made for each ",
      "needs a barrier ",
      "a barrier stands ",
      "does other things in each ",
      "has an extent that depends on loops around it",
      "is not constant: blocks have a fixed number of threads",
      "threads per block, but ",
      " along ",
      "bytes of shared memory per block, but ",
      "registers per block, but ",
      "in shared has a size that is not constant"};
  const std::vector<const char*>& parts = gpu ? on_gpu : on_cpu;
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return message.find(part) != std::string::npos; });
}

std::optional<Module> Lowered(const Schedule& schedule, const Target& target,
                              const std::string& name) {
  Expected<Module> out = Passed(Exported(schedule, target, name), target, nullptr);
  if (out) return FitsMemory(*out) ? std::optional(*out) : std::nullopt;
  for (const Diagnostic& d : out.errors()) {
    if (!IsRefusal(d.message, target.IsDevice()))
      throw Finding("it cannot be lowered: " + ToString(out.errors()));
  }
  return std::nullopt;
}

void CheckLowered(const Module& lowered, const std::string& name, const Schedule& schedule,
                  const std::vector<Run>& runs, int team_size, uint64_t seed) {
  for (const Run& run : runs) {
    const std::string wrong = RunLowered(lowered, name, *schedule.func(), run, team_size, seed);
    if (wrong.empty()) continue;
    std::string guilty;
    bool shared_out = false;  // before that, every worker of a team would do all of the work
    const Target target = *lowered.Find(name)->target;
    (void)Passed(Exported(schedule, target, name), target, [&](const char* pass, const Module& m) {
      if (!guilty.empty()) return;
      shared_out = shared_out || std::string_view(pass) == "lower_parallel";
      const int team = shared_out || target.IsDevice() ? team_size : 1;
      std::string now = RunLowered(m, name, *schedule.func(), run, team, seed);
      if (!now.empty()) guilty = std::string("after ") + pass + ": " + now;
    });
    const std::string by = target.IsDevice() ? "threads" : fmt::format("a team of {}", team_size);
    throw Finding(
        fmt::format("lowered, by {}: {}{}", by, At(run.dims), guilty.empty() ? wrong : guilty));
  }
}

}  // namespace tenon::fuzz

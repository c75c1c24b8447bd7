// Loop IR, statement by statement: what is written here is what a statement means.
//
// A worker has a frame: the values of variables and the views of buffers in scope. Exec looks at
// one statement and does it; control is recursion, so a statement that leaves the function says so
// by its result. A loop that may run in any order (parallel, vectorized, thread) does run in
// another order when a seed asks for one, which finds programs that rely on the first. A block
// binds its variables, looks at `where`, runs `init` when all reduce variables are at their first
// values, and then its body:
//
//   block C(vi: spatial = i, vk: reduce = k) where i < 7 {
//     init { C[vi] = 0f32 }
//     C[vi] = C[vi] + A[vi, vk]
//   }
//
// is, for i = 2 and k = 0: vi = 2, vk = 0; C[2] = 0; C[2] = C[2] + A[2, 0]; for k = 1 the init is
// passed over. Everything that could go wrong is looked for: a read of what nobody wrote, an index
// outside, an overflow of index arithmetic, a race. An answer that is slow is fine; one that is
// lenient is not.

#include <algorithm>

#include "interp/grid.h"
#include "interp/machine.h"
#include "interp/team.h"
#include "ir/print.h"
#include "loop/promises.h"
#include "loop/team.h"
#include "loop/thread_reduction.h"
#include "loop/threads.h"
#include "loop/warpgroup.h"
#include "support/check.h"

namespace tenon::interp {

namespace {
[[noreturn]] void Unsupported(const std::string& what) { Fail("unsupported: " + what); }
}  // namespace

Worker::Flow Worker::Exec(const Stmt& s) {
  m_.Step();
  switch (s->kind) {
    case NodeKind::kSeq:
      for (const Stmt& part : As<Seq>(s)->stmts) {
        if (Exec(part) == Flow::kReturn) return Flow::kReturn;
      }
      return Flow::kNext;
    case NodeKind::kFor: return ExecFor(*As<For>(s));
    case NodeKind::kIf: {
      const auto* n = As<If>(s);
      if (!EvalBool(n->condition)) return n->else_body ? Exec(n->else_body) : Flow::kNext;
      const bool outside = apart_;
      apart_ |= IsFirstWorkers(*n);
      const Flow flow = Exec(n->then_body);
      apart_ = outside;
      return flow;
    }
    case NodeKind::kWhile: return ExecWhile(*As<While>(s));
    case NodeKind::kLet: {
      const auto* n = As<Let>(s);
      return WithVar(n->var, Eval(n->value), [&] { return Exec(n->body); });
    }
    case NodeKind::kAlloc: return ExecAlloc(*As<Alloc>(s));
    case NodeKind::kBind: {
      const auto* n = As<Bind>(s);
      frame_.buffers.Set(n->buffer.get(),
                         MakeView(n->buffer, static_cast<uintptr_t>(EvalInt(n->data))));
      Flow flow = Exec(n->body);
      frame_.buffers.Forget(n->buffer.get());
      return flow;
    }
    case NodeKind::kStore: ExecStore(*As<Store>(s)); return Flow::kNext;
    case NodeKind::kBlock: return ExecBlock(*As<Block>(s));
    case NodeKind::kEvaluate: ExecEvaluate(*As<Evaluate>(s)); return Flow::kNext;
    case NodeKind::kCallFunc: ExecCall(*As<CallFunc>(s)); return Flow::kNext;
    case NodeKind::kLaunch: ExecLaunch(*As<Launch>(s)); return Flow::kNext;
    case NodeKind::kCopy: ExecCopy(*As<Copy>(s)); return Flow::kNext;
    case NodeKind::kAssert: ExecAssert(*As<Assert>(s)); return Flow::kNext;
    case NodeKind::kReturn: return ExecReturn(*As<Return>(s));
    case NodeKind::kSync: ExecSync(*As<Sync>(s)); return Flow::kNext;
    case NodeKind::kBarrier: ExecBarrier(*As<Barrier>(s)); return Flow::kNext;
    case NodeKind::kRoles: return ExecRoles(*As<Roles>(s));
    case NodeKind::kAtomic: ExecAtomic(*As<Atomic>(s)); return Flow::kNext;
    default: TN_UNREACHABLE();  // NOLINT: expressions are no statements
  }
}

template <class Body>
Worker::Flow Worker::WithVar(const Var& var, Value value, Body body) {
  frame_.vars.Set(var.get(), std::move(value));
  Flow flow = body();
  frame_.vars.Forget(var.get());
  return flow;
}

Worker::Flow Worker::ExecFor(const For& n) {
  int64_t min = EvalInt(n.min), extent = EvalInt(n.extent);
  bool any_order = n.for_kind != ForKind::kSerial && n.for_kind != ForKind::kUnrolled;
  std::vector<int64_t> order;
  if (any_order && m_.options.seed != 0 && !SharesReduction(n)) order = m_.Order(extent);
  const bool promised = n.attrs.Has(kIndependentAttr);
  if (promised) {
    promises_.emplace_back(n.var->name, n.attrs.Get<std::vector<std::string>>(kPrivateAttr, {}));
  }
  for (int64_t i = 0; i < extent; ++i) {
    m_.Step();
    int64_t iteration = order.empty() ? i : order[static_cast<size_t>(i)];
    if (promised) promises_.back().Begin(iteration);
    frame_.vars.Set(n.var.get(), IntLane(min + iteration));
    if (Exec(n.body) == Flow::kReturn) return Flow::kReturn;
  }
  if (promised) promises_.pop_back();
  frame_.vars.Forget(n.var.get());
  return Flow::kNext;
}

Worker::Flow Worker::ExecWhile(const While& n) {
  while (EvalBool(n.condition)) {
    if (Exec(n.body) == Flow::kReturn) return Flow::kReturn;
  }
  return Flow::kNext;
}

// Workers of a team see one `global` allocation, threads of a launch one per launch, and one
// `shared` one per block; everything else is the worker's own.
Worker::Flow Worker::ExecAlloc(const Alloc& n) {
  if (n.buffer->scope == Scope::kBarrier && !thread_)
    Unsupported("barrier buffer " + n.buffer->name);
  auto make = [&] {
    return m_.NewMemory(n.buffer->name, StorageElements(n.buffer), n.buffer->dtype.Bytes());
  };
  Memory* memory = nullptr;
  const bool device = frame_.func->func_kind == FuncKind::kDevice;  // within one worker
  if (team_ && !by_itself_ && !device && n.buffer->scope == Scope::kGlobal) {
    memory = team_->Shared(&n, visits_[&n]++, make);
  }
  if (thread_) memory = thread_->Shared(&n, make);
  const bool shared = memory != nullptr;
  if (!shared) memory = m_.memory.Add(make());
  if (thread_ && !shared) memory->MakePrivate();
  for (Promise& p : promises_) p.Forget(*memory);
  frame_.buffers.Set(n.buffer.get(), MakeView(n.buffer, memory->address())).memory = memory;
  Flow flow = Exec(n.body);
  frame_.buffers.Forget(n.buffer.get());
  if (!shared && memory->AnyUnderWay())
    Fail(n.buffer->name + " is given up while copies to it are under way");
  if (!shared) m_.memory.Remove(memory);
  return flow;
}

Worker::Flow Worker::ExecBlock(const Block& n) {
  if (n.async) Unsupported("async block " + n.name);
  if (n.at != Level::kThread && n.at != Level::kWorker && n.at != Level::kWarp)
    Unsupported("block " + n.name + " at " + Name(n.at));
  bool first = true;  // all reduce and ordered variables are at the start of their domains
  const size_t around = bound_.size();
  for (const IterVar& iter : n.iters) {
    int64_t value = EvalInt(iter->binding);
    int64_t min = EvalInt(iter->min), extent = EvalInt(iter->extent);
    bound_.push_back({iter.get(), value, min, extent});
    if (iter->iter_kind != IterKind::kSpatial) first &= value == min;
  }
  for (size_t i = 0; i < n.iters.size(); ++i)
    frame_.vars.Set(n.iters[i]->var.get(), IntLane(bound_[around + i].value));
  Flow flow = Flow::kNext;
  if (!n.where || EvalBool(n.where)) {
    for (size_t i = around; i < bound_.size(); ++i) {
      const Bound& c = bound_[i];
      if (c.value >= c.min && c.value - c.min < c.extent) continue;
      Fail("block " + n.name + ": " + c.iter->var->name + " = " + std::to_string(c.value) +
           " is outside its domain " + std::to_string(c.min) + ".." +
           std::to_string(c.min + c.extent));
    }
    if (n.init && first) flow = Exec(n.init);
    if (flow == Flow::kNext) flow = Exec(n.body);
  }
  for (const IterVar& iter : n.iters) frame_.vars.Forget(iter->var.get());
  bound_.resize(around);
  return flow;
}

// Element by element in row-major order; the regions must not overlap.
void Worker::ExecCopy(const Copy& n) {
  std::vector<int64_t> dst_min, src_min, extents;
  auto mins = [&](const Region& region, std::vector<int64_t>* out) {
    for (const Range& r : region->ranges) out->push_back(EvalInt(r->min));
  };
  mins(n.dst, &dst_min);
  mins(n.src, &src_min);
  if (dst_min.size() != src_min.size() || n.dst->buffer->dtype != n.src->buffer->dtype) {
    Fail("copy from " + n.src->buffer->name + " to " + n.dst->buffer->name +
         ": rank or type differ");
  }
  for (size_t i = 0; i < dst_min.size(); ++i) {
    int64_t to = EvalInt(n.dst->ranges[i]->extent), from = EvalInt(n.src->ranges[i]->extent);
    if (to != from) {
      Fail("copy from " + n.src->buffer->name + " to " + n.dst->buffer->name + ": extents " +
           std::to_string(from) + " and " + std::to_string(to) + " differ");
    }
    if (to <= 0) return;
    extents.push_back(to);
  }
  const View &dst = ViewOf(n.dst->buffer), &src = ViewOf(n.src->buffer);
  std::vector<int64_t> at(extents.size(), 0);
  while (true) {
    m_.Step();
    std::vector<int64_t> to = dst_min, from = src_min;
    for (size_t i = 0; i < at.size(); ++i) {
      to[i] += at[i];
      from[i] += at[i];
    }
    Write(dst, to, Read(src, from));
    size_t i = at.size();
    while (i > 0 && ++at[i - 1] == extents[i - 1]) at[--i] = 0;
    if (i == 0) return;
  }
}

namespace {

// A DLDataType (code | bits << 8 | lanes << 16) or a DLDeviceType by its name, as the core prints
// it.
std::string AbiName(Intrinsic what, int64_t value) {
  if (what == Intrinsic::kDeviceName) {
    if (value == 1) return "cpu";
    return value == 2 ? "cuda" : "device_type(" + std::to_string(value) + ")";
  }
  const int64_t code = value & 255, bits = value >> 8 & 255, lanes = value >> 16;
  const char* const kCodes[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  if (code >= 7) return "dtype(" + std::to_string(value) + ")";
  std::string name = code == 6 && bits == 8 ? "bool" : kCodes[code] + std::to_string(bits);
  return lanes == 1 ? name : name + "x" + std::to_string(lanes);
}

}  // namespace

void Worker::ExecAssert(const Assert& n) {
  if (EvalBool(n.condition)) return;
  std::string message = n.error_kind + ": ";
  for (const Expr& part : n.parts) {
    if (const auto* text = As<StringConst>(part)) {
      message += text->value;
      continue;
    }
    if (const auto* call = As<Call>(part); call && (call->intrinsic == Intrinsic::kDTypeName ||
                                                    call->intrinsic == Intrinsic::kDeviceName)) {
      message += AbiName(call->intrinsic, EvalInt(call->args[0]));
      continue;
    }
    Value v = Eval(part);
    if (part->dtype.IsHandle()) {  // of a C string
      // NOLINTNEXTLINE(performance-no-int-to-ptr): a handle is a number here
      message += v.first.i ? reinterpret_cast<const char*>(v.first.i) : "";
      continue;
    }
    char number[32];
    std::snprintf(number, sizeof(number), "%g", v.first.f);
    message += part->dtype.IsFloat() ? std::string(number) : std::to_string(v.first.i);
  }
  Fail(message);
}

// An i32 result of a C function is a status.
void Worker::ExecEvaluate(const Evaluate& n) {
  const auto* call = As<Call>(n.call);
  Value v = Eval(n.call);
  if (call->intrinsic == Intrinsic::kExtern && call->dtype == DType::Int(32) && v.first.i != 0) {
    Fail("extern function " + As<StringConst>(call->args[0])->value + " returned " +
         std::to_string(v.first.i));
  }
}

void Worker::ExecSync(const Sync& n) {
  switch (n.level) {
    case Level::kTeam:
      if (team_ && !by_itself_) team_->Barrier(rank_);
      return;
    case Level::kThread:
    case Level::kWorker: return;
    case Level::kWarp:
    case Level::kCta:
    case Level::kCluster:
    case Level::kGrid:
      if (thread_) return thread_->Sync(n);
      [[fallthrough]];
    case Level::kWarpgroup: Unsupported(std::string("sync ") + Name(n.level));
  }
}

void Worker::ExecBarrier(const Barrier& n) {
  if (!thread_) Unsupported("barrier");
  const View& view = ViewOf(n.buffer);
  const Indices indices = IndicesOf(n.indices);
  const int64_t offset = Offset(view, indices, /*check=*/true);
  thread_->OnBarrier(n.op, view.address + static_cast<uintptr_t>(offset),
                     n.value ? EvalInt(n.value) : 0, Accessed(view, indices).ToString());
}

// By the number of the thread's warp.
Worker::Flow Worker::ExecRoles(const Roles& n) {
  if (!thread_) Unsupported("roles");
  int64_t first = 0;
  for (size_t i = 0; i < n.bodies.size(); ++i) {
    first += n.sizes[i];
    if (thread_->warp() < first) return Exec(n.bodies[i]);
  }
  Fail("warp " + std::to_string(thread_->warp()) + " has no role: " + std::to_string(first) +
       " warps do");
}

Worker::Flow Worker::ExecReturn(const Return& n) {
  if (n.value) status_ = EvalInt(n.value);
  return Flow::kReturn;
}

namespace {

// A tile that does not lie as the parameter says, yet: `distribute` sees to that, and until then
// its elements are where the caller's buffer has them.
bool IsOtherwise(const BufferNode& param, const BufferNode& given) {
  return IsTile(param) && given.rank() > 1;
}

}  // namespace

Frame Worker::CalleeFrame(const Func& callee, const std::vector<Region>& buffers,
                          const std::vector<Expr>& scalars) {
  if (buffers.size() != callee->buffers.size() ||
      scalars.size() != callee->dims.size() + callee->scalars.size()) {
    Fail("call of " + callee->name + " with " + std::to_string(buffers.size()) + " buffers and " +
         std::to_string(scalars.size()) + " scalars, expected " +
         std::to_string(callee->buffers.size()) + " and " +
         std::to_string(callee->dims.size() + callee->scalars.size()));
  }
  Worker inner(m_, team_, rank_);
  inner.frame_.func = callee;
  for (size_t i = 0; i < scalars.size(); ++i) {
    const Var& var =
        i < callee->dims.size() ? callee->dims[i] : callee->scalars[i - callee->dims.size()];
    if (var->dtype != scalars[i]->dtype)
      Fail("call of " + callee->name + ": " + var->name + " has another type");
    inner.frame_.vars.Set(var.get(), Eval(scalars[i]));
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& param = callee->buffers[i];
    const View& view = ViewOf(buffers[i]->buffer);
    if (param->dtype != view.buffer->dtype)
      Fail("call of " + callee->name + ": " + param->name + " has another type");
    std::vector<int64_t> first;
    for (const Range& r : buffers[i]->ranges) first.push_back(EvalInt(r->min));
    if (IsFragment(*param) || IsOtherwise(*param, *view.buffer)) {
      inner.frame_.buffers.Set(param.get(), WindowOn(param, view, buffers[i], &inner));
      continue;
    }
    auto address = view.address + static_cast<uintptr_t>(Offset(view, first, /*check=*/false));
    if (IsWarpFunction(*callee) && param->align > 0 &&
        address % static_cast<uintptr_t>(param->align) != 0) {
      Fail("call of " + callee->name + ": " + param->name +
           " is at an address that is no multiple " + "of " + std::to_string(param->align));
    }
    View bound = inner.MakeView(param, address);
    bound.memory = view.memory;
    inner.frame_.buffers.Set(param.get(), std::move(bound));
  }
  return std::move(inner.frame_);
}

void Worker::ExecCall(const CallFunc& n) {
  Func callee = m_.Callee(n.callee, "call");
  // A kernel whose parallel loops are not yet divided is the team's work as a whole: one worker
  // does it.
  bool collective = callee->func_kind == FuncKind::kKernel && !m_.MentionsTeam(callee);
  if (team_ && collective && rank_ != 0) return;
  if (ExecAsync(n, callee)) return;
  if (thread_ && LaunchOrderOf(*callee) == LaunchOrder::kWait) thread_->WaitForLaunch();
  Frame frame = CalleeFrame(callee, n.buffers, n.scalars);
  if (thread_ && IsWarpFunction(*callee)) return ExecWarpCall(n, callee, std::move(frame));
  RunCallee(n, callee, std::move(frame));
}

void Worker::RunCallee(const CallFunc& n, const Func& callee, Frame frame) {
  std::swap(frame, frame_);
  const bool by_itself = std::exchange(by_itself_, by_itself_ || apart_);
  int64_t outer_status = status_;
  status_ = 0;
  Exec(callee->body);
  int64_t status = status_;
  status_ = outer_status;
  by_itself_ = by_itself;
  std::swap(frame, frame_);
  if (status != 0) Fail("function " + n.callee + " returned " + std::to_string(status));
}

void Worker::ExecLaunch(const Launch& n) {
  if (!n.place.IsHost() && n.place != Place::Device(0))
    Unsupported("launch on " + n.place.ToString());
  Func kernel = m_.Callee(n.kernel, "launch");
  int64_t status = RunOnTeam(m_, CalleeFrame(kernel, n.buffers, n.scalars), m_.options.team_size);
  if (status != 0) Fail("kernel " + n.kernel + " returned " + std::to_string(status));
}

int64_t Worker::Run(Frame frame) {
  frame_ = std::move(frame);
  Exec(frame_.func->body);
  return status_;
}

void Worker::RunBody(Frame frame, const Stmt& body) {
  frame_ = std::move(frame);
  Exec(body);
}

int64_t Worker::RunOnTeam(Machine& machine, const Frame& frame, int team_size) {
  if (IsBound(*frame.func)) {
    RunGrid(machine, frame);
    return 0;
  }
  if (!machine.MentionsTeam(frame.func)) return Worker(machine, nullptr, 0).Run(frame);
  Team team(machine, team_size);
  std::vector<int64_t> status(static_cast<size_t>(team_size), 0);
  team.Run([&](int rank) {
    status[static_cast<size_t>(rank)] = Worker(machine, &team, rank).Run(frame);
  });
  auto failed = std::find_if(status.begin(), status.end(), [](int64_t s) { return s != 0; });
  return failed == status.end() ? 0 : *failed;
}

}  // namespace tenon::interp

// From "a loop over threads here, another there" to one body that every thread runs.
//
// A schedule binds loops where they stand: a tile is loaded in loops over threadIdx.x, used in
// other loops over threadIdx.x. The machine has one launch, and each thread runs all of the body.
// The steps, in order:
//
//   1. virtual threads are played side by side, loops that fill shared memory without threads are
//      dealt out to all of them (share_loads.h);
//   2. the extent of each axis is the largest of its loops' (launch_extents.h);
//   3. barriers are placed while loops over axes still stand, because it is between loops that
//      threads depend on each other (place_syncs.h);
//   4. Converter takes the loops away: their variables become the launch's, a loop with a smaller
//      extent becomes a condition, and what stands in no loop over an axis, and writes what threads
//      share, is left to the first thread along it.
//
//   for b in 0..2 thread blockIdx.x {
//     alloc S: i32[1] in shared
//     S[0] = 0
//     for t in 0..256 thread threadIdx.x {
//       atomic + S[0], D[b, t] relaxed at cta
//       if t == 255 { G[b] = S[0] }
//     }
//   }
//
// becomes
//
//   for blockIdx.x in 0..2 thread blockIdx.x {
//     for threadIdx.x in 0..256 thread threadIdx.x {
//       alloc S: i32[1] in shared
//       if threadIdx.x == 0 { S[0] = 0i32 }
//       sync cta
//       atomic + S[0], D[blockIdx.x, threadIdx.x] relaxed at cta
//       sync cta
//       if threadIdx.x == 255 { G[blockIdx.x] = S[0] }
//     }
//   }
//
// A condition must not stand around a barrier that some threads would then miss. So Converter
// carries conditions down as guards (Together), past statements that hold barriers, and writes them
// around the pieces in between.

#include "loop/pass/threads/bind_threads.h"

#include <algorithm>

#include "dependence/access.h"
#include "loop/pass/host/split_kernel.h"
#include "loop/pass/threads/first_block.h"
#include "loop/pass/threads/launch_extents.h"
#include "loop/pass/threads/place_syncs.h"
#include "loop/pass/threads/repetitions.h"
#include "loop/pass/threads/share_loads.h"
#include "loop/pass/threads/thread_memory.h"
#include "loop/pass/threads/virtual_threads.h"
#include "loop/rewrite.h"
#include "loop/threads.h"

namespace tenon {

namespace {

constexpr int64_t kDefaultThreads = 128;

bool IsGpuKernel(const PrimFunc& func) {
  return func.func_kind == FuncKind::kKernel && !IsBound(func) && func.IsForDevice();
}

int RankOf(const For& loop) {
  return loop.for_kind == ForKind::kThread ? AxisRank(loop.thread) : -1;
}
int RankOf(const NodeRef& node) {
  const auto* loop = As<For>(node);
  return loop ? RankOf(*loop) : -1;
}

bool HasAxisLoop(const Stmt& stmt) {
  return AnyStmt(stmt, [&](const NodeRef& n) { return RankOf(n) >= 0; });
}

// Loops that are no axes of a launch: virtual threads side by side, parallel loops in order.
Stmt WithoutOtherLoops(const Stmt& body, NameSupply* names) {
  BufferSet made;
  PreOrder(body, [&](const NodeRef& n) {
    if (const auto* alloc = As<Alloc>(n)) made.insert(alloc->buffer.get());
    return !IsA<ExprNode>(n);
  });
  return PostOrderRewrite(body, [&](const NodeRef& n) -> NodeRef {
    const auto* loop = As<For>(n);
    if (!loop) return n;
    const bool virtual_thread = loop->thread == ThreadAxis::kVThread;
    if (!virtual_thread && loop->for_kind != ForKind::kParallel) return n;
    Stmt together = virtual_thread ? InterleaveVirtualThreads(*loop, made, names) : nullptr;
    if (together) return together;
    return For::Make(loop->var, loop->min, loop->extent, ForKind::kSerial, loop->body, loop->attrs);
  });
}

bool IsParallelLoop(const NodeRef& n) {
  const auto* loop = As<For>(n);
  return loop && loop->for_kind == ForKind::kParallel;
}

bool HasParallel(const Stmt& stmt) {
  return AnyStmt(stmt, [&](const NodeRef& n) { return IsParallelLoop(n); });
}

// Where no loop is bound: the iterations of outermost parallel loops become threads, in blocks of
// kDefaultThreads.
class DefaultBinding final : public ScopedRewriter {
 public:
  explicit DefaultBinding(const PrimFunc& func) : names_(func) {}

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    if (!IsParallelLoop(stmt)) return Children(stmt);
    const auto* loop = As<For>(stmt);
    Var block = VarNode::Make(names_.Fresh(loop->var->name + ".block"), DType::Index());
    Var thread = VarNode::Make(names_.Fresh(loop->var->name + ".thread"), DType::Index());
    Expr number = Expr(block) * kDefaultThreads + Expr(thread);
    Stmt body = Substitute(loop->body, VarMap{{loop->var.get(), loop->min + number}});
    body = If::Make(Lt(number, loop->extent), body);
    body = For::Make(thread, IndexConst(0), IndexConst(kDefaultThreads), ForKind::kThread, body, {},
                     ThreadAxis::kThreadIdxX);
    Expr blocks = (loop->extent + (kDefaultThreads - 1)) / kDefaultThreads;
    return For::Make(block, IndexConst(0), blocks, ForKind::kThread, body, {},
                     ThreadAxis::kBlockIdxX);
  }
  NameSupply names_;
};

// Takes the loops over axes out of a body; their variables become those of the launch. Under a loop
// over an axis (bound_) its iterations are the axis' threads; what no such loop is around is done
// by the first of them alone (alone_), but for what lanes do together.
class Converter {
 public:
  Converter(const PrimFunc& func, const Module& module, AxisExtents extents)
      : module_(module), names_(func), extents_(std::move(extents)) {
    Learn(func, &analyzer_);
    for (size_t i = 0; i < extents_.size(); ++i) {
      if (!extents_[i]) continue;
      vars_[i] = VarNode::Make(names_.Fresh(Name(AxisAt(i))), DType::Index());
      analyzer_.Bind(vars_[i], IndexConst(0), extents_[i]);
    }
  }

  Stmt operator()(const Stmt& body) {
    Stmt out = Together(body, {});
    if (!out) out = Seq::Make({});
    for (size_t i = extents_.size(); i-- > 0;) {
      if (!extents_[i]) continue;
      // The first thread must be there where it does what belongs to none of them.
      Expr extent = extents_[i];
      if (alone_[i]) extent = analyzer_.Simplify(Max(extent, IndexConst(1)));
      out = For::Make(vars_[i], IndexConst(0), extent, ForKind::kThread, out, {}, AxisAt(i));
    }
    return out;
  }

 private:
  struct Guard {
    Expr condition;
    int axis = -1;  // it keeps a loop over this axis to its extent; -1: a condition of the kernel
  };
  using Guards = std::vector<Guard>;

  static Expr AllOf(const Guards& guards) {
    std::vector<Expr> conditions;
    for (const Guard& g : guards) conditions.push_back(g.condition);
    return Conjunction(conditions);
  }

  static Stmt Guarded(const Guards& guards, const Stmt& stmt) {
    if (!stmt || guards.empty()) return stmt;
    return If::Make(AllOf(guards), stmt);
  }

  // Those that all threads which meet in the statement agree on.
  Guards OfAll(const Guards& guards, const Stmt& meeting) const {
    Guards out;
    for (const Guard& g : guards) {
      if (OneForAll(g.condition, meeting)) out.push_back(g);
    }
    return out;
  }

  bool OneForAll(const Expr& e, const Stmt& meeting) const {
    const Level level = HighestSync(meeting).value_or(Level::kCta);
    for (size_t i = FirstAxisOf(level); i < vars_.size(); ++i) {
      if (vars_[i] && UsesVar(e, vars_[i].get())) return false;
    }
    return true;
  }

  // A value that loads, for all threads that meet in what it is for: whoever the guards leave out
  // must not read, but where threads agree on a value they must go on to.
  Expr Protected(const Expr& value, const Guards& guards, const Stmt& meeting) const {
    if (IsPure(value)) return value;
    const Guards own = OneForAll(value, meeting) ? OfAll(guards, meeting) : guards;
    if (own.empty()) return value;
    Expr none = value->dtype.IsBool() ? BoolConst(false) : MakeConst(value->dtype, 0);
    return Select::Make(AllOf(own), value, none);
  }

  // A statement that all threads that meet in it walk through; `guards` say for whom it does
  // something. Where it holds a barrier, the guards go inside.
  Stmt Together(const Stmt& stmt, const Guards& guards) {
    if (!HasSync(stmt) && !Rebinds(stmt, guards)) return Guarded(guards, Apart(stmt));
    switch (stmt->kind) {
      case NodeKind::kFor: return ForTogether(*As<For>(stmt), guards);
      case NodeKind::kIf: return IfTogether(*As<If>(stmt), stmt, guards);
      case NodeKind::kLet: {
        const auto* let = As<Let>(stmt);
        return Let::Make(let->var, Protected(let->value, guards, stmt),
                         Together(let->body, guards));
      }
      case NodeKind::kSeq:
      case NodeKind::kAlloc:
      case NodeKind::kBind:
        return MapBodies(stmt, [&](const Stmt& s) { return Together(s, guards); });
      case NodeKind::kWhile:
        return While::Make(Protected(As<While>(stmt)->condition, guards, stmt),
                           Together(As<While>(stmt)->body, guards));
      default: return HasSync(stmt) ? stmt : Guarded(guards, Apart(stmt));
    }
  }

  // Loops over an axis that a guard is about are not under the guard.
  static bool Rebinds(const Stmt& stmt, const Guards& guards) {
    return AnyStmt(stmt, [&](const NodeRef& n) {
      const int rank = RankOf(n);
      return rank >= 0 && std::any_of(guards.begin(), guards.end(),
                                      [&](const Guard& g) { return g.axis == rank; });
    });
  }

  Stmt ForTogether(const For& loop, const Guards& guards) {
    if (RankOf(loop) >= 0) {
      return OnAxis(loop, [&](const Stmt& body, const Guards& own) {
        // Inside a loop over the same axis: what each of its threads would do, all do together.
        Guards all = own;
        for (const Guard& g : guards) {
          if (g.axis != RankOf(loop)) all.push_back(g);
        }
        return Together(body, all);
      });
    }
    if (OnceRank(loop) >= 0) return Once(loop, [&] { return Together(loop.body, guards); });
    analyzer_.Bind(loop.var, loop.min, loop.extent);
    return WithBody(loop, Together(loop.body, guards));
  }

  // A condition without loads moves inside, whether threads agree on it or not: they do after all
  // on a barrier.
  Stmt IfTogether(const If& node, const Stmt& stmt, const Guards& guards) {
    const bool loads = !IsPure(node.condition);
    if (loads || (OneForAll(node.condition, stmt) && guards.empty())) {
      Stmt yes = Together(node.then_body, guards);
      Stmt no = node.else_body ? Together(node.else_body, guards) : nullptr;
      return If::Make(Protected(node.condition, guards, stmt), yes, no);
    }
    Guards yes = guards, no = guards;
    yes.push_back({node.condition});
    no.push_back({Not(node.condition)});
    std::vector<Stmt> out{Together(node.then_body, yes)};
    if (node.else_body) out.push_back(Together(node.else_body, no));
    return Seq::Make(std::move(out));
  }

  template <class Body>
  Stmt OnAxis(const For& loop, Body body) {
    const auto axis = static_cast<size_t>(RankOf(loop));
    Expr var = vars_[axis];
    Guards guards;
    Expr inside = analyzer_.Simplify(Lt(var, loop.extent));
    if (!IsOne(inside)) guards.push_back({inside, static_cast<int>(axis)});
    ++bound_[axis];
    Expr value = IsZero(loop.min) ? var : loop.min + var;
    Stmt out = body(Substitute(loop.body, VarMap{{loop.var.get(), value}}), guards);
    --bound_[axis];
    return out;
  }

  // As if outside of all loops over the axis.
  template <class Body>
  Stmt Once(const For& loop, Body body) {
    int& bound = bound_[static_cast<size_t>(OnceRank(loop))];
    const int outer = std::exchange(bound, 0);
    Stmt out = body();
    bound = outer;
    return out;
  }

  // A statement without barriers.
  Stmt Apart(const Stmt& stmt) {
    const bool whole = !HasAxisLoop(stmt) && !WritesOwn(stmt);
    if (whole || !IsControl(stmt)) return Alone(stmt);
    if (const auto* loop = As<For>(stmt)) {
      if (RankOf(stmt) >= 0) {
        return OnAxis(*loop,
                      [&](const Stmt& body, const Guards& own) { return Together(body, own); });
      }
      if (OnceRank(*loop) >= 0) return Once(*loop, [&] { return Apart(loop->body); });
      analyzer_.Bind(loop->var, loop->min, loop->extent);
    }
    return MapBodies(stmt, [&](const Stmt& s) { return Apart(s); });
  }

  // Writes of a thread's own memory, or of its block's: which threads do them is said for each
  // statement.
  bool WritesOwn(const Stmt& stmt) const {
    auto own = [](const Buffer& b) { return HolderOf(b->scope) != Holder::kLaunch; };
    return !AccessesOf(stmt, module_, own).writes.empty();
  }

  // What writes memory that threads share is done once: by the first thread along each axis that
  // it is in no loop of. The lanes of a warp do their operations together.
  Stmt Alone(const Stmt& stmt) {
    const Accesses visible =
        AccessesOf(stmt, module_, [](const Buffer& b) { return !IsThreadPrivate(*b); });
    if (visible.writes.empty()) return stmt;
    Guards first;
    for (size_t i = 0; i < extents_.size(); ++i) {
      if (!extents_[i] || bound_[i] > 0) continue;
      if (static_cast<int>(i) == AxisRank(kLaneAxis) && LanesIn(stmt, module_) > 0) continue;
      alone_[i] = true;
      if (!IsOne(extents_[i])) first.push_back({Eq(Expr(vars_[i]), IndexConst(0))});
    }
    return Guarded(first, stmt);
  }

  const Module& module_;
  NameSupply names_;
  AxisExtents extents_;
  std::array<Var, kNumAxes> vars_;
  std::array<int, kNumAxes> bound_{};  // loops over each axis around
  std::array<bool, kNumAxes> alone_{};
  Analyzer analyzer_;
};

struct Launched {
  Stmt body;
  std::vector<std::string> refused;  // what threads would need and cannot have
};

Launched MakeLaunch(const Func& func, const Module& module, const Stmt& scheduled) {
  NameSupply names(*func);
  Stmt body = WithoutOtherLoops(scheduled, &names);
  const bool cooperative = func->attrs.Has(kCooperativeAttr);
  const size_t first = FirstAxisOf(cooperative ? Level::kGrid : Level::kCluster);
  for (size_t i = first; i < FirstAxisOf(Level::kCta); ++i)
    body = LeaveToFirstBlock(body, module, i, &names);
  LaunchExtents launch = LaunchExtentsOf(*func, module, body);
  if (!launch.refused.empty()) return {func->body, std::move(launch.refused)};
  body = MarkRepetitions(body, module, &names);
  SyncPlan plan = PlaceSyncs(*func, module, body, launch.extents, cooperative);
  body = Converter(*func, module, launch.extents)(plan.body);
  return {ShrinkThreadMemory(*func, body), std::move(plan.refused)};
}

// Parallel loops of a kernel that binds none; what threads make of them may need what no barrier
// gives, and then one thread does it all.
Launched LaunchByDefault(const Func& func, const Module& module, const PassContext& context) {
  Launched out = MakeLaunch(func, module, DefaultBinding(*func).Rewrite(func->body));
  if (out.refused.empty()) {
    context.Remark(func->name + ": no loop is bound; the iterations of its parallel loops are " +
                   "threads, in blocks of " + std::to_string(kDefaultThreads));
    return out;
  }
  context.Remark(func->name + ": no loop is bound, and its parallel loops cannot be by default (" +
                 out.refused.front() + "); one thread does everything");
  return MakeLaunch(func, module, func->body);
}

Func WithSharedFills(const Func& func, const Module& module, const PassContext& context) {
  SharedFills fills;
  const LaunchExtents launch = LaunchExtentsOf(*func, module, func->body);
  const Func out = WithBody(func, ShareLoads(*func, module, launch.extents, &fills));
  for (const std::string& name : fills.together) {
    context.Remark(func->name + ": '" + name +
                   "' in shared is loaded by all threads of a block together: its loops are bound "
                   "to no threads");
  }
  for (const std::string& name : fills.alone) {
    context.Remark(func->name + ": '" + name +
                   "' in shared is written by loops of one thread of a block alone: they are bound "
                   "to no threads, and what they do cannot be dealt out");
  }
  return out;
}

Func BindKernel(const Func& scheduled, const Module& module, const PassContext& context) {
  CheckDependentLaunch(*scheduled, context);
  const Func func = WithSharedFills(WithLaunchAttributes(scheduled), module, context);
  const bool axes = HasAxisLoop(func->body), parallel = HasParallel(func->body);
  if (axes && parallel)
    context.Remark(func->name + ": parallel loops beside bound ones run in order");
  Launched launch = parallel && !axes ? LaunchByDefault(func, module, context)
                                      : MakeLaunch(func, module, func->body);
  for (const std::string& what : launch.refused) context.Error(*func, what);
  PrimFunc fields = *func;
  fields.body = launch.body;
  fields.attrs.Set(kBoundAttr, int64_t{1});
  return PrimFunc::Make(std::move(fields));
}

}  // namespace

Module BindThreads(const Module& module, const PassContext& context) {
  return MapFuncs(module, [&](const Func& func) {
    return IsGpuKernel(*func) ? BindKernel(func, module, context) : func;
  });
}

}  // namespace tenon

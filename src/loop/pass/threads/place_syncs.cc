// Barriers from heads and tails.
//
// For each statement three things are kept, for each level at which threads can meet (a block, a
// cluster, the grid): what it touches before its first barrier (head), what it touches after its
// last one (tail), and whether every path through it has a barrier (always). A list of statements
// is walked once: where the tail so far conflicts with the head of the next statement (SyncAnalysis
// says so), a barrier goes between and the tail is empty. A loop is a list with itself: its own
// tail is held against the head of the next iteration. So each barrier stands as late as it can,
// and one serves all pairs across it. From
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
// where all threads touch S[0], comes (the launch around it is bind_threads' work)
//
//   if threadIdx.x == 0 { S[0] = 0i32 }
//   sync cta
//   atomic + S[0], D[blockIdx.x, threadIdx.x] relaxed at cta
//   sync cta
//   if threadIdx.x == 255 { G[blockIdx.x] = S[0] }
//
// A barrier that some threads do not reach hangs. Loops and conditions whose bounds differ among
// the threads of a level are therefore remembered as the reason why none can stand inside
// (blocked_); a barrier that would be needed there is refused with that reason. A condition that
// loads nothing is no such reason, since the converter moves it inwards.

#include "loop/pass/threads/place_syncs.h"

#include <fmt/format.h>

#include <algorithm>

#include "dependence/variance.h"
#include "loop/pass/threads/repetitions.h"
#include "loop/pass/threads/sync_analysis.h"
#include "loop/rewrite.h"

namespace tenon {

bool IsThreadPrivate(const BufferNode& buffer) {
  return HolderOf(buffer.scope) == Holder::kThread || HolderOf(buffer.scope) == Holder::kWarp;
}

std::optional<Level> HighestSync(const Stmt& stmt) {
  std::optional<Level> found;
  PreOrder(stmt, [&](const NodeRef& n) {
    const auto* sync = As<Sync>(n);
    if (sync && (!found || sync->level > *found)) found = sync->level;
    return !IsA<ExprNode>(n);
  });
  return found;
}

bool HasSync(const Stmt& stmt) { return HighestSync(stmt).has_value(); }

namespace {

// What a statement does around its barriers, for each level.
struct Flow {
  Stmt stmt;
  std::array<AccessList, kNumSyncLevels> head = {},
                                         tail = {};  // before the first barrier, after the last
  std::array<bool, kNumSyncLevels> always = {};      // there is one on every path
};

void Append(AccessList* to, const AccessList& from) {
  to->insert(to->end(), from.begin(), from.end());
}

// One body. Behind Walk(s), for each level: between any two conflicting accesses in s stands a
// barrier of that level, or the reason why none can stand there is in refused_; head and tail are
// what a barrier around s would still have to order.
class Placer {
 public:
  Placer(const PrimFunc& func, const Module& module, const Stmt& body, const AxisExtents& extents,
         bool cooperative)
      : module_(module), body_(body), analysis_(func, module, extents, body_) {
    bool clusters = false;
    for (size_t i = FirstAxisOf(Level::kCluster); i < FirstAxisOf(Level::kCta); ++i)
      clusters |= extents[i] != nullptr;
    levels_.push_back(0);
    if (clusters) levels_.push_back(1);
    if (cooperative) levels_.push_back(2);
  }

  SyncPlan operator()() {
    Stmt placed = Walk(body_).stmt;
    CheckPairs();
    CheckRaces();
    return {placed, std::move(refused_)};
  }

 private:
  // ---- what no barrier helps ----

  // Data that crosses blocks which cannot wait for each other, or threads through their own memory,
  // or shared memory of which each thread needs a copy.
  void CheckPairs() {
    const AccessList& all = analysis_.all;
    for (size_t i = 0; i < all.size(); ++i) {
      for (size_t j = i; j < all.size(); ++j) {
        if (SyncAnalysis::Depend(all[i], all[j]) && CheckPair(all[i], all[j])) return;
      }
    }
  }

  // One element written by many at once: no barrier says whose value stays.
  void CheckRaces() {
    for (size_t i = 0; refused_.empty() && i < analysis_.all.size(); ++i) {
      const SyncAccess& a = analysis_.all[i];
      for (size_t axis = 0; refused_.empty() && axis < kNumAxes; ++axis) {
        if (!analysis_.Races(a, axis)) continue;
        const For& loop = *a.binders[axis].loop;
        Refuse("buffer " + a.buffer->name + ": one element is written by all iterations of loop '" +
               loop.var->name + "' over " + Name(loop.thread) +
               ": expected an atomic update, or an element for each");
      }
    }
  }

  // Within one loop over the axis: each iteration may have its own values in elements that others
  // write as well. (Where each element has one writer, it is the one who reads it. An author of
  // barriers speaks of threads.)
  bool NeedsCopies(const SyncAccess& a, const SyncAccess& b, size_t axis) {
    const For* loop = a.binders[axis].loop;
    if (!analysis_.MadeOnce(a.buffer, axis, a.binders[axis]) || HasSync(loop->body)) return false;
    return (a.write && b.write) ||
           std::any_of(analysis_.all.begin(), analysis_.all.end(), [&](const SyncAccess& other) {
             return other.buffer == a.buffer && other.write && other.binders[axis].loop != loop;
           });
  }

  // Whether a barrier is to be had for blocks that differ along the axis.
  bool BlocksMeet(size_t axis) const {
    const size_t level = axis < FirstAxisOf(Level::kCluster) ? 2 : 1;
    return std::find(levels_.begin(), levels_.end(), level) != levels_.end();
  }

  bool CheckPair(const SyncAccess& a, const SyncAccess& b) {
    if (a.arrival) return false;  // the copy is checked
    for (size_t axis = 0; axis < kNumAxes; ++axis) {
      const bool own = IsThreadPrivate(*a.buffer);
      const bool block =
          IsBlockRank(axis) && !(a.buffer->scope == Scope::kGlobal && BlocksMeet(axis));
      if (own && a.write && b.write) continue;
      const Binder &x = a.binders[axis], &y = b.binders[axis];
      const bool copies = x.loop && x.loop == y.loop && NeedsCopies(a, b, axis);
      if (!block && !own && !copies) continue;
      const bool once = !x.repeated || analysis_.MadeInside(a.buffer, x);
      if (analysis_.SameThread(a, b, axis, once ? x.depth + 1 : 0)) continue;
      Refuse(Crossing(*a.buffer, axis, copies));
      return true;
    }
    return false;
  }

  std::string Crossing(const BufferNode& b, size_t axis, bool copies) const {
    const std::string what = "buffer " + b.name;
    if (copies) {
      return what + " in " + Name(b.scope) + " is made for each " +
             (IsBlockRank(axis)
                  ? "block of threads: expected it in shared or local"
                  : "thread: expected it in local, or the alloc outside of the loop over threads, "
                    "where it is the block's");
    }
    if (!IsBlockRank(axis)) {
      return what + " in " + Name(b.scope) +
             " is written by one thread and read by another: expected it in shared";
    }
    if (b.scope == Scope::kShared && IsClusterAxis(AxisAt(axis))) {
      return "unsupported: buffer " + b.name +
             " in shared is written by one block of a cluster and touched by another: expected it "
             "in global";
    }
    if (b.scope != Scope::kGlobal && BlocksMeet(axis)) {
      return what + " in " + Name(b.scope) +
             " is written by one block of threads and touched by another: expected it in global";
    }
    return what +
           " is written by one block of threads and touched by another: "
           "blocks cannot wait for each other" +
           (b.scope == Scope::kGlobal
                ? ""
                : "; compute_at puts what fills it into the block that reads it");
  }

  void Refuse(const std::string& what) {
    if (std::find(refused_.begin(), refused_.end(), what) == refused_.end())
      refused_.push_back(what);
  }

  // ---- control flow ----

  // True when all threads that meet at the level see the same value. Of memory that is written, one
  // block may see another value than the next.
  bool IsUniform(const Expr& e, size_t level) const {
    bool uniform = true;
    PreOrder(e, [&](const NodeRef& n) {
      if (const auto* load = As<Load>(n)) {
        uniform &= !IsThreadPrivate(*load->buffer);
        uniform &= level == 0 || !analysis_.IsWritten(load->buffer);
      }
      if (IsA<VarNode>(n)) uniform &= analysis_.varying[level].count(n.get()) == 0;
      return uniform;
    });
    return uniform;
  }
  static bool LoadsNothing(const Expr& e) {
    bool loads = false;
    PreOrder(e, [&](const NodeRef& n) {
      loads |= IsA<Load>(n);
      return !loads;
    });
    return !loads && IsPure(e);
  }

  // From now on no barrier can stand at levels at which the values differ.
  using Blocked = std::array<std::string, kNumSyncLevels>;
  template <class Uniform>
  Blocked Block(const std::string& where, const std::string& differs, Uniform uniform) {
    static constexpr const char* kWho[] = {"thread", "block", "block"};
    Blocked outer = blocked_;
    for (size_t level : levels_) {
      if (!uniform(level))
        blocked_[level] = fmt::format("{} {} by {}", where, differs, kWho[level]);
    }
    return outer;
  }

  Stmt Barrier(const SyncAccess& why, size_t level) {
    if (blocked_[level].empty()) return Sync::Make(kSyncLevels[level]);
    Refuse("buffer " + why.buffer->name + " needs a barrier " + blocked_[level]);
    return nullptr;
  }

  // A barrier of more threads is one of fewer, too.
  static void Pass(Flow* flow, size_t level) {
    for (size_t l = 0; l <= level; ++l) {
      flow->tail[l].clear();
      flow->always[l] = true;
    }
  }

  Flow Plain(const Stmt& stmt, const AccessList& own) const {
    Flow flow{stmt};
    for (size_t level : levels_) flow.head[level] = flow.tail[level] = own;
    return flow;
  }

  Flow Walk(const Stmt& stmt) {
    switch (stmt->kind) {
      case NodeKind::kSeq: return InOrder({}, As<Seq>(stmt)->stmts);
      case NodeKind::kFor: return OnFor(*As<For>(stmt));
      case NodeKind::kIf: return OnIf(*As<If>(stmt));
      case NodeKind::kWhile: return OnWhile(*As<While>(stmt));
      case NodeKind::kLet: return OnLet(*As<Let>(stmt));
      case NodeKind::kAlloc: {
        const auto* alloc = As<Alloc>(stmt);
        analysis_.alloc_depth[alloc->buffer.get()] = depth_;
        Flow flow = Walk(alloc->body);
        flow.stmt = Alloc::Make(alloc->buffer, flow.stmt);
        return flow;
      }
      case NodeKind::kBind: {
        const auto* bind = As<Bind>(stmt);
        Flow flow = Walk(bind->body);
        flow.stmt = Bind::Make(bind->buffer, bind->data, flow.stmt);
        return flow;
      }
      case NodeKind::kSync: return OnSync(stmt);
      default: return Plain(stmt, analysis_.Collect(stmt));
    }
  }

  // An author's own.
  Flow OnSync(const Stmt& stmt) {
    Flow flow{stmt};
    const auto at = std::find(kSyncLevels.begin(), kSyncLevels.end(), As<Sync>(stmt)->level);
    if (at == kSyncLevels.end()) return flow;
    const auto level = static_cast<size_t>(at - kSyncLevels.begin());
    if (!blocked_[level].empty()) Refuse("a barrier stands " + blocked_[level]);
    Pass(&flow, level);
    return flow;
  }

  Flow OnLet(const Let& let) {
    for (size_t level : levels_) {
      if (!IsUniform(let.value, level)) analysis_.varying[level].insert(let.var.get());
    }
    if (IsPure(let.value) && LoadsNothing(let.value) && !let.var->dtype.IsFloat())
      analysis_.analyzer.BindValue(let.var, let.value);
    around_.push_back(let.value);
    Flow flow = InOrder(analysis_.Collect(let.value), {let.body});
    around_.pop_back();
    flow.stmt = Let::Make(let.var, let.value, flow.stmt);
    return flow;
  }

  // `first`, then the statements, with barriers between them.
  Flow InOrder(const AccessList& first, const std::vector<Stmt>& stmts) {
    std::vector<Stmt> out;
    Flow all = Plain(nullptr, first);
    for (const Stmt& s : stmts) {
      Flow flow = Walk(s);
      for (size_t i = levels_.size(); i-- > 0;) {
        const size_t level = levels_[i];
        const SyncAccess* why =
            analysis_.Conflict(all.tail[level], flow.head[level], depth_, depth_, level);
        Stmt barrier = why ? Barrier(*why, level) : nullptr;
        if (!barrier) continue;
        out.push_back(barrier);
        Pass(&all, level);
      }
      for (size_t level : levels_) {
        if (!all.always[level]) Append(&all.head[level], flow.head[level]);
        if (flow.always[level]) all.tail[level].clear();
        all.always[level] |= flow.always[level];
        Append(&all.tail[level], flow.tail[level]);
      }
      out.push_back(flow.stmt);
    }
    all.stmt = Seq::Make(std::move(out));
    return all;
  }

  Flow OnFor(const For& loop) {
    const AccessList bounds = analysis_.Collect(loop.extent);
    const int rank = loop.for_kind == ForKind::kThread ? AxisRank(loop.thread) : -1;
    std::array<bool, kNumSyncLevels> uniform = {};
    for (size_t level : levels_) {
      uniform[level] = IsUniform(loop.min, level) && IsUniform(loop.extent, level);
      const bool apart = rank >= 0 && static_cast<size_t>(rank) >= FirstAxisOf(kSyncLevels[level]);
      if (!uniform[level] || apart) analysis_.varying[level].insert(loop.var.get());
    }
    analysis_.analyzer.Bind(loop.var, loop.min, loop.extent);
    if (OnceRank(loop) >= 0) return OnOnce(loop, static_cast<size_t>(OnceRank(loop)));
    const size_t depth = depth_++;
    analysis_.loop_depth[loop.var.get()] = depth;
    analysis_.loops[loop.var.get()] = &loop;
    Flow flow =
        rank >= 0 ? OnAxis(loop, static_cast<size_t>(rank), depth) : OnSerial(loop, uniform, depth);
    --depth_;
    for (size_t level : levels_)
      flow.head[level].insert(flow.head[level].begin(), bounds.begin(), bounds.end());
    return flow;
  }

  Flow OnOnce(const For& loop, size_t axis) {
    Binder outer = std::exchange(analysis_.binders[axis], Binder{});
    Flow flow = Walk(loop.body);
    analysis_.binders[axis] = outer;
    flow.stmt = WithBody(loop, flow.stmt);
    return flow;
  }

  Flow OnAxis(const For& loop, size_t axis, size_t depth) {
    Binder& binder = analysis_.binders[axis];
    if (const For* outer = binder.loop) CheckRepeats(loop, *outer, binder.around);
    Binder outer = std::exchange(
        binder, Binder{&loop, depth, around_.size(), repeating_ > 0, analysis_.conditions});
    Flow flow = Walk(loop.body);
    analysis_.binders[axis] = outer;
    flow.stmt = WithBody(loop, flow.stmt);
    return flow;
  }

  // All threads together do what each iteration of `outer` would do in full, so that must be the
  // same for all of these.
  void CheckRepeats(const For& loop, const For& outer, size_t around) {
    const Variance& variance =
        variance_.try_emplace(&outer, Variance(outer.var, outer.body, &module_)).first->second;
    bool differs = variance.Differs(loop.body) || variance.Differs(loop.extent);
    for (size_t i = around; i < around_.size(); ++i) differs |= variance.Differs(around_[i]);
    if (!differs) return;
    Refuse("loop '" + loop.var->name + "' over " + Name(loop.thread) +
           " does other things in each " + "iteration of loop '" + outer.var->name +
           "', which is over " + Name(loop.thread) +
           " too: within a nest an axis is bound once, but for stages that all threads do alike");
  }

  Flow OnSerial(const For& loop, const std::array<bool, kNumSyncLevels>& uniform, size_t depth) {
    Blocked outer = Block("in loop '" + loop.var->name + "', whose bounds", "differ",
                          [&](size_t level) { return uniform[level]; });
    ++repeating_;
    around_.push_back(loop.min);
    around_.push_back(loop.extent);
    Flow flow = Walk(loop.body);
    around_.resize(around_.size() - 2);
    --repeating_;
    BetweenIterations(&flow,
                      [&](size_t level) { return ConflictWithNext(flow, loop, depth, level); });
    blocked_ = std::move(outer);
    flow.stmt = WithBody(loop, flow.stmt);
    const bool runs = analysis_.analyzer.CanProve(Gt(loop.extent, IndexConst(0)));
    for (bool& always : flow.always) always &= runs;
    return flow;
  }

  // A conflict between one iteration and those that follow it. Where each has a barrier, that is
  // the next one.
  const SyncAccess* ConflictWithNext(const Flow& flow, const For& loop, size_t depth,
                                     size_t level) {
    if (!flow.always[level])
      return analysis_.Conflict(flow.tail[level], flow.head[level], depth, depth, level);
    AccessList next = flow.head[level];
    for (SyncAccess& a : next) {
      for (Expr& e : a.fixed)
        e = e ? Substitute(e, VarMap{{loop.var.get(), Expr(loop.var) + 1}}) : nullptr;
    }
    return analysis_.Conflict(flow.tail[level], next, depth, depth + 1, level);
  }

  // Barriers at the end of each iteration, where the next depends on it.
  template <class Find>
  void BetweenIterations(Flow* flow, Find conflict) {
    for (size_t i = levels_.size(); i-- > 0;) {
      const SyncAccess* why = conflict(levels_[i]);
      Stmt barrier = why ? Barrier(*why, levels_[i]) : nullptr;
      if (!barrier) continue;
      flow->stmt = Seq::Make({flow->stmt, barrier});
      Pass(flow, levels_[i]);
    }
  }

  Flow OnIf(const If& node) {
    const AccessList condition = analysis_.Collect(node.condition);
    const bool moves = LoadsNothing(node.condition);
    Blocked outer = Block("under a condition that", "differs",
                          [&](size_t level) { return moves || IsUniform(node.condition, level); });
    around_.push_back(node.condition);
    ++analysis_.conditions;
    Flow yes = InOrder(condition, {node.then_body});
    Flow no = Plain(nullptr, condition);
    if (node.else_body) no = InOrder(condition, {node.else_body});
    --analysis_.conditions;
    around_.pop_back();
    blocked_ = std::move(outer);
    yes.stmt = If::Make(node.condition, yes.stmt, no.stmt);
    for (size_t level : levels_) {
      Append(&yes.head[level], no.head[level]);
      Append(&yes.tail[level], no.tail[level]);
      yes.always[level] &= no.always[level];
    }
    return yes;
  }

  Flow OnWhile(const While& node) {
    const AccessList condition = analysis_.Collect(node.condition);
    Blocked outer = Block("in a while loop whose condition", "differs",
                          [&](size_t level) { return IsUniform(node.condition, level); });
    const size_t depth = depth_++;
    ++repeating_;
    around_.push_back(node.condition);
    ++analysis_.conditions;
    Flow flow = InOrder(condition, {node.body});
    --analysis_.conditions;
    around_.pop_back();
    --repeating_;
    --depth_;
    BetweenIterations(&flow, [&](size_t level) {
      return analysis_.Conflict(flow.tail[level], flow.head[level], depth, depth, level);
    });
    blocked_ = std::move(outer);
    flow.stmt = While::Make(node.condition, flow.stmt);
    for (size_t level : levels_) Append(&flow.tail[level], condition);
    flow.always = {};
    return flow;
  }

  const Module& module_;
  const Stmt body_;
  SyncAnalysis analysis_;
  std::vector<size_t> levels_;  // of kSyncLevels: those at which this kernel's threads can meet
  std::unordered_map<const For*, Variance> variance_;
  std::vector<Expr> around_;  // conditions, bounds and values of lets around
  size_t depth_ = 0;          // loops around
  int repeating_ = 0;         // serial ones among them
  Blocked blocked_;           // why no barrier can stand here, by level; "": it can
  std::vector<std::string> refused_;
};

}  // namespace

SyncPlan PlaceSyncs(const PrimFunc& func, const Module& module, const Stmt& body,
                    const AxisExtents& extents, bool cooperative) {
  return Placer(func, module, body, extents, cooperative)();
}

}  // namespace tenon

// A list of what has been touched since the last barrier, in bytes.
//
// After this pass all workers run the host function, each doing its part of every kernel, and
// nobody waits unless told to. A piece of work may start while others are still in the one before
// it, so a barrier has to stand between two pieces where one touches bytes that the other writes.
// Values have lost their identity by now, on purpose: plan_storage has let values that are never
// needed together share bytes of the arena, and it is bytes that must not be overwritten too early.
// So each piece is a list of stretches [first, end) of some root (the arena, a parameter, the
// weights), whose ends are expressions where dims are open, and a barrier is put before a piece
// that is not known to keep clear of what is pending; it empties the list. Two pieces that worker 0
// does alone are in its own order and never clash. From
//
//   launch @k(x, t0) on host
//   launch @k(x, t1) on host
//   launch @k(t0, y) on host
//   launch @k(t1, z) on host
//
// comes, with one barrier for two dependences,
//
//   bind arena.f32: f32[64] align 64 = arena
//   call @k(x, arena.f32[0..32])
//   call @k(x, arena.f32[32..64])
//   sync team
//   call @k(arena.f32[0..32], y)
//   call @k(arena.f32[32..64], z)
//
// Around control flow the list is emptied by a barrier on each border: which branch is taken, and
// how often a loop runs, would otherwise have to be followed. A branch that dims decide (variants
// of one kernel) needs none: each side goes on with the list, and behind it both lists count.
//
// A loop of launches (a recurrent network's steps) that one worker is done with while a team would
// wait is worker 0's as a whole, `if team_rank() == 0`, and the team meets behind it. Each worker's
// share of what a turn does would be less than its barriers.

#include "loop/pass/host/lower_team.h"

#include "arith/analyzer.h"
#include "arith/expr_ids.h"
#include "dependence/access.h"
#include "loop/pass/host/time_launches.h"
#include "loop/pass/packed_abi.h"
#include "loop/rewrite.h"
#include "loop/team.h"
#include "loop/workspace.h"

namespace tenon {

namespace {

// Bytes [first, end) of something that has an address: a variable holding a handle, a parameter,
// the weights.
struct Stretch {
  const Node* root;
  Expr first, end;  // null: all of it
  bool write;
  bool first_worker;  // only worker 0 touches it
};

// What a piece of work touches.
using Touched = std::vector<Stretch>;

// What plan_storage says of a kernel.
struct KernelFacts {
  bool known = false;
  std::vector<bool> reads, writes;  // per buffer parameter
  bool parallel = true;
  Expr team_width;                         // null: not known
  std::optional<int64_t> workspace_bytes;  // none: dims decide
};

KernelFacts FactsOf(const Func& kernel, int64_t max_team) {
  KernelFacts facts;
  if (!kernel || !kernel->attrs.Has("writes")) return facts;
  facts.known = true;
  facts.reads.resize(kernel->buffers.size());
  facts.writes.resize(kernel->buffers.size());
  for (int64_t i : kernel->attrs.GetInts("reads")) facts.reads.at(static_cast<size_t>(i)) = true;
  for (int64_t i : kernel->attrs.GetInts("writes")) facts.writes.at(static_cast<size_t>(i)) = true;
  facts.parallel = kernel->attrs.Get<bool>("parallel", true);
  facts.team_width = TeamWidthOf(*kernel);
  facts.workspace_bytes = AsInt(WorkspaceOf(*kernel, max_team));
  return facts;
}

// What launches are for a team.
struct Effort {
  Expr alone = IndexConst(0);  // what they take on one worker, as kAlone; null: not known
  Expr waits = IndexConst(0);  // barriers; null: not known
  Expr width = IndexConst(1);  // workers that the widest of them has work for; null: not known
  bool parallel = false;       // any of them
};

// One host function. `pending_` is all that workers may still be doing when the next piece begins:
// what was touched since the last barrier that all of them pass.
class TeamBody {
 public:
  TeamBody(const Func& func, const Module& module, const PassContext& context)
      : module_(module), context_(context), names_(*func), fields_(*func) {
    Learn(*func, &analyzer_);
  }

  Func operator()() {
    // Launches on a device are one thread's, in their order.
    if (!fields_.attrs.Has(packed::kDeviceTypeAttr)) fields_.body = Lower(fields_.body);
    Wait();  // for the last to be done
    const Expr alone = effort_.parallel ? IsQuickerAlone(effort_) : BoolConst(true);
    Expr width = effort_.width;
    if (IsOne(alone)) {
      fields_.attrs.Set("max_team", int64_t{1});
    } else if (!IsZero(alone)) {
      const Expr all = IndexConst(std::numeric_limits<int32_t>::max());
      width = Select::Make(alone, IndexConst(1), width ? width : all);
    }
    if (effort_.parallel && width) SetTeamWidth(Simplify(width), &fields_);
    return PrimFunc::Make(std::move(fields_));
  }

 private:
  Stmt Lower(const Stmt& stmt) {
    switch (stmt->kind) {
      case NodeKind::kSeq:
      case NodeKind::kAlloc: return MapBodies(stmt, [&](const Stmt& s) { return Lower(s); });
      case NodeKind::kLet: {
        const auto* let = As<Let>(stmt);
        return WithSync(Reads(let->value),
                        [&] { return Let::Make(let->var, let->value, Lower(let->body)); });
      }
      case NodeKind::kBind: return OnBind(*As<Bind>(stmt));
      case NodeKind::kLaunch: return OnLaunch(*As<Launch>(stmt), stmt);
      case NodeKind::kIf:
        if (IsUniform(*As<If>(stmt))) return OnBranches(*As<If>(stmt));
        [[fallthrough]];
      case NodeKind::kFor:
      case NodeKind::kWhile: return Launches(stmt) ? OnControl(stmt) : OnFirstWorker(stmt);
      case NodeKind::kAssert:
        return WithSync(Reads(As<Assert>(stmt)->condition), [&] { return stmt; });
      case NodeKind::kReturn: return stmt;
      default: return OnFirstWorker(stmt);
    }
  }

  // Whether `a` ends before `b` begins, for all sizes.
  bool IsBelow(const Stretch& a, const Stretch& b) {
    const auto end = AsInt(a.end), first = AsInt(b.first);
    if (end && first) return *end <= *first;
    const uint64_t places = uint64_t{ids_.Of(a.end)} << 32 | ids_.Of(b.first);
    const auto [known, is_new] = below_.try_emplace(places, false);
    if (is_new) known->second = analyzer_.CanProve(Le(a.end, b.first));
    return known->second;
  }

  bool Clash(const Stretch& a, const Stretch& b) {
    if (a.root != b.root || (!a.write && !b.write) || (a.first_worker && b.first_worker))
      return false;
    return !a.first || !b.first || (!IsBelow(a, b) && !IsBelow(b, a));
  }

  bool Clash(const Touched& a, const Touched& b) {
    return std::any_of(a.begin(), a.end(), [&](const Stretch& x) {
      return std::any_of(b.begin(), b.end(), [&](const Stretch& y) { return Clash(x, y); });
    });
  }

  template <class F>
  Stmt WithSync(const Touched& now, F&& make) {
    bool sync = Clash(pending_, now);
    if (sync) pending_.clear();
    if (sync) Wait();
    pending_.insert(pending_.end(), now.begin(), now.end());
    Stmt out = make();
    return sync ? Seq::Make({Sync::Make(Level::kTeam), out}) : out;
  }

  Stmt OnBind(const Bind& bind) {
    base_[bind.buffer.get()] = AddressOf(bind.data);
    return Bind::Make(bind.buffer, bind.data, Lower(bind.body));
  }

  Stmt OnLaunch(const Launch& launch, const Stmt& stmt) {
    if (!launch.place.IsHost()) return stmt;
    const KernelFacts& kernel = Facts(launch.kernel);
    effort_.parallel |= kernel.parallel;
    TakesAlone(launch);
    if (kernel.parallel) Widen(launch, kernel.team_width);
    Touched now;
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      bool reads = !kernel.known || kernel.reads[i], writes = !kernel.known || kernel.writes[i];
      if (reads || writes) now.push_back(StretchOf(*launch.buffers[i], writes, !kernel.parallel));
    }
    for (const Expr& s : launch.scalars) {
      if (s->dtype.IsHandle()) now.push_back(WorkspaceOf(s, kernel));
    }
    return WithSync(now, [&] { return IsTimed(launch) ? OnTimed(launch) : CallOf(launch); });
  }

  // Between barriers, so that the time is that of this launch and of all of it. What is decided by
  // barriers is decided as if these were not there.
  Stmt OnTimed(const Launch& launch) {
    const Stmt sync = Sync::Make(Level::kTeam);
    return Seq::Make({sync, Timed(launch, names_.Fresh("begin"), Seq::Make({CallOf(launch), sync}),
                                  IsFirstWorker())});
  }

  static Stmt CallOf(const Launch& launch) {
    return CallFunc::Make(launch.kernel, launch.buffers, launch.scalars);
  }

  // Adds what the launch takes on one worker at the function's dims.
  void TakesAlone(const Launch& launch) {
    const std::vector<int64_t> time = launch.attrs.GetInts(kAlone);
    const Expr elements = ElementsOfOpenSize(launch.buffers);
    Expr& alone = effort_.alone;
    const bool known = alone && time.size() == 2 && (time[1] == 0 || IsOfDims(elements, fields_));
    alone = known ? analyzer_.Simplify(alone + IndexConst(time[0]) + elements * IndexConst(time[1]))
                  : nullptr;
  }

  // Where so many barriers take as long as one worker needs for the half of all launches that two
  // would save: a condition on dims. With more workers there is more to save, and barriers are
  // longer.
  Expr IsQuickerAlone(const Effort& effort) {
    if (!effort.alone || !effort.waits) return BoolConst(false);
    constexpr int64_t kPair = 2;
    const Expr team = effort.waits * IndexConst(kPair * static_cast<int64_t>(kAloneUnits));
    return analyzer_.Simplify(Le(effort.alone, team));
  }

  void Wait() { effort_.waits = Sum(effort_.waits, IndexConst(1), IndexConst(1)); }

  // a + times * b; null: not known.
  Expr Sum(const Expr& a, const Expr& times, const Expr& b) {
    return a && times && b ? analyzer_.Simplify(a + times * b) : nullptr;
  }

  // The one, and then the other so many times (null: not known).
  Effort After(const Effort& a, const Expr& times, const Effort& b) {
    return {Sum(a.alone, times, b.alone), Sum(a.waits, times, b.waits), Wider(a.width, b.width),
            a.parallel || b.parallel};
  }

  static Effort Either(const Expr& condition, const Effort& a, const Effort& b) {
    return {Taken(condition, a.alone, b.alone), Taken(condition, a.waits, b.waits),
            Taken(condition, a.width, b.width), a.parallel || b.parallel};
  }

  // The team is as large as the widest launch has work for.
  void Widen(const Launch& launch, const Expr& width) {
    Func kernel = module_.Find(launch.kernel);
    VarMap dims;
    for (size_t i = 0; kernel && i < kernel->dims.size(); ++i) {
      dims[kernel->dims[i].get()] = launch.scalars[i];
    }
    Expr here = width ? Substitute(width, dims) : nullptr;
    effort_.width = Wider(effort_.width, here && IsOfDims(here, fields_) ? here : nullptr);
  }

  // Not known, too, where so many differ that asking for all of them is no longer worth it.
  Expr Wider(const Expr& a, const Expr& b) {
    if (!a || !b) return nullptr;
    constexpr int kMost = 64;
    const Expr both = analyzer_.Simplify(Max(a, b));
    int choices = 0;
    PreOrder(both, [&](const NodeRef& n) {
      const auto* binary = As<Binary>(n);
      if (binary && binary->op == BinaryOp::kMax) ++choices;
      return true;
    });
    return choices <= kMost ? both : nullptr;
  }

  // Control flow around launches: nothing is pending at its borders, and a loop's iterations are a
  // barrier apart. What a condition reads is then the same for all workers.
  Stmt OnControl(const Stmt& stmt) {
    const bool was_pending = !pending_.empty();
    if (was_pending) Wait();
    const Effort before = std::exchange(effort_, Effort());
    auto closed = [&](const Stmt& body, Touched read = {}) {
      if (!body) return body;
      pending_ = std::move(read);
      Stmt out = Lower(body);
      if (pending_.empty()) return out;
      Wait();
      return Seq::Make({out, Sync::Make(Level::kTeam)});
    };
    Stmt out;
    if (const auto* node = As<If>(stmt)) {
      out = OnIf(*node, closed);
      effort_ = After(before, IndexConst(1), effort_);
    } else if (const auto* loop = As<For>(stmt)) {
      out = OnLoop(*loop, closed(loop->body), before);
    } else {
      // A worker may still be reading the condition when another has begun with the body.
      const auto* node = As<While>(stmt);
      out = While::Make(node->condition, closed(node->body, Reads(node->condition)));
      effort_ = After(before, nullptr, effort_);
    }
    pending_.clear();
    return was_pending ? Seq::Make({Sync::Make(Level::kTeam), out}) : out;
  }

  // `by_team` is its body, of which the effort is known.
  Stmt OnLoop(const For& loop, Stmt by_team, const Effort& before) {
    const Expr alone = MayBeAlone(loop) ? IsQuickerAlone(effort_) : BoolConst(false);
    const Effort turn = std::exchange(effort_, Effort());
    const Effort turns =
        After(Effort(), IsOfDims(loop.extent, fields_) ? loop.extent : nullptr, turn);
    Stmt out = WithBody(loop, std::move(by_team));
    if (IsOne(alone)) {
      out = OnOneWorker(loop);
    } else if (IsZero(alone)) {
      effort_ = turns;
    } else {
      const Stmt copy = FreshCopy(WithBody(loop, loop.body), {}, &names_);
      const Stmt by_one = OnOneWorker(*As<For>(copy));
      effort_ = Either(alone, effort_, turns);
      out = If::Make(alone, by_one, out);
    }
    effort_ = After(before, IndexConst(1), effort_);
    return out;
  }

  // Nothing in it ends the call, which the others would not hear of, and it ends by itself.
  static bool MayBeAlone(const For& loop) {
    return !AnyStmt(loop.body, [](const NodeRef& n) {
      return n->kind == NodeKind::kAssert || n->kind == NodeKind::kReturn ||
             n->kind == NodeKind::kWhile || n->kind == NodeKind::kEvaluate ||
             n->kind == NodeKind::kCallFunc;
    });
  }

  // After so many turns all meet, which is where a call that is to end does.
  Stmt OnOneWorker(const For& loop) {
    constexpr int64_t kTurns = 64;
    const std::optional<int64_t> extent = AsInt(loop.extent);
    auto turns = [&](const Expr& min, const Expr& count) {
      const Stmt all = For::Make(loop.var, min, count, loop.for_kind, Calls(loop.body), loop.attrs);
      return Seq::Make({If::Make(IsFirstWorker(), all), Sync::Make(Level::kTeam)});
    };
    effort_.waits = IndexConst(1);
    if (extent && *extent <= kTurns) return turns(loop.min, loop.extent);
    const Var block = VarNode::Make(names_.Fresh(loop.var->name + ".block"), DType::Index());
    const Expr first = block * IndexConst(kTurns);
    const Expr blocks = analyzer_.Simplify(CeilDiv(loop.extent, IndexConst(kTurns)));
    effort_.waits = IsOfDims(blocks, fields_) ? blocks : nullptr;
    return For::Make(block, IndexConst(0), blocks, ForKind::kSerial,
                     turns(loop.min + first, Min(IndexConst(kTurns), loop.extent - first)));
  }

  // Launches as calls by this one worker, in their order.
  Stmt Calls(const Stmt& stmt) {
    return MapStmts(stmt, [&](const Stmt& s) {
      const auto* launch = As<Launch>(s);
      if (!launch) return s;
      const Stmt call = CallOf(*launch);
      return IsTimed(*launch) ? Timed(*launch, names_.Fresh("begin"), call, nullptr) : call;
    });
  }

  // Dims decide, for all workers alike, which launches there are.
  bool IsUniform(const If& node) const {
    return Launches(node.then_body) && IsOfDims(node.condition, fields_);
  }

  // Either branch goes on with what was pending; behind it, what either has left is. The team is as
  // large as the branch that is taken needs.
  Stmt OnBranches(const If& node) {
    const Touched before = pending_;
    const Effort effort = std::exchange(effort_, Effort());
    const Stmt then_body = Lower(node.then_body);
    const Touched after = std::exchange(pending_, before);
    const Effort then_effort = std::exchange(effort_, Effort());
    const Stmt else_body = node.else_body ? Lower(node.else_body) : nullptr;
    pending_.insert(pending_.end(), after.begin(), after.end());
    effort_ = After(effort, IndexConst(1), Either(node.condition, then_effort, effort_));
    return If::Make(node.condition, then_body, else_body);
  }

  // Null where one of them is.
  static Expr Taken(const Expr& condition, const Expr& then_value, const Expr& else_value) {
    if (!then_value || !else_value) return nullptr;
    if (StructuralEqual(then_value, else_value)) return else_value;
    return Select::Make(condition, then_value, else_value);
  }

  // The value is taken before a worker in the branch may overwrite what it came from.
  template <class F>
  Stmt OnIf(const If& node, F&& closed) {
    Stmt then_body = closed(node.then_body), else_body = closed(node.else_body);
    if (Reads(node.condition).empty()) return If::Make(node.condition, then_body, else_body);
    Var taken = VarNode::Make(names_.Fresh("taken"), DType::Bool());
    return Let::Make(taken, node.condition,
                     Seq::Make({Sync::Make(Level::kTeam), If::Make(taken, then_body, else_body)}));
  }

  Stmt OnFirstWorker(const Stmt& stmt) {
    Touched now;
    Accesses touched = AccessesOf(stmt, module_, [](const Buffer&) { return true; });
    for (const BufferNode* b : touched.reads) now.push_back(WholeOf(b, false, true));
    for (const BufferNode* b : touched.writes) now.push_back(WholeOf(b, true, true));
    return WithSync(now, [&] { return If::Make(IsFirstWorker(), stmt); });
  }

  static bool Launches(const Stmt& stmt) {
    return AnyStmt(stmt, [&](const NodeRef& n) { return n->kind == NodeKind::kLaunch; });
  }

  const KernelFacts& Facts(const std::string& name) {
    auto it = facts_.find(name);
    if (it == facts_.end())
      it = facts_.emplace(name, FactsOf(module_.Find(name), context_.max_team)).first;
    return it->second;
  }

  // ---- places in memory ----

  struct Address {
    const Node* root;
    Expr offset;  // bytes
  };

  Address AddressOf(const Expr& handle) {
    const auto* call = As<Call>(handle);
    if (!call || call->intrinsic != Intrinsic::kPtrOffset) return {handle.get(), IndexConst(0)};
    const Address base = AddressOf(call->args[0]);
    return {base.root, analyzer_.Simplify(base.offset + call->args[1])};
  }

  Address BaseOf(const BufferNode* buffer) const {
    auto it = base_.find(buffer);
    return it == base_.end() ? Address{buffer, IndexConst(0)} : it->second;
  }

  Stretch At(const Address& base, const Expr& first, const Expr& bytes, bool write,
             bool first_worker) {
    const Expr begin = analyzer_.Simplify(base.offset + first);
    return {base.root, begin, analyzer_.Simplify(begin + bytes), write, first_worker};
  }

  Stretch StretchOf(const RegionNode& region, bool write, bool first_worker) {
    const BufferNode* b = region.buffer.get();
    if (b->rank() != 1) return WholeOf(b, write, first_worker);
    const Expr size = IndexConst(b->dtype.Bytes());
    const Range& range = region.ranges[0];
    return At(BaseOf(b), range->min * size, range->extent * size, write, first_worker);
  }

  Stretch WholeOf(const BufferNode* b, bool write, bool first_worker) const {
    return {BaseOf(b).root, nullptr, nullptr, write, first_worker};
  }

  Stretch WorkspaceOf(const Expr& handle, const KernelFacts& kernel) {
    const Address at = AddressOf(handle);
    if (!kernel.workspace_bytes) return {at.root, nullptr, nullptr, true, false};
    return At(at, IndexConst(0), IndexConst(*kernel.workspace_bytes), true, false);
  }

  Touched Reads(const Expr& e) const {
    Touched out;
    PreOrder(e, [&](const NodeRef& n) {
      if (const auto* load = As<Load>(n)) out.push_back(WholeOf(load->buffer.get(), false, false));
      return true;
    });
    return out;
  }

  const Module& module_;
  const PassContext& context_;
  NameSupply names_;
  Analyzer analyzer_;
  // What was asked of two places: many launches use the same few, and sums of sizes are slow to
  // compare.
  ExprIds ids_;
  std::unordered_map<uint64_t, bool> below_;
  PrimFunc fields_;
  Touched pending_;  // since the last barrier
  Effort effort_;    // so far
  std::unordered_map<const BufferNode*, Address> base_;
  std::unordered_map<std::string, KernelFacts> facts_;
};

}  // namespace

Module LowerTeam(const Module& module, const PassContext& context) {
  return MapFuncs(module, [&](const Func& func) {
    return func->func_kind == FuncKind::kHost ? TeamBody(func, module, context)() : func;
  });
}

}  // namespace tenon

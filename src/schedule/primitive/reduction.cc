// decompose_reduction: the start of a reduction in loops of its own; set_store_predicate: which
// threads store one that they make together.

#include <algorithm>

#include "ir/print.h"
#include "ir/visit.h"
#include "loop/reducer.h"
#include "loop/thread_reduction.h"
#include "schedule/analysis/conflicts.h"
#include "schedule/analysis/nest.h"
#include "schedule/analysis/retarget.h"
#include "schedule/primitive/move.h"
#include "schedule/primitive/primitives.h"
#include "schedule/primitive/reduction.h"

namespace tenon::primitive {

namespace {

// Splits the init off a reduction. The state is changed in one step at the end: until then all
// places are those of body_, and afterwards the init has run before the loop for every element that
// the reduction goes on from.
class Decomposer {
 public:
  Decomposer(State& s, Body* body, const Place& block, const Place& loop)
      : s_(s), body_(body), place_(block), block_(*block.block()), loop_(loop) {
    reduce_ = LoopsOfKind(block_, IterKind::kReduce, place_.Loops());
  }

  Result Run() {
    if (auto error = Check()) return *error;
    TN_ASSIGN_OR_RETURN(Expr where, InitGuard());
    Block init = InitBlock(where);
    std::string name = init.name;
    Stmt nest = Block::Make(std::move(init));
    VarMap fresh;
    LoopList loops = InnerLoops();
    for (size_t i = loops.size(); i-- > 0;) {
      const For& loop = *loops[i];
      const bool used =
          BindsLoop(block_, IterKind::kSpatial, &loop) || UsesVar(nest, loop.var.get());
      if (!used) continue;
      Var var = VarNode::Make(body_->NewVarName(loop.var->name + ".init"));
      fresh[loop.var.get()] = var;
      nest = For::Make(var, loop.min, loop.extent, loop.for_kind, nest, loop.attrs, loop.thread);
    }
    nest = Substitute(nest, fresh);
    Stmt rest = Edit(loop_.stmt, {{place_.stmt.get(), UpdateBlock()}});
    s_.SetBody(Edit(body_->root(), {{loop_.stmt.get(), Before(nest, rest)}}));
    return Names{name};
  }

 private:
  // The loop itself and those between it and the block.
  LoopList InnerLoops() const {
    LoopList loops = place_.LoopsInside(loop_.stmt.get());
    loops.insert(loops.begin(), loop_.loop());
    return loops;
  }

  std::optional<Diagnostic> Check() const {
    if (place_.inner) return OfBlock(block_.name, "it is inside another block");
    if (!block_.init || !HasKind(block_, IterKind::kReduce)) return NotReduction(block_);
    if (!place_.IsUnder(loop_.stmt.get())) {
      return OfBlock(block_.name, "it is not under loop " + loop_.loop()->var->name);
    }
    LoopList inner = InnerLoops();
    for (const For* loop : reduce_) {
      if (std::find(inner.begin(), inner.end(), loop) == inner.end()) {
        return OfBlock(block_.name, "loop " + loop->var->name + ", outside loop " +
                                        loop_.loop()->var->name + ", runs over its reduction");
      }
      if (BindsLoop(block_, IterKind::kSpatial, loop)) return Mixed(block_, loop);
    }
    for (const IterVar& v : block_.iters) {
      if (v->iter_kind == IterKind::kReduce && UsesVar(block_.init, v->var.get())) {
        return OfBlock(block_.name, "its init depends on " + v->var->name);
      }
    }
    if (const For* loop = RepeatingLoop(*body_, place_, inner)) {
      return OfBlock(block_.name, "each iteration of loop " + loop->var->name +
                                      " computes it anew: its init must stay inside");
    }
    return CheckOthers();
  }

  // The init runs earlier than before: nothing under the loop may notice.
  std::optional<Diagnostic> CheckOthers() const {
    for (size_t i = 0; i < place_.path.size(); ++i) {
      bool inside = place_.IsUnder(loop_.stmt.get()) && i > loop_.path.size();
      if (inside && !IsA<For>(place_.path[i]) && !IsA<Seq>(place_.path[i])) {
        return OfBlock(block_.name,
                       "there is more than loops between it and loop " + loop_.loop()->var->name);
      }
    }
    for (const Region& w : block_.writes) {
      if (!body_->HasStrayUnder(loop_.stmt.get())) break;
      if (auto error = UsedInNoBlock(*body_, w->buffer)) return error;
    }
    std::vector<Access> all = body_->AccessesUnder(loop_.stmt.get());
    for (const Access& a : all) {
      if (a.place == &place_) continue;
      if (a.write && UsesBuffer(block_.init, a.region->buffer.get())) {
        return OfBlock(block_.name, "block " + a.place->block()->name + " writes " +
                                        a.region->buffer->name + ", which its init needs");
      }
    }
    for (const Access& a : all) {
      if (a.place == &place_ || !Writes(block_, a.region->buffer) || SeesWholeOnly(a, all))
        continue;
      return OfBlock(block_.name, "another block under loop " + loop_.loop()->var->name +
                                      " touches " + a.region->buffer->name);
    }
    return std::nullopt;
  }

  // In the loops around both, each element that the block and the other access touch is touched in
  // one iteration only.
  bool SeesWholeOnly(const Access& other, const std::vector<Access>& all) const {
    std::vector<Access> both = {other};
    for (const Access& a : all) {
      if (a.place == &place_ && a.region->buffer == other.region->buffer) both.push_back(a);
    }
    LoopList shared = InnerLoops();
    std::erase_if(shared, [&](const For* loop) { return !other.place->IsUnder(loop); });
    return ElementFixesLoops(*body_, both, shared);
  }

  // The guard less its conditions on the reduction, which hold at its start.
  Expected<Expr> InitGuard() const {
    LoopList dropped = InnerLoops(), kept = place_.Loops();
    std::erase_if(dropped, [&](const For* l) { return BindsLoop(block_, IterKind::kSpatial, l); });
    std::erase_if(kept, [&](const For* l) {
      return std::find(dropped.begin(), dropped.end(), l) != dropped.end();
    });
    Expr out;
    for (const Expr& raw : Conjuncts(block_.where)) {
      Expr c = Substitute(raw, BindingsOf(block_));
      if (!UsesLoops(c, dropped)) {
        out = AndAlso(out, c);
      } else if (UsesLoops(c, kept)) {
        return OfBlock(block_.name,
                       "its guard ties the reduction to other loops: " + ToString(NodeRef(c)));
      }
    }
    return out;
  }

  Block InitBlock(const Expr& where) const {
    Block init;
    init.name = body_->NewBlockName(block_.name + ".init");
    for (const IterVar& v : block_.iters) {
      if (v->iter_kind != IterKind::kReduce) init.iters.push_back(v);
    }
    init.where = where;
    init.writes = block_.writes;
    init.reads = RegionsOfInit(block_);
    init.exact = block_.exact;
    init.fp = block_.fp;
    init.body = block_.init;
    return WithFreshVars(init, ".init", body_);
  }

  Stmt UpdateBlock() const {
    Block update = block_;
    update.reads = ReadsOf(block_);
    std::erase_if(update.reads,
                  [&](const Region& r) { return !UsesBuffer(block_.body, r->buffer.get()); });
    update.init = nullptr;
    return Block::Make(std::move(update));
  }

  State& s_;
  Body* body_;
  const Place& place_;
  const Block& block_;
  const Place& loop_;
  LoopList reduce_;
};

// Which threads store the result of one block: a condition over axes. Every element must be stored
// by one thread at least, as it was before.
class Predicate {
 public:
  Predicate(const PrimFunc& func, const Place& place)
      : func_(func), place_(place), block_(*place.block()), axes_(AxisVariables()) {}

  /// What of the condition chooses among threads with the same result; null where nothing does, or
  /// where it is the first one.
  Expected<Expr> Check(const std::string& text) const {
    TN_ASSIGN_OR_RETURN(const Expr all, ParseStorePredicate(text, axes_));
    if (!all->dtype.IsBool()) return OfBlock(block_.name, text + " is no condition");
    Expr kept;
    for (const Expr& c : Conjuncts(all)) {
      if (!IsOfElements(c)) {
        kept = AndAlso(kept, c);
      } else if (!AlwaysHolds(c)) {
        return OfBlock(block_.name, "where " + ToString(NodeRef(c)) +
                                        " does not hold, elements that it computes would not be "
                                        "stored: the condition may tell threads apart that have "
                                        "the same result");
      }
    }
    const std::vector<int64_t> stores = kept ? ThreadsWhere(kept) : std::vector<int64_t>{0};
    if (stores.empty()) {
      return OfBlock(block_.name, "there is no thread for which " + ToString(NodeRef(kept)) +
                                      " holds, so that nobody would store");
    }
    return stores == std::vector<int64_t>{0} || !UsesReduction(kept) ? Expr(nullptr) : kept;
  }

 private:
  const For* LoopOver(size_t axis) const {
    for (const For* loop : place_.Loops()) {
      if (loop->for_kind == ForKind::kThread && AxisRank(loop->thread) == static_cast<int>(axis))
        return loop;
    }
    return nullptr;
  }
  bool Reduces(const For* loop) const { return BindsLoop(block_, IterKind::kReduce, loop); }

  // Threads along axes that it is in no loop of, or that reduce it, have the same result.
  bool IsOfElements(const Expr& c) const {
    for (size_t i = 0; i < axes_.size(); ++i) {
      const For* loop = UsesVar(c, axes_[i].get()) ? LoopOver(i) : nullptr;
      if (loop && !Reduces(loop) && !IsOne(loop->extent)) return true;
    }
    return false;
  }
  bool UsesReduction(const Expr& c) const {
    for (size_t i = 0; i < axes_.size(); ++i) {
      const For* loop = UsesVar(c, axes_[i].get()) ? LoopOver(i) : nullptr;
      if (loop && Reduces(loop)) return true;
    }
    return false;
  }

  bool AlwaysHolds(const Expr& c) const {
    Analyzer analyzer;
    Learn(func_, &analyzer);
    Learn(place_.path, &analyzer);
    if (block_.where) analyzer.Assume(Substitute(block_.where, BindingsOf(block_)));
    VarMap values;
    for (size_t i = 0; i < axes_.size(); ++i) {
      const For* loop = LoopOver(i);
      values[axes_[i].get()] = loop ? loop->var - loop->min : IndexConst(0);
    }
    return analyzer.CanProve(Substitute(c, values));
  }

  // Their numbers, as the axes of the condition count them.
  std::vector<int64_t> ThreadsWhere(const Expr& c) const {
    constexpr int64_t kMostThreads = 1024;  // of a block
    std::vector<int64_t> extents, out;
    int64_t threads = 1;
    for (size_t i = 0; i < axes_.size(); ++i) {
      const For* loop = UsesVar(c, axes_[i].get()) ? LoopOver(i) : nullptr;
      extents.push_back(loop ? AsInt(loop->extent).value_or(1) : 1);
      threads =
          std::min(threads * std::clamp<int64_t>(extents.back(), 1, kMostThreads), kMostThreads);
    }
    for (int64_t number = 0; number < threads; ++number) {
      VarMap values;
      int64_t rest = number;
      for (size_t i = axes_.size(); i-- > 0;) {
        values[axes_[i].get()] = IndexConst(rest % extents[i]);
        rest /= extents[i];
      }
      if (IsOne(Simplify(Substitute(c, values)))) out.push_back(number);
    }
    return out;
  }

  const PrimFunc& func_;
  const Place& place_;
  const Block& block_;
  std::vector<Var> axes_;
};

}  // namespace

Result SetStorePredicate(State& s, const std::string& block, const std::string& condition) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(block));
  TN_ASSIGN_OR_RETURN(const Expr kept, Predicate(*s.func, *place).Check(condition));
  Block out = *place->block();
  if (kept) {
    out.attrs.Set(kStorePredicateAttr, ToString(NodeRef(kept)));
  } else {
    out.attrs.Erase(kStorePredicateAttr);
  }
  s.SetBody(Edit(body.root(), {{place->stmt.get(), Block::Make(std::move(out))}}));
  return Names{};
}

Result DecomposeReduction(State& s, const std::string& block, const std::string& loop) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* b, body.NeedBlock(block));
  TN_ASSIGN_OR_RETURN(const Place* l, body.NeedLoop(loop));
  return Decomposer(s, &body, *b, *l).Run();
}

}  // namespace tenon::primitive

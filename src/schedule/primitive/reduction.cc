// decompose_reduction: the start of a reduction in loops of its own.

#include <algorithm>

#include "ir/print.h"
#include "ir/visit.h"
#include "loop/reducer.h"
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
    init.reads = RegionsIn(block_.reads, block_.init);
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

}  // namespace

Result DecomposeReduction(State& s, const std::string& block, const std::string& loop) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* b, body.NeedBlock(block));
  TN_ASSIGN_OR_RETURN(const Place* l, body.NeedLoop(loop));
  return Decomposer(s, &body, *b, *l).Run();
}

}  // namespace tenon::primitive

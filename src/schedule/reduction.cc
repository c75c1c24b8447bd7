// Primitives on reductions: decompose_reduction and rfactor.

#include <algorithm>

#include "ir/print.h"
#include "ir/visit.h"
#include "loop/reducer.h"
#include "schedule/dependence.h"
#include "schedule/move.h"
#include "schedule/nest.h"
#include "schedule/retarget.h"
#include "schedule/state.h"

namespace tenon::primitive {

namespace {

using LoopList = std::vector<const For*>;

Diagnostic NotReduction(const Block& block) {
  return OfBlock(block.name, "the block is not a reduction with an init");
}

Diagnostic Mixed(const Block& block, const For* loop) {
  return OfBlock(block.name,
                 "loop " + loop->var->name + " runs over spatial and reduce variables at once");
}

bool UsesLoops(const Expr& e, const LoopList& loops) {
  return std::any_of(loops.begin(), loops.end(),
                     [&](const For* loop) { return UsesVar(e, loop->var.get()); });
}

// Splits the init off a reduction.
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

// Reduces into a buffer with one more dimension first, and that dimension afterwards.
class Factorer {
 public:
  Factorer(State& s, Body* body, const Place& block, const Place& loop, int64_t axis)
      : s_(s),
        body_(body),
        place_(block),
        block_(*block.block()),
        loop_(*loop.loop()),
        axis_(axis) {}

  Result Run() {
    if (auto error = Check()) return *error;
    Analyzer analyzer;
    Learn(*s_.func, &analyzer);
    Learn(place_.path, &analyzer);
    MakeBuffer();
    TN_ASSIGN_OR_RETURN(Block factored, FactoredBlock());
    std::string name = factored.name;
    Block last = LastBlock();
    Stmt anchor = AnchorOf(place_, Consumers());
    LoopList inner = place_.LoopsInside(anchor.get());
    inner.insert(inner.begin(), As<For>(anchor));
    IterRanges ranges = RangesOver(last, inner, &analyzer);
    ranges.back() = {};
    Stmt nest = MakeNest(last, ranges, Widen::kNo, body_, &analyzer);
    nest = Inherit(nest, GuardsAround(place_, PathTo(anchor)), &analyzer);
    Stmt rest = Edit(anchor, {{place_.stmt.get(), Block::Make(std::move(factored))}});
    s_.SetBody(AddAlloc(partial_, Edit(body_->root(), {{anchor.get(), Before(rest, nest)}})));
    return Names{name};
  }

 private:
  std::vector<Stmt> PathTo(const Stmt& anchor) const {
    return {place_.path.begin(), std::find(place_.path.begin(), place_.path.end(), anchor)};
  }

  std::vector<const Place*> Consumers() const {
    std::vector<const Place*> readers = body_->Readers(Update().buffer);
    std::erase(readers, &place_);
    return readers;
  }

  // The one component of the reduction.
  const Store& Update() const { return *reduction_->stores[0]; }
  const Expr& Combinand() const { return reduction_->values[0]; }
  Expr Combined(const Expr& acc, const Expr& value) const {
    return reduction_->reducer->combine({{acc}}, {{value}}).front();
  }

  std::optional<Diagnostic> Check() {
    if (!block_.init || !HasKind(block_, IterKind::kReduce)) return NotReduction(block_);
    reduction_ = DetectReducer(block_);
    if (!reduction_ || reduction_->stores.size() != 1 || block_.writes.size() != 1) {
      return OfBlock(block_.name, "its body is not one update acc = acc op value");
    }
    const Buffer& buffer = Update().buffer;
    identity_ = reduction_->reducer->identity({{buffer->dtype}}).front();
    if (body_->Writers(buffer).size() != 1) {
      return OfBlock(block_.name, "another block writes " + buffer->name + " too");
    }
    if (auto error = UsedInNoBlock(*body_, buffer)) return error;
    for (const For* loop : LoopsOfKind(block_, IterKind::kReduce, place_.Loops())) {
      if (BindsLoop(block_, IterKind::kSpatial, loop)) return Mixed(block_, loop);
      reduce_.push_back(loop);
    }
    // A loop of one iteration is in no binding: it may be any part of the reduction.
    bool bound = std::find(reduce_.begin(), reduce_.end(), &loop_) != reduce_.end();
    if (!bound && IsOne(loop_.extent)) {
      reduce_.push_back(&loop_);
    } else if (!bound) {
      return OfBlock(block_.name, "loop " + loop_.var->name + " does not run over its reduction");
    }
    int64_t rank = buffer->rank();
    if (axis_ < -rank - 1 || axis_ > rank) {
      return OfBlock(block_.name, "axis " + std::to_string(axis_) + " is outside [" +
                                      std::to_string(-rank - 1) + ", " + std::to_string(rank) +
                                      "]");
    }
    if (axis_ < 0) axis_ += rank + 1;
    if (auto error = CheckGuard()) return error;
    return CheckPlace();
  }

  // The parts are combined for all elements that the block's loops run over within its domain: all
  // of them must be there.
  std::optional<Diagnostic> CheckGuard() const {
    std::vector<Expr> given = GuardsAround(place_, PathTo(AnchorOf(place_, Consumers())));
    for (const Expr& c : Conjuncts(block_.where)) {
      const Expr outside = Substitute(c, BindingsOf(block_));
      if (UsesLoops(outside, reduce_)) given.push_back(outside);
    }
    if (GuardsOnlyDomain(place_, *s_.func, given)) return std::nullopt;
    return OfBlock(block_.name, "its guard says more than its iteration variables' domains: " +
                                    ToString(NodeRef(block_.where)));
  }

  // The init goes with the combination of the parts, outside the anchor.
  std::optional<Diagnostic> CheckInit(const Stmt& anchor) const {
    for (auto s = std::find(place_.path.begin(), place_.path.end(), anchor); s != place_.path.end();
         ++s) {
      const auto* loop = As<For>(*s);
      const auto* alloc = As<Alloc>(*s);
      if (loop && UsesVar(block_.init, loop->var.get())) {
        return OfBlock(block_.name, "its init uses loop " + loop->var->name + " around it");
      }
      if (alloc && UsesBuffer(block_.init, alloc->buffer.get())) {
        return OfBlock(block_.name, "its init reads " + alloc->buffer->name +
                                        ", which is allocated inside a loop around it");
      }
    }
    return std::nullopt;
  }

  std::optional<Diagnostic> CheckPlace() const {
    Stmt anchor = AnchorOf(place_, Consumers());
    if (auto error = CheckInit(anchor)) return error;
    for (const For* loop : reduce_) {
      if (loop != anchor.get() && place_.LoopsInside(anchor.get()).empty()) {
        return OfBlock(block_.name, "its consumers are inside loop " + loop->var->name);
      }
      for (const Stmt& s : place_.path) {
        if (s == anchor) break;
        if (s.get() == loop) {
          return OfBlock(block_.name, "loop " + loop->var->name +
                                          ", around its consumers too, runs over its reduction");
        }
      }
      for (const For* other : place_.Loops()) {
        if (UsesVar(loop->extent, other->var.get()) || UsesVar(loop->min, other->var.get())) {
          return OfBlock(block_.name,
                         "the bounds of loop " + loop->var->name + " depend on other loops");
        }
      }
    }
    return std::nullopt;
  }

  void MakeBuffer() {
    const Buffer& buffer = Update().buffer;
    std::vector<Expr> shape = buffer->shape;
    shape.insert(shape.begin() + axis_, loop_.extent);
    partial_ = BufferNode::Make(body_->NewBufferName(buffer->name + ".rf"), buffer->dtype, shape,
                                buffer->scope);
  }

  std::vector<Expr> PartialAt(const Expr& part) const {
    std::vector<Expr> at = Update().indices;
    at.insert(at.begin() + axis_, part);
    return at;
  }

  // The block with the loop made spatial and one reduce variable for each other reduce loop.
  Expected<Block> FactoredBlock() {
    Block out = block_;
    out.name = body_->NewBlockName(block_.name + ".rf");
    std::erase_if(out.iters, [](const IterVar& v) { return v->iter_kind == IterKind::kReduce; });
    VarMap loop_values;  // reduce loops in terms of the new variables
    Expr part;
    for (const For* loop : reduce_) {
      bool factored = loop == &loop_;
      Var v = VarNode::Make(body_->NewVarName(block_.name + ".v" + loop->var->name));
      Expr min = factored ? IndexConst(0) : loop->min;
      Expr binding = factored && !IsZero(loop->min) ? loop->var - loop->min : Expr(loop->var);
      out.iters.push_back(IterVarNode::Make(v, factored ? IterKind::kSpatial : IterKind::kReduce,
                                            min, loop->extent, binding));
      loop_values[loop->var.get()] = factored && !IsZero(loop->min) ? v + loop->min : Expr(v);
      if (factored) part = v;
    }
    VarMap values;  // the old reduce variables
    for (const IterVar& v : block_.iters) {
      if (v->iter_kind == IterKind::kReduce) {
        values[v->var.get()] = Simplify(Substitute(v->binding, loop_values));
      }
    }
    TN_ASSIGN_OR_RETURN(Expr condition, SplitGuard(loop_values, &out.where));
    Expr value = Substitute(Combinand(), values);
    if (condition) value = Select::Make(condition, value, identity_);
    bool reduces = HasKind(out, IterKind::kReduce);
    std::vector<Expr> at = PartialAt(part);
    if (reduces) value = Combined(Load::Make(partial_, at), value);
    out.body = Store::Make(partial_, at, value);
    out.init = reduces ? Store::Make(partial_, at, identity_) : nullptr;
    out.writes = {PointRegion(partial_, at)};
    out.reads.clear();
    for (const Region& raw : RegionsIn(block_.reads, Combinand())) {
      Region r = Cast<RegionNode>(SubstituteNode(raw, values));
      out.reads.push_back(condition ? WithinBuffer(r, *raw, out) : r);
      // What is not read where the value is the identity may not be there.
      if (condition && !body_->Writers(r->buffer).empty()) out.exact = false;
    }
    return out;
  }

  // Where the value is the identity instead, nothing is read beyond the buffer's end. `before`: the
  // region in terms of the old variables.
  Region WithinBuffer(const Region& r, const RegionNode& before, const Block& block) const {
    Analyzer analyzer;
    Learn(*s_.func, &analyzer);
    for (const IterVar& v : block.iters) analyzer.Bind(v->var, v->min, v->extent);
    std::vector<Range> ranges;
    for (size_t d = 0; d < r->ranges.size(); ++d) {
      const Range& range = r->ranges[d];
      const Expr& size = r->buffer->shape[d];
      const Expr end = range->min + range->extent;
      if (range == before.ranges[d] || analyzer.CanProve(Le(end, size))) {
        ranges.push_back(range);
        continue;
      }
      const Expr low = analyzer.Simplify(Min(range->min, size));
      ranges.push_back(RangeNode::Make(low, analyzer.Simplify(Min(end, size) - low)));
    }
    return RegionNode::Make(r->buffer, std::move(ranges));
  }

  // Conditions on the reduction become a choice of the value, for every part must be started; the
  // others stay.
  Expected<Expr> SplitGuard(const VarMap& loop_values, Expr* where) const {
    Expr chosen;
    *where = nullptr;
    LoopList others = place_.Loops();
    std::erase_if(others, [&](const For* loop) {
      return std::find(reduce_.begin(), reduce_.end(), loop) != reduce_.end();
    });
    for (const Expr& raw : Conjuncts(block_.where)) {
      Expr c = Substitute(raw, BindingsOf(block_));
      if (!UsesLoops(c, reduce_)) {
        *where = AndAlso(*where, c);
      } else if (UsesLoops(c, others)) {
        return OfBlock(block_.name,
                       "its guard ties the reduction to other loops: " + ToString(NodeRef(c)));
      } else {
        chosen = AndAlso(chosen, Substitute(c, loop_values));
      }
    }
    return chosen;
  }

  // The block of the old name, which reduces the parts. Its last variable is the reduction.
  Block LastBlock() {
    Block out = block_;
    std::erase_if(out.iters, [](const IterVar& v) { return v->iter_kind != IterKind::kSpatial; });
    Var part = VarNode::Make(body_->NewVarName(block_.name + ".v" + loop_.var->name));
    out.iters.push_back(
        IterVarNode::Make(part, IterKind::kReduce, IndexConst(0), loop_.extent, IndexConst(0)));
    Expr acc = Load::Make(Update().buffer, Update().indices);
    Expr value = Load::Make(partial_, PartialAt(part));
    out.where = nullptr;
    out.body = Store::Make(Update().buffer, Update().indices, Combined(acc, value));
    out.reads = RegionsIn(block_.reads, block_.init);
    std::erase_if(out.reads, [&](const Region& r) { return r->buffer == Update().buffer; });
    out.reads.push_back(PointRegion(partial_, PartialAt(part)));
    return WithFreshVars(out, ".rf", body_);
  }

  State& s_;
  Body* body_;
  const Place& place_;
  const Block& block_;
  const For& loop_;
  int64_t axis_;
  std::optional<Reduction> reduction_;
  Expr identity_;
  LoopList reduce_;
  Buffer partial_;
};

}  // namespace

Result DecomposeReduction(State& s, const std::string& block, const std::string& loop) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* b, body.NeedBlock(block));
  TN_ASSIGN_OR_RETURN(const Place* l, body.NeedLoop(loop));
  return Decomposer(s, &body, *b, *l).Run();
}

Result RFactor(State& s, const std::string& loop, const int64_t& axis) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* l, body.NeedLoop(loop));
  std::vector<const Place*> blocks = body.BlocksUnder(l->stmt.get());
  if (blocks.size() != 1 || l->inner) {
    return Because("expected one block under loop " + loop + ", got " +
                   std::to_string(blocks.size()));
  }
  return Factorer(s, &body, *blocks[0], *l, axis).Run();
}

}  // namespace tenon::primitive

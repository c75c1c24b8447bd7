// rfactor: partial results along a reduce loop, and a reduction of them.
//
// A loop over a reduce variable cannot run in parallel, but a sum of sums can. The loop's part of
// the reduce variable becomes spatial in a new block, which keeps a partial result for each of its
// values, and the block is left to combine these. With rfactor("k.1", -1) of
//
//   for i in 0..3, k.0 in 0..4, k.1 in 0..4 {
//     block S(vi: spatial = i, vk: reduce = k.0 * 4 + k.1) {
//       init { S[vi] = 0f32 }
//       S[vi] = S[vi] + A[vi, vk]
//     }
//   }
//
// comes
//
//   alloc S.rf: f32[3, 4]
//   for i in 0..3, k.0 in 0..4, k.1 in 0..4 {
//     block S.rf(vi: spatial = i, S.vk.0: reduce = k.0, S.vk.1: spatial = k.1) {
//       init { S.rf[vi, S.vk.1] = 0f32 }
//       S.rf[vi, S.vk.1] = S.rf[vi, S.vk.1] + A[vi, S.vk.0 * 4 + S.vk.1]
//     }
//   }
//   for S.ax0 in 0..3, S.ax1 in 0..4 {
//     block S(vi.rf: spatial = S.ax0, S.vk.1_2.rf: reduce = S.ax1) {
//       init { S[vi.rf] = 0f32 }
//       S[vi.rf] = S[vi.rf] + S.rf[vi.rf, S.vk.1_2.rf]
//     }
//   }
//
// The binding is cut at the loop: what it adds to the variable is a digit of its own, with a range
// of its own. The combiner has to be known, with an identity, from which each partial result
// begins; the init goes with the combination of the parts, which may be in any order (fp reassoc).
// What guards the reduction becomes a choice of the identity instead of the value, since every part
// must be started.

#include <algorithm>

#include "ir/print.h"
#include "ir/visit.h"
#include "loop/combiner.h"
#include "schedule/analysis/conflicts.h"
#include "schedule/analysis/nest.h"
#include "schedule/analysis/retarget.h"
#include "schedule/primitive/move.h"
#include "schedule/primitive/primitives.h"
#include "schedule/primitive/reduction.h"

namespace tenon::primitive {

namespace {

// Reduces into buffers with one more dimension first, and that dimension afterwards. buffers_ and
// partial_ go together by component; what is added up for an element is the same, in another order.
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
    MakeBuffers();
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
    Stmt root = Edit(body_->root(), {{anchor.get(), Before(rest, nest)}});
    for (size_t k = partial_.size(); k-- > 0;) root = AddAlloc(partial_[k], root);
    s_.SetBody(root);
    return Names{name};
  }

 private:
  std::vector<Stmt> PathTo(const Stmt& anchor) const {
    return {place_.path.begin(), std::find(place_.path.begin(), place_.path.end(), anchor)};
  }

  std::vector<const Place*> Consumers() const {
    std::vector<const Place*> readers;
    for (const Buffer& b : buffers_) {
      for (const Place* p : body_->Readers(b)) {
        if (p != &place_ && std::find(readers.begin(), readers.end(), p) == readers.end()) {
          readers.push_back(p);
        }
      }
    }
    return readers;
  }

  // Where each component has its element.
  const std::vector<Expr>& Indices() const { return combiner_->stores()[0]->indices; }

  std::optional<Diagnostic> Check() {
    if (!block_.init || !HasKind(block_, IterKind::kReduce)) return NotReduction(block_);
    Expected<Combiner> combiner = Combiner::Of(block_);
    if (!combiner) return OfBlock(block_.name, combiner.errors()[0].message);
    combiner_ = std::move(*combiner);
    for (const auto& store : combiner_->stores()) buffers_.push_back(store->buffer);
    for (const Buffer& buffer : buffers_) {
      if (body_->Writers(buffer).size() != 1) {
        return OfBlock(block_.name, "another block writes " + buffer->name + " too");
      }
      if (auto error = UsedInNoBlock(*body_, buffer)) return error;
    }
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
    if (combiner_->DependsOnOrder() && reduce_[0] != &loop_ && !IsOne(loop_.extent)) {
      return OfBlock(block_.name,
                     "its combiner depends on the order of what it combines, of equal values say: "
                     "only its outermost reduce loop, " +
                         reduce_[0]->var->name + ", leaves that as it is");
    }
    const int64_t rank = buffers_[0]->rank();
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

  void MakeBuffers() {
    for (const Buffer& buffer : buffers_) {
      std::vector<Expr> shape = buffer->shape;
      shape.insert(shape.begin() + axis_, loop_.extent);
      partial_.push_back(BufferNode::Make(body_->NewBufferName(buffer->name + ".rf"), buffer->dtype,
                                          shape, buffer->scope));
    }
  }

  std::vector<Expr> PartialAt(const Expr& part) const {
    std::vector<Expr> at = Indices();
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
    const std::vector<Expr>& identity = combiner_->identity();
    std::vector<Expr> combined;
    for (size_t k = 0; k < buffers_.size(); ++k) {
      Expr value = Substitute(combiner_->values()[k], values);
      combined.push_back(condition ? Select::Make(condition, value, identity[k]) : value);
    }
    const bool reduces = HasKind(out, IterKind::kReduce);
    const std::vector<Expr> at = PartialAt(part);
    out.body = reduces ? combiner_->Update(partial_, at, combined, FreshVar())
                       : StoreAll(partial_, at, combined);
    out.init = reduces ? StoreAll(partial_, at, identity) : nullptr;
    out.writes.clear();
    for (const Buffer& b : partial_) out.writes.push_back(PointRegion(b, at));
    out.reads.clear();
    for (const Region& raw : RegionsIn(block_.reads, ValuesRead())) {
      Region r = Cast<RegionNode>(SubstituteNode(raw, values));
      out.reads.push_back(condition ? WithinBuffer(r, *raw, out) : r);
      // What is not read where the value is the identity may not be there.
      if (condition && !body_->Writers(r->buffer).empty()) out.exact = false;
    }
    return out;
  }

  // One node that mentions all that is combined in.
  NodeRef ValuesRead() const { return StoreAll(buffers_, Indices(), combiner_->values()); }

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
    std::vector<Expr> parts;
    for (const Buffer& b : partial_) parts.push_back(Load::Make(b, PartialAt(part)));
    out.where = nullptr;
    // Where there are parts, their order is no longer that of the definition.
    if (buffers_.size() == 1 && !combiner_->DependsOnOrder()) out.fp = FpMode::kReassoc;
    out.body = combiner_->Update(buffers_, Indices(), parts, FreshVar());
    out.reads = RegionsOfInit(block_);
    std::erase_if(out.reads, [&](const Region& r) { return IsComponent(r->buffer); });
    for (const Buffer& b : partial_) out.reads.push_back(PointRegion(b, PartialAt(part)));
    return WithFreshVars(out, ".rf", body_);
  }

  Combiner::FreshName FreshVar() const {
    return [this](const std::string& base) { return body_->NewVarName(base); };
  }

  bool IsComponent(const Buffer& buffer) const {
    return std::find(buffers_.begin(), buffers_.end(), buffer) != buffers_.end();
  }

  State& s_;
  Body* body_;
  const Place& place_;
  const Block& block_;
  const For& loop_;
  int64_t axis_;
  std::optional<Combiner> combiner_;
  LoopList reduce_;
  std::vector<Buffer> buffers_, partial_;  // of the components, and of their parts
};

}  // namespace

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

// rolling_buffer: windows of consecutive iterations overlap, and what they share is computed once.
//
// In iteration t of the loop the producer fills the window W(t) = [lo(t), hi(t)] of one dimension
// of its buffer, and everything that the iteration reads is inside. Both ends never fall. Then the
// part of W(t) up to hi(t - 1) is inside W(t - 1), where iteration t - 1 has left it, and only the
// rest is computed. A ring of N elements, N the longest window, will do: an element that is written
// in iteration s and read in iteration t is inside W(s) and W(t), hence, the ends being monotone,
// inside every window in between, and two elements of one window are not N apart.

#include <algorithm>

#include "ir/visit.h"
#include "schedule/analysis/nest.h"
#include "schedule/analysis/retarget.h"
#include "schedule/primitive/move.h"
#include "schedule/primitive/primitives.h"

namespace tenon::primitive {

namespace {

// One buffer that rolls along a loop. Once FindWindow has succeeded, what an iteration uses is a
// window of at most length_ elements along dim_ that never moves back: what the iteration before
// made of it is still right, and is not made again.
class Roller {
 public:
  Roller(State& s, Body* body, const Place& block, const Place& loop)
      : s_(s),
        body_(body),
        place_(block),
        block_(*block.block()),
        loop_place_(loop),
        loop_(*loop.loop()) {}

  Result Run() {
    if (auto error = CheckPlace()) return *error;
    if (auto error = CheckInputs()) return *error;
    Learn(*s_.func, &analyzer_);
    Learn(place_.path, &analyzer_);
    if (auto error = FindWindow()) return *error;
    Rewrite();
    return Names{};
  }

 private:
  std::string LoopName() const { return loop_.var->name; }

  std::optional<Diagnostic> CheckPlace() {
    if (!place_.IsUnder(loop_place_.stmt.get())) {
      return OfBlock(block_.name, "it is not under loop " + LoopName());
    }
    if (loop_.for_kind != ForKind::kSerial) {
      return OfBlock(block_.name, "loop " + LoopName() + " is " + Name(loop_.for_kind) +
                                      ", so that its iterations do not follow each other");
    }
    if (auto error = NotMovable(*body_, place_, Target::Under(loop_place_))) return error;
    for (const IterVar& v : block_.iters) {
      if (v->iter_kind != IterKind::kSpatial) {
        return OfBlock(block_.name, "it has reduce or ordered variables");
      }
    }
    if (block_.writes.size() != 1) return OfBlock(block_.name, "it writes several regions");
    write_ = block_.writes[0];
    const Buffer& b = write_->buffer;
    for (const Range& r : write_->ranges) {
      if (!IsOne(r->extent))
        return OfBlock(block_.name, "it writes more than an element at a time");
    }
    if (auto error = NotRetargetable(*body_, b)) return error;
    bool own = body_->Writers(b).size() == 1 && AllUsesUnder(*body_, b, &loop_) &&
               IsCoveredIn(*body_, b, &loop_);
    if (own) return std::nullopt;
    return OfBlock(block_.name, "each iteration of loop " + LoopName() + " is not known to fill " +
                                    b->name + " for itself alone");
  }

  // What the block computes of an element is the same in every iteration.
  std::optional<Diagnostic> CheckInputs() const {
    for (const Region& r : block_.reads) {
      std::vector<const Place*> writers = body_->Writers(r->buffer);
      std::erase_if(writers, [&](const Place* w) { return !w->IsUnder(&loop_); });
      bool stays =
          writers.empty() || (writers.size() == 1 && IsCoveredIn(*body_, r->buffer, &loop_) &&
                              !HasKind(*writers[0]->block(), IterKind::kOrdered));
      if (!stays) {
        return OfBlock(block_.name, "block " + writers[0]->block()->name + " changes " +
                                        r->buffer->name + ", which it reads, in loop " +
                                        LoopName());
      }
    }
    return std::nullopt;
  }

  std::optional<Diagnostic> FindWindow() {
    std::vector<const For*> inner = place_.LoopsInside(&loop_);
    Box box = TouchedBox(write_, block_, DomainOf(inner, &analyzer_), &analyzer_);
    if (!FillsItsBox(write_, block_, inner, &analyzer_)) {
      return OfBlock(block_.name, "it writes scattered parts of " + write_->buffer->name);
    }
    std::optional<size_t> found;
    for (size_t d = 0; d < box.size(); ++d) {
      if (!box[d].min || !box[d].max) return NoWindow();
      if (!UsesVar(box[d].min, loop_.var.get()) && !UsesVar(box[d].max, loop_.var.get())) continue;
      if (found) return NoWindow();
      found = d;
    }
    if (!found) return NoWindow();
    dim_ = *found;
    window_ = box[dim_];
    std::unordered_map<const VarNode*, Expr> before{{loop_.var.get(), loop_.var - 1}};
    low_before_ = analyzer_.Simplify(Substitute(window_.min, before));
    high_before_ = analyzer_.Simplify(Substitute(window_.max, before));
    if (!analyzer_.CanProve(Le(low_before_, window_.min)) ||
        !analyzer_.CanProve(Le(high_before_, window_.max))) {
      return OfBlock(block_.name, "what it writes of " + write_->buffer->name +
                                      " is not known to move forward in loop " + LoopName());
    }
    if (analyzer_.CanProve(Lt(high_before_, window_.min))) {
      return OfBlock(block_.name, "iterations of loop " + LoopName() + " share nothing of " +
                                      write_->buffer->name);
    }
    Expr length = Length(RelaxToConstantLength(window_, &analyzer_), &analyzer_);
    length_ = analyzer_.ConstBounds(length).max;
    if (length_ != Interval::kPosInf && length_ >= 1) return std::nullopt;
    return OfBlock(block_.name,
                   "no constant bounds what one iteration of loop " + LoopName() + " writes");
  }

  Diagnostic NoWindow() const {
    return OfBlock(block_.name, "it does not write a window of " + write_->buffer->name +
                                    " that moves along one dimension in loop " + LoopName());
  }

  void Rewrite() {
    Expr at = Substitute(write_->ranges[dim_]->min, BindingsOf(block_));
    Block copy = block_;
    copy.where = AndAlso(block_.where,
                         Or(Eq(loop_.var, loop_.min), analyzer_.Simplify(Gt(at, high_before_))));
    Stmt loop = Edit(loop_place_.stmt, {{place_.stmt.get(), Block::Make(std::move(copy))}});
    const Buffer& from = write_->buffer;
    std::optional<int64_t> whole = AsInt(from->shape[dim_]);
    Buffer to = from;
    if (!whole || length_ < *whole) {
      Retarget ring = Ring(from);
      to = ring.to;
      loop = Apply(ring, Declare(loop));
    }
    Stmt root = Edit(body_->root(), {{loop_place_.stmt.get(), AddAlloc(to, loop)}});
    if (to != from) {
      s_.SetBody(RemoveAlloc(from, root));
      return;
    }
    // The same buffer, allocated further in.
    Stmt bare = RemoveAlloc(from, Edit(body_->root(), {{loop_place_.stmt.get(), loop}}));
    s_.SetBody(MapStmts(bare, [&](const Stmt& s) { return s == loop ? AddAlloc(to, s) : s; }));
  }

  // In a ring, an element is written again: the producer's variables run in order, and a box of
  // several elements is no box there.
  Stmt Declare(const Stmt& loop) const {
    return MapStmts(loop, [&](const Stmt& s) -> Stmt {
      const auto* block = As<Block>(s);
      if (block == nullptr) return s;
      Block copy = block->name == block_.name ? InOrder(*block) : *block;
      for (const Region& r : block->reads) {
        if (r->buffer == write_->buffer && !IsOne(r->ranges[dim_]->extent)) copy.exact = false;
      }
      return Block::Make(std::move(copy));
    });
  }

  // The producer with the variables of that dimension ordered. They count from where the ring does:
  // what loops around it add stays outside, in terms of those loops.
  Block InOrder(const Block& block) const {
    std::vector<const For*> loops = place_.LoopsInside(&loop_);
    loops.insert(loops.begin(), &loop_);
    std::unordered_map<const VarNode*, Expr> none, shift;
    for (const For* l : loops) none[l->var.get()] = l->min;
    Analyzer analyzer;
    Learn(*s_.func, &analyzer);
    Learn(place_.path, &analyzer);
    Block copy = block;
    for (IterVar& v : copy.iters) {
      if (!UsesVar(write_->ranges[dim_]->min, v->var.get())) continue;
      Expr base = analyzer.Simplify(Substitute(v->binding, none));
      Expr local = analyzer.Simplify(v->binding - base);
      ExprInterval range = EvalInterval(local, DomainOf(loops, &analyzer), &analyzer);
      Expr length = Length(range, &analyzer);
      if (!length || AsInt(base)) {
        v = IterVarNode::Make(v->var, IterKind::kOrdered, v->min, v->extent, v->binding);
        continue;
      }
      shift[v->var.get()] = v->var + base;
      v = IterVarNode::Make(v->var, IterKind::kOrdered, range.min, length, local);
    }
    if (shift.empty()) return copy;
    for (Region& r : copy.reads) r = Cast<RegionNode>(SubstituteNode(r, shift));
    for (Region& r : copy.writes) r = Cast<RegionNode>(SubstituteNode(r, shift));
    copy.body = Substitute(copy.body, shift);
    return copy;
  }

  Retarget Ring(const Buffer& from) const {
    std::vector<Expr> shape = from->shape;
    Expr length = IndexConst(length_);
    shape[dim_] = length;
    Retarget r;
    r.from = from;
    r.to = BufferNode::Make(from->name, from->dtype, shape, from->scope, nullptr, {}, from->align);
    size_t dim = dim_;
    r.element = [length, dim](std::vector<Expr> indices) {
      indices[dim] = Simplify(indices[dim] % length);
      return indices;
    };
    r.box = [length, dim](std::vector<Range> ranges) {
      const Range& old = ranges[dim];
      ranges[dim] = IsOne(old->extent) ? RangeNode::Make(Simplify(old->min % length), IndexConst(1))
                                       : RangeNode::Make(IndexConst(0), length);
      return ranges;
    };
    return r;
  }

  State& s_;
  Body* body_;
  const Place& place_;
  const Block& block_;
  const Place& loop_place_;
  const For& loop_;
  Analyzer analyzer_;
  Region write_;
  size_t dim_ = 0;
  ExprInterval window_;
  Expr low_before_, high_before_;
  int64_t length_ = 0;
};

}  // namespace

Result RollingBuffer(State& s, const std::string& block, const std::string& loop) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* b, body.NeedBlock(block));
  TN_ASSIGN_OR_RETURN(const Place* l, body.NeedLoop(loop));
  return Roller(s, &body, *b, *l).Run();
}

}  // namespace tenon::primitive

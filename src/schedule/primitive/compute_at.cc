// compute_at and compute_root: a producer moves to where its consumers are.
//
// A block says which iterations make which elements, and its consumers say which elements they
// read. So where it stands is a matter of taste: what one iteration of the target loop needs is the
// box that the consumers inside of it touch, and the block's iterations for that box are found from
// what it writes (TouchingIters). A new nest runs over these, and the old nest goes. From
//
//   for i in 0..34 { block B(vi: spatial = i) { … writes B[vi] … } }
//   for j.0 in 0..4, j.1 in 0..8 {
//     block C(vj: spatial in 0..32 = j.0 * 8 + j.1) { reads B[vj..+3]; … }
//   }
//
// comes with compute_at("B", "j.0")
//
//   for j.0 in 0..4 {
//     for B.ax0 in 0..10 {
//       block B(vi: spatial in 0..34 = j.0 * 8 + B.ax0) { … }
//     }
//     for j.1 in 0..8 {
//       block C(vj: spatial in 0..32 = j.0 * 8 + j.1) { reads B[vj..+3]; … }
//     }
//   }
//
// where two of the ten elements are made twice. That changes nothing if the block depends on
// nothing that changes in between: its inputs are the same at both places, it updates nothing, no
// consumer is left outside. These are the checks, each with its reason. Extents that are not
// constant become the largest that they can be, and `where` keeps to what is needed.

#include <algorithm>
#include <numeric>

#include "ir/print.h"
#include "ir/visit.h"
#include "schedule/analysis/solve.h"
#include "schedule/primitive/move.h"
#include "schedule/primitive/primitives.h"

namespace tenon::primitive {

namespace {

// One move. The state is changed in one step at the end, after every check; until then all places
// are those of body_.
class ProducerMover {
 public:
  ProducerMover(State& s, Body* body, const Place& block, Target target)
      : s_(s), body_(body), place_(block), block_(*block.block()), target_(std::move(target)) {}

  Result Run() {
    if (auto error = NotMovable(*body_, place_, target_)) return *error;
    if (auto error = CheckBuffers()) return *error;
    FindSharers();
    before_ = target_.loop ? FirstConsumer() : AnchorOf(place_, {});
    if (auto error = CheckOthers()) return *error;
    Analyzer analyzer;
    Learn(*s_.func, &analyzer);
    Learn(target_.path, &analyzer);
    IterRanges ranges = target_.loop ? NeededRanges(&analyzer) : OwnRanges(&analyzer);
    const bool registers = TouchesRegisters();
    Stmt nest = MakeNest(target_.loop ? WithinLoops() : block_, ranges,
                         registers ? Widen::kWhole : Widen::kYes, body_, &analyzer,
                         target_.loop ? NeededSteps(ranges, &analyzer) : std::vector<int64_t>{});
    if (auto error = CheckAvailable(nest, &analyzer)) return *error;
    if (auto error = CheckGuards()) return *error;
    Insert(Inherit(nest, InheritedGuards(), &analyzer));
    return Names{};
  }

 private:
  // Registers and tiles are a number of them, however short a dim is; a tile's is part of the
  // instruction that reads it, too.
  bool TouchesRegisters() const {
    const std::vector<Buffer> written = WrittenBy(block_);
    const std::vector<Region> read = ReadsOf(block_);
    return std::any_of(written.begin(), written.end(),
                       [](const Buffer& b) {
                         return b->scope == Scope::kRegister || b->scope == Scope::kTile;
                       }) ||
           std::any_of(read.begin(), read.end(),
                       [](const Region& r) { return r->buffer->scope == Scope::kTile; });
  }

  const Node* TargetNode() const { return target_.loop ? target_.loop->stmt.get() : nullptr; }
  std::string NoLongerThere() const { return "loop " + target_.loop->loop()->var->name; }

  // All consumers are at the target, and come after the block; there is no other producer.
  std::optional<Diagnostic> CheckBuffers() {
    for (const Buffer& b : WrittenBy(block_)) {
      if (target_.loop && !body_->IsAlloc(b)) {
        return OfBlock(block_.name, "it writes " + b->name +
                                        ", which is not allocated in the function, so that all of "
                                        "it must be computed");
      }
      for (const Place* w : body_->Writers(b)) {
        if (w != &place_) {
          return OfBlock(block_.name, "block " + w->block()->name + " writes " + b->name + " too");
        }
      }
      for (const Place* r : body_->Readers(b)) {
        if (r == &place_) continue;
        if (!r->IsUnder(TargetNode())) {
          return OfBlock(block_.name,
                         "its consumer " + r->block()->name + " is not under " + NoLongerThere());
        }
        if (body_->OrderOf(r) < body_->OrderOf(&place_)) {
          return OfBlock(block_.name, "block " + r->block()->name + " reads " + b->name +
                                          " before it is written");
        }
        consumers_.push_back(r);
      }
    }
    if (target_.loop && consumers_.empty()) {
      return OfBlock(block_.name, "it has no consumer under " + NoLongerThere());
    }
    return std::nullopt;
  }

  // What the block reads is the same at both places.
  std::optional<Diagnostic> CheckOthers() const {
    const Node* meeting = MeetingPoint(place_, target_);
    if (body_->HasStrayUnder(meeting)) {
      return OfBlock(block_.name, "there are statements in no block near it");
    }
    for (const Place* other : body_->BlocksUnder(meeting)) {
      if (other == &place_) continue;
      for (const Buffer& b : WrittenBy(*other->block())) {
        if (!Reads(block_, b)) continue;
        if (body_->OrderOf(other) > body_->OrderOf(&place_)) {
          if (WritesElsewhere(*other, b)) continue;
          return OfBlock(block_.name, "block " + other->block()->name + " writes " + b->name +
                                          ", which it reads, in between");
        }
        if (other->IsUnder(before_.get())) {
          return OfBlock(block_.name, "block " + other->block()->name +
                                          ", which would come after it, writes " + b->name +
                                          ", which it reads");
        }
        if (auto error = LeavesPartial(*other, b)) return error;
      }
    }
    return std::nullopt;
  }

  // In one iteration of a loop around both places, which the block stays in, the other writes
  // nothing that the block reads: the next row of a scan.
  bool WritesElsewhere(const Place& other, const Buffer& b) const {
    const For* shared = SharedLoop(other);
    if (shared == nullptr) return false;
    Analyzer analyzer;
    Learn(*s_.func, &analyzer);
    Learn(place_.path, &analyzer);
    Learn(other.path, &analyzer);
    auto box = [&](const Region& r, const Place& p) {
      return TouchedBox(r, *p.block(), DomainOf(p.LoopsInside(shared), &analyzer), &analyzer);
    };
    auto before = [&](const Expr& end, const Expr& begin) {
      return end && begin && analyzer.CanProve(Lt(end, begin));
    };
    for (const Region& r : ReadsOf(block_)) {
      for (const Region& w : other.block()->writes) {
        if (r->buffer != b || w->buffer != b) continue;
        const Box read = box(r, place_), written = box(w, other);
        bool apart = false;
        for (size_t d = 0; d < read.size(); ++d) {
          apart |= before(read[d].max, written[d].min) || before(written[d].max, read[d].min);
        }
        if (!apart) return false;
      }
    }
    return true;
  }

  // A producer of the block that still reduces in loops around both has not finished when the block
  // runs now.
  std::optional<Diagnostic> LeavesPartial(const Place& other, const Buffer& b) const {
    for (const For* loop : other.Loops()) {
      bool around = place_.IsUnder(loop);
      if (around && (BindsLoop(*other.block(), IterKind::kReduce, loop) ||
                     BindsLoop(*other.block(), IterKind::kOrdered, loop))) {
        return OfBlock(block_.name, "it reads " + b->name + " while loop " + loop->var->name +
                                        " still computes it");
      }
    }
    return std::nullopt;
  }

  // The innermost loop around both places and the other block; null when there is none.
  const For* SharedLoop(const Place& other) const {
    const For* shared = nullptr;
    for (const For* loop : other.Loops()) {
      bool both =
          place_.IsUnder(loop) && std::any_of(target_.path.begin(), target_.path.end(),
                                              [&](const Stmt& s) { return s.get() == loop; });
      if (both) shared = loop;
    }
    return shared;
  }

  // What a loop around both places makes bit by bit is there only as far as the block used it in
  // the same iteration so far: the nest, larger than what is needed perhaps, may run over no more.
  std::optional<Diagnostic> CheckAvailable(const Stmt& nest, Analyzer* analyzer) const {
    std::vector<const For*> loops;
    const Node* inside = nest.get();
    for (; IsA<For>(inside); inside = As<For>(inside)->body.get()) loops.push_back(As<For>(inside));
    IterRanges now = RangesOver(*As<Block>(inside), loops, analyzer);
    for (const Access& a : body_->AccessesUnder(nullptr)) {
      const For* shared = a.write && a.place != &place_ ? SharedLoop(*a.place) : nullptr;
      if (shared == nullptr || !Reads(block_, a.region->buffer)) continue;
      std::vector<const For*> inner = place_.LoopsInside(shared);
      for (const For* loop : inner) Learn(*loop, analyzer);
      IterRanges before = RangesOver(block_, inner, analyzer);
      for (size_t i = 0; i < now.size(); ++i) {
        const IterVar& v = block_.iters[i];
        ExprInterval domain{v->min, analyzer->Simplify(v->min + v->extent - 1)};
        bool known = Contains(before[i], now[i], analyzer) || Contains(before[i], domain, analyzer);
        if (known) continue;
        return OfBlock(block_.name, "loop " + shared->var->name + " may not have made all of " +
                                        a.region->buffer->name + " that it would read there");
      }
    }
    return std::nullopt;
  }

  // The threads around the target that have `shared` memory in common: it must hold what all of
  // them need, whichever of them fill it.
  void FindSharers() {
    std::vector<Buffer> written = WrittenBy(block_);
    const bool shared = std::all_of(written.begin(), written.end(),
                                    [](const Buffer& b) { return b->scope == Scope::kShared; });
    for (const Stmt& s : target_.path) {
      const auto* loop = As<For>(s);
      if (!shared || !loop || loop->for_kind != ForKind::kThread) continue;
      if (IsThreadAxis(loop->thread) || loop->thread == ThreadAxis::kVThread) {
        sharers_.push_back(loop);
        sharer_vars_.insert(loop->var.get());
      }
    }
  }

  // What the consumers need in one iteration of the target loop.
  IterRanges NeededRanges(Analyzer* analyzer) {
    std::optional<IterRanges> needed;
    for (const Access& a : body_->AccessesUnder(TargetNode())) {
      if (a.write || a.place == &place_) continue;
      for (const Region& w : block_.writes) {
        if (w->buffer != a.region->buffer) continue;
        std::vector<const For*> inner = sharers_;
        for (const For* loop : a.place->LoopsInside(TargetNode())) {
          Learn(*loop, analyzer);
          inner.push_back(loop);
        }
        Box box = TouchedBox(a.region, *a.place->block(), DomainOf(inner, analyzer), analyzer);
        IterRanges ranges = TouchingIters(block_, w, box, analyzer);
        if (needed) {
          UniteRanges(ranges, &*needed, analyzer);
        } else {
          needed = std::move(ranges);
        }
      }
    }
    for (size_t i = 0; i < block_.iters.size(); ++i) {
      if (block_.iters[i]->iter_kind != IterKind::kSpatial) (*needed)[i] = {};
    }
    return *needed;
  }

  // How far apart the iterations are, in each range of `needed`, that the consumers need, where
  // threads take elements in turns and each needs its own. Elsewhere the few that are left out are
  // worth less than a stretch without holes.
  std::vector<int64_t> NeededSteps(const IterRanges& needed, Analyzer* analyzer) const {
    std::vector<int64_t> steps(needed.size(), 0);
    std::unordered_set<const VarNode*> threads;
    for (const Stmt& s : target_.path) {
      const auto* loop = As<For>(s);
      if (loop && loop->for_kind == ForKind::kThread) threads.insert(loop->var.get());
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      if (!needed[i].min || !UsesAnyVar(needed[i].min, threads)) steps[i] = 1;
    }
    for (const Access& a : body_->AccessesUnder(TargetNode())) {
      if (a.write || a.place == &place_) continue;
      for (const Region& w : block_.writes) {
        if (w->buffer != a.region->buffer) continue;
        std::vector<const For*> inner = sharers_;
        for (const For* loop : a.place->LoopsInside(TargetNode())) inner.push_back(loop);
        const Region touched = InLoops(a.region, *a.place->block());
        const std::vector<int64_t> here =
            TouchingSteps(block_, w, touched, inner, needed, analyzer);
        for (size_t i = 0; i < steps.size(); ++i) steps[i] = std::gcd(steps[i], here[i]);
      }
    }
    return steps;
  }

  // The block with no more of its domains than its loops run over, as OwnRanges says for a block
  // that goes outside.
  Block WithinLoops() const {
    Block out = block_;
    Analyzer analyzer;
    Learn(*s_.func, &analyzer);
    Learn(place_.path, &analyzer);
    const IterRanges ranges = RangesOver(block_, place_.Loops(), &analyzer);
    for (size_t i = 0; i < ranges.size(); ++i) {
      IterVar& v = out.iters[i];
      const ExprInterval& r = ranges[i];
      if (v->iter_kind != IterKind::kSpatial || !r.min || !r.max) continue;
      const Expr end = v->min + v->extent;
      const bool later = analyzer.CanProve(Gt(r.min, v->min));
      const bool sooner = analyzer.CanProve(Lt(r.max + 1, end));
      if (!later && !sooner) continue;
      const Expr min = later ? r.min : v->min;
      const Expr extent = analyzer.Simplify((sooner ? r.max + 1 : end) - min);
      v = IterVarNode::Make(v->var, v->iter_kind, min, extent, v->binding);
    }
    return out;
  }

  // What its loops run over now: beyond that, what it reads may be written by nobody.
  IterRanges OwnRanges(Analyzer* analyzer) {
    for (const For* loop : place_.Loops()) Learn(*loop, analyzer);
    IterRanges ranges = RangesOver(block_, place_.Loops(), analyzer);
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (block_.iters[i]->iter_kind != IterKind::kSpatial) ranges[i] = {};
    }
    return ranges;
  }

  // What guards the block at its new place, too, guards its consumers: else they read what an
  // earlier iteration of the loops around both made (a pipeline's).
  std::optional<Diagnostic> CheckGuards() const {
    for (const Expr& guard : GuardsAround(place_, target_.path)) {
      for (const Place* consumer : consumers_) {
        if (HoldsWhereRuns(*consumer, *s_.func, guard)) continue;
        return OfBlock(block_.name, "it runs where " + ToString(NodeRef(guard)) +
                                        " only, its consumer " + consumer->block()->name +
                                        " elsewhere too");
      }
    }
    return std::nullopt;
  }

  // Where no consumer runs, nothing need be there for the block to read. What guarded the block
  // stays.
  std::vector<Expr> InheritedGuards() const {
    std::vector<Expr> out = GuardsAround(place_, target_.path);
    if (consumers_.empty()) return out;
    for (const Expr& c : GuardsAround(*consumers_[0], target_.path)) {
      bool common = std::all_of(consumers_.begin(), consumers_.end(), [&](const Place* p) {
        std::vector<Expr> theirs = GuardsAround(*p, target_.path);
        return std::any_of(theirs.begin(), theirs.end(),
                           [&](const Expr& g) { return StructuralEqual(g, c); });
      });
      // One thread's part of shared memory is needed by others.
      if (common && !UsesAnyVar(c, sharer_vars_)) out.push_back(c);
    }
    return out;
  }

  void Insert(const Stmt& nest) {
    Replacements edits{{place_.stmt.get(), nullptr}};
    const Stmt& before = before_;
    if (before == place_.stmt || place_.IsUnder(before.get())) {
      Stmt rest = Edit(before, edits);
      edits = {{before.get(), Before(nest, rest)}};
    } else {
      edits[before.get()] = Before(nest, before);
    }
    s_.SetBody(Edit(body_->root(), edits));
  }

  // The statement in the target's body that holds the first consumer.
  Stmt FirstConsumer() const {
    const Place* first = *std::min_element(
        consumers_.begin(), consumers_.end(),
        [&](const Place* a, const Place* b) { return body_->OrderOf(a) < body_->OrderOf(b); });
    Stmt branch = BranchTowards(*first, TargetNode());
    return IsA<Seq>(branch) ? BranchTowards(*first, branch.get()) : branch;
  }

  State& s_;
  Body* body_;
  const Place& place_;
  const Block& block_;
  Target target_;
  std::vector<const Place*> consumers_;
  std::vector<const For*> sharers_;
  std::unordered_set<const VarNode*> sharer_vars_;
  Stmt before_;  // what the block will stand in front of
};

}  // namespace

Result ComputeAt(State& s, const std::string& block, const std::string& loop) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* b, body.NeedBlock(block));
  TN_ASSIGN_OR_RETURN(const Place* l, body.NeedLoop(loop));
  if (l->inner) return Because("loop " + loop + " is inside the body of a block");
  return ProducerMover(s, &body, *b, Target::Under(*l)).Run();
}

Result ComputeRoot(State& s, const std::string& block) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* b, body.NeedBlock(block));
  return ProducerMover(s, &body, *b, Target::Outside(*b)).Run();
}

}  // namespace tenon::primitive

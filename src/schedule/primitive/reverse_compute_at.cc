// reverse_compute_at: a consumer moves to where its producers are.
//
// The mirror image of compute_at, with one difference: a consumer may run early, but not before its
// inputs are finished, and not twice. So the question is not what is needed but what one iteration
// of the target loop finishes of each input (FinishedBox), and the block's iterations are those
// whose reads lie inside (EnclosedIters). From
//
//   for i.0 in 0..2, j.0 in 0..2, i.1 in 0..4, j.1 in 0..4, k in 0..6 {
//     block C(vi: spatial in 0..8 = i.0 * 4 + i.1, vj: …, vk: reduce = k) { … }
//   }
//   for x in 0..8, y in 0..8 {
//     block D(vx: spatial = x, vy: spatial = y) { reads C[vx, vy]; writes D[vx, vy] … }
//   }
//
// comes with reverse_compute_at("D", "j.0")
//
//   for i.0 in 0..2, j.0 in 0..2 {
//     for i.1 in 0..4, j.1 in 0..4, k in 0..6 { block C(…) { … } }
//     for D.ax0 in 0..4, D.ax1 in 0..4 {
//       block D(vx: spatial in 0..8 = i.0 * 4 + D.ax0, vy: spatial in 0..8 = j.0 * 4 + D.ax1) { … }
//     }
//   }
//
// All iterations of the target loop together must finish all there is, and no part twice: the loops
// that the block moves into have to be fixed by where its part begins, if it is a reduction. A
// window (reads of several elements around one) is never inside of one tile and is refused.

#include <algorithm>

#include "ir/print.h"
#include "ir/visit.h"
#include "schedule/analysis/solve.h"
#include "schedule/primitive/move.h"
#include "schedule/primitive/primitives.h"

namespace tenon::primitive {

namespace {

// One move. At its new place the block runs each of its iterations once, after its inputs are
// finished; the state is changed in one step at the end.
class ConsumerMover {
 public:
  ConsumerMover(State& s, Body* body, const Place& block, const Place& loop)
      : s_(s),
        body_(body),
        place_(block),
        block_(*block.block()),
        target_(Target::Under(loop)),
        loop_(*loop.loop()) {}

  Result Run() {
    if (auto error = NotMovable(*body_, place_, target_)) return *error;
    meeting_ = MeetingPoint(place_, target_);
    if (meeting_ == &loop_) return OfBlock(block_.name, "it is under the loop already");
    if (auto error = CheckOthers()) return *error;
    Learn(*s_.func, &analyzer_);
    Learn(target_.path, &analyzer_);
    TN_ASSIGN_OR_RETURN(IterRanges ranges, AvailableRanges());
    if (auto error = CheckTogether()) return *error;
    if (auto error = CheckRepeats(ranges)) return *error;
    Stmt nest = MakeNest(block_, ranges, Widen::kNo, body_, &analyzer_);
    nest = Inherit(nest, InheritedGuards(), &analyzer_);
    // Null takes the block away; the last producer's statement gets it behind.
    Stmt after = LastProducer();
    s_.SetBody(
        Edit(body_->root(), {{place_.stmt.get(), nullptr}, {after.get(), Before(after, nest)}}));
    return Names{};
  }

 private:
  // Everything between the two places leaves alone what the block touches; its producers are done
  // at the new one.
  std::optional<Diagnostic> CheckOthers() {
    if (body_->HasStrayUnder(meeting_)) {
      return OfBlock(block_.name, "there are statements in no block near it");
    }
    if (FirstOrder() > body_->OrderOf(&place_)) {
      return OfBlock(block_.name, "loop " + loop_.var->name + " comes after it");
    }
    for (const Place* other : body_->BlocksUnder(meeting_)) {
      if (other == &place_) continue;
      if (auto error = CheckOther(*other)) return error;
    }
    if (producers_.empty()) {
      return OfBlock(block_.name, "it has no producer under loop " + loop_.var->name);
    }
    if (auto error = CheckGuards()) return error;
    return CheckElsewhere();
  }

  // In loops around both, the block runs where its producers do: else it reads what they made in an
  // earlier iteration (a pipeline's).
  std::optional<Diagnostic> CheckGuards() const {
    std::vector<Stmt> shared;
    for (const Stmt& s : target_.path) {
      if (meeting_ == nullptr) break;
      shared.push_back(s);
      if (s.get() == meeting_) break;
    }
    for (const Place* producer : producers_) {
      for (const Expr& guard : GuardsAround(*producer, shared)) {
        if (HoldsWhereRuns(place_, *s_.func, guard)) continue;
        return OfBlock(block_.name, "its producer " + producer->block()->name + " runs where " +
                                        ToString(NodeRef(guard)) + " only, it elsewhere too");
      }
    }
    return std::nullopt;
  }

  std::optional<Diagnostic> CheckOther(const Place& other) {
    const Block& theirs = *other.block();
    bool under = other.IsUnder(&loop_);
    bool before_target = body_->OrderOf(&other) < FirstOrder();
    bool after_block = body_->OrderOf(&other) > body_->OrderOf(&place_);
    for (const Region& r : block_.reads) {
      if (!Writes(theirs, r->buffer)) continue;
      if (under) {
        producers_.push_back(&other);
      } else if (!before_target || SharesBranch(other)) {
        return OfBlock(block_.name, "block " + theirs.name + ", not under loop " + loop_.var->name +
                                        ", writes " + r->buffer->name + ", which it reads");
      }
    }
    for (const Region& w : block_.writes) {
      bool touches = Writes(theirs, w->buffer) || Reads(theirs, w->buffer);
      if (touches && !after_block) {
        return OfBlock(block_.name, "block " + theirs.name + " touches " + w->buffer->name +
                                        ", which it writes, before it");
      }
    }
    return std::nullopt;
  }

  // Iterations of the block are found by what the producers under the loop write, which must then
  // be all there is.
  std::optional<Diagnostic> CheckElsewhere() const {
    for (const Place* producer : producers_) {
      for (const Region& r : block_.reads) {
        if (!Writes(*producer->block(), r->buffer)) continue;
        for (const Place* w : body_->Writers(r->buffer)) {
          if (w == &place_ || w->IsUnder(&loop_)) continue;
          return OfBlock(block_.name, "block " + w->block()->name + ", not under loop " +
                                          loop_.var->name + ", writes " + r->buffer->name + " too");
        }
      }
    }
    return std::nullopt;
  }

  // Position of the first block under the target loop.
  size_t FirstOrder() const {
    std::vector<const Place*> under = body_->BlocksUnder(&loop_);
    return under.empty() ? 0 : body_->OrderOf(under[0]);
  }

  // The other block runs in turn with the target loop, not wholly before it.
  bool SharesBranch(const Place& other) const {
    return CommonAncestor(other, *target_.loop) != meeting_;
  }

  // Loops from the meeting point down to the target, that one included.
  std::vector<const For*> CrossedLoops() const {
    std::vector<const For*> loops = target_.loop->LoopsInside(meeting_);
    loops.push_back(&loop_);
    return loops;
  }

  // What one writer makes of a buffer: in an iteration of the target loop, and in all of them.
  struct Made {
    Box now, ever;
  };

  // What an iteration of the target loop finishes of a buffer: writers either make the same part,
  // one after the other, or never touch what another makes. Empty when none is under the loop.
  Expected<Box> FinishedBox(const Buffer& buffer) {
    std::vector<Made> parts;
    for (const Place* p : producers_) {
      if (!Writes(*p->block(), buffer)) continue;
      if (auto error = Unfinished(*p, buffer)) return *error;
      for (const Region& w : p->block()->writes) {
        if (w->buffer != buffer) continue;
        Made made = MadeBy(*p, w);
        if (!FillsItsBox(w, *p->block(), p->LoopsInside(&loop_), &analyzer_)) {
          return OfBlock(block_.name, "block " + p->block()->name + " writes scattered parts of " +
                                          buffer->name);
        }
        bool known = false, apart = true;
        for (const Made& other : parts) {
          known |= Contains(made.now, other.now, &analyzer_) &&
                   Contains(other.now, made.now, &analyzer_);
          apart &= Disjoint(made.ever, other.ever);
        }
        if (known) continue;
        if (!apart) return OfBlock(block_.name, "the writers of " + buffer->name + " overlap");
        parts.push_back(std::move(made));
      }
    }
    Box out;
    for (const Made& part : parts) {
      if (!out.empty() && !Adjoin(out, part.now)) {
        return OfBlock(block_.name, "what is written of " + buffer->name +
                                        " under the loop is not known to be one box");
      }
      out = out.empty() ? part.now : Union(out, part.now, &analyzer_);
    }
    return out;
  }

  // Whether each of the block's ordered variables is a place in the buffer, so that no element is
  // written at two of its steps.
  static bool IsWrittenOnce(const Block& block, const Buffer& buffer) {
    return std::all_of(block.iters.begin(), block.iters.end(), [&](const IterVar& v) {
      if (v->iter_kind != IterKind::kOrdered) return true;
      return std::any_of(block.writes.begin(), block.writes.end(), [&](const Region& r) {
        return r->buffer == buffer &&
               std::any_of(r->ranges.begin(), r->ranges.end(), [&](const Range& range) {
                 return range->min == v->var && IsOne(range->extent);
               });
      });
    });
  }

  std::optional<Diagnostic> Unfinished(const Place& producer, const Buffer& buffer) {
    const Block& block = *producer.block();
    for (const For* loop : CrossedLoops()) {
      if (BindsLoop(block, IterKind::kReduce, loop) ||
          (BindsLoop(block, IterKind::kOrdered, loop) && !IsWrittenOnce(block, buffer))) {
        return OfBlock(block_.name, "loop " + loop->var->name + " has not finished " +
                                        buffer->name + ": it runs over the reduction of block " +
                                        block.name);
      }
    }
    if (GuardsOnlyDomain(producer, *s_.func, GuardsAround(producer, target_.path)) && block.exact) {
      return std::nullopt;
    }
    return OfBlock(block_.name,
                   "block " + block.name + " may write only a part of " + buffer->name);
  }

  Made MadeBy(const Place& producer, const Region& write) {
    std::vector<const For*> inner = producer.LoopsInside(&loop_), all = CrossedLoops();
    for (const For* loop : inner) Learn(*loop, &analyzer_);
    all.insert(all.end(), inner.begin(), inner.end());
    const Block& block = *producer.block();
    return {TouchedBox(write, block, DomainOf(inner, &analyzer_), &analyzer_),
            TouchedBox(write, block, DomainOf(all, &analyzer_), &analyzer_)};
  }

  bool Below(const ExprInterval& a, const ExprInterval& b) {
    return a.max && b.min && analyzer_.CanProve(Lt(a.max, b.min));
  }

  bool Disjoint(const Box& a, const Box& b) {
    for (size_t d = 0; d < a.size(); ++d) {
      if (Below(a[d], b[d]) || Below(b[d], a[d])) return true;
    }
    return false;
  }

  // The box around both holds nothing else: they differ in one dimension, without a gap.
  bool Adjoin(const Box& a, const Box& b) {
    int differ = 0;
    for (size_t d = 0; d < a.size(); ++d) {
      if (!a[d].min || !a[d].max || !b[d].min || !b[d].max) return false;
      if (Same(a[d], b[d])) continue;
      ++differ;
      bool gap = !analyzer_.CanProve(Le(b[d].min, a[d].max + 1)) ||
                 !analyzer_.CanProve(Le(a[d].min, b[d].max + 1));
      if (gap) return false;
    }
    return differ <= 1;
  }

  // The iterations of the block whose inputs one iteration of the target loop finishes.
  Expected<IterRanges> AvailableRanges() {
    IterRanges ranges = WholeDomain(block_);
    for (const Region& r : block_.reads) {
      if (Writes(block_, r->buffer)) continue;
      TN_ASSIGN_OR_RETURN(Box box, FinishedBox(r->buffer));
      if (box.empty()) continue;  // finished before the loop
      std::optional<IterRanges> own = EnclosedIters(block_, r, box, &analyzer_);
      if (!own) {
        return OfBlock(block_.name, "what it reads of " + r->buffer->name +
                                        " is not finished by one iteration of loop " +
                                        loop_.var->name);
      }
      for (size_t i = 0; i < ranges.size(); ++i) {
        if (!ranges[i].min) {
          ranges[i] = (*own)[i];
        } else if ((*own)[i].min && !Same(ranges[i], (*own)[i])) {
          return OfBlock(block_.name,
                         "its producers finish different parts of it in one iteration "
                         "of loop " +
                             loop_.var->name);
        }
      }
    }
    return ranges;
  }

  bool Same(const ExprInterval& a, const ExprInterval& b) {
    return analyzer_.CanProveEqual(a.min, b.min) && analyzer_.CanProveEqual(a.max, b.max);
  }

  bool Implies(const std::vector<Expr>& guards, const std::vector<Expr>& others) {
    std::vector<size_t> assumed;
    for (const Expr& g : guards) assumed.push_back(analyzer_.Assume(g));
    const bool out = std::all_of(others.begin(), others.end(),
                                 [&](const Expr& o) { return analyzer_.CanProve(o); });
    while (!assumed.empty()) {
      analyzer_.Retract(assumed.back());
      assumed.pop_back();
    }
    return out;
  }

  // Where one producer runs its part the other runs too (those of a pipeline's stages need not):
  // the block, which runs where all do, would else miss some of what it must make.
  std::optional<Diagnostic> CheckTogether() {
    for (size_t i = 1; i < producers_.size(); ++i) {
      const Place &a = *producers_[i - 1], &b = *producers_[i];
      const std::vector<Expr> of_a = GuardsAround(a, target_.path);
      const std::vector<Expr> of_b = GuardsAround(b, target_.path);
      if (Implies(of_a, of_b) || Implies(of_b, of_a)) continue;
      return OfBlock(block_.name, "its producers " + a.block()->name + " and " + b.block()->name +
                                      " run in different iterations of loop " + loop_.var->name);
    }
    return std::nullopt;
  }

  // A reduction must run each of its iterations once.
  std::optional<Diagnostic> CheckRepeats(const IterRanges& ranges) {
    if (!HasKind(block_, IterKind::kReduce) && !HasKind(block_, IterKind::kOrdered)) {
      return std::nullopt;
    }
    bool whole = true;
    for (size_t i = 0; i < ranges.size(); ++i) {
      whole &= !ranges[i].min || block_.iters[i]->iter_kind == IterKind::kSpatial;
    }
    if (whole) return std::nullopt;  // each element anew from its init
    std::unordered_set<const VarNode*> unknown;
    for (const For* loop : CrossedLoops()) unknown.insert(loop->var.get());
    auto fixed = FixedVars(SumsOf(ranges, &analyzer_), unknown, {}, &analyzer_);
    for (const For* loop : CrossedLoops()) {
      if (fixed.count(loop->var.get()) == 0 && !IsOne(loop->extent)) {
        return OfBlock(block_.name, "iterations of loop " + loop->var->name +
                                        " would run parts of its reduction twice");
      }
    }
    return CheckReduceOrder(ranges);
  }

  // With its init inside, the reduction must begin with its first iteration: the parts come in
  // order.
  std::optional<Diagnostic> CheckReduceOrder(const IterRanges& ranges) {
    for (size_t i = 0; i < ranges.size(); ++i) {
      const IterVar& v = block_.iters[i];
      if (!ranges[i].min || v->iter_kind == IterKind::kSpatial) continue;
      VarMap first;
      for (const For* loop : CrossedLoops()) {
        if (!UsesVar(ranges[i].min, loop->var.get())) continue;
        first[loop->var.get()] = loop->min;
        for (size_t j = 0; j < ranges.size(); ++j) {
          bool spatial = block_.iters[j]->iter_kind == IterKind::kSpatial;
          if (spatial && ranges[j].min && UsesVar(ranges[j].min, loop->var.get())) {
            return OfBlock(block_.name, "loop " + loop->var->name +
                                            " would run over spatial and reduce variables at once");
          }
        }
      }
      if (!analyzer_.CanProve(Le(Substitute(ranges[i].min, first), v->min)) ||
          v->iter_kind == IterKind::kOrdered) {
        return OfBlock(block_.name, "the parts of its reduction over " + v->var->name +
                                        " are not known to come in order");
      }
    }
    return std::nullopt;
  }

  // The block runs where its producers have run. What guarded it stays.
  std::vector<Expr> InheritedGuards() const {
    std::vector<Expr> out = GuardsAround(place_, target_.path);
    for (const Place* p : producers_) {
      for (const Expr& c : GuardsAround(*p, target_.path)) {
        bool there = std::any_of(out.begin(), out.end(),
                                 [&](const Expr& g) { return StructuralEqual(g, c); });
        if (!there) out.push_back(c);
      }
    }
    return out;
  }

  // The statement in the target's body that holds the last producer.
  Stmt LastProducer() const {
    const Place* last = *std::max_element(
        producers_.begin(), producers_.end(),
        [&](const Place* a, const Place* b) { return body_->OrderOf(a) < body_->OrderOf(b); });
    Stmt branch = BranchTowards(*last, &loop_);
    return IsA<Seq>(branch) ? BranchTowards(*last, branch.get()) : branch;
  }

  State& s_;
  Body* body_;
  const Place& place_;
  const Block& block_;
  Target target_;
  const For& loop_;
  const Node* meeting_ = nullptr;
  std::vector<const Place*> producers_;
  Analyzer analyzer_;
};

}  // namespace

Result ReverseComputeAt(State& s, const std::string& block, const std::string& loop) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* b, body.NeedBlock(block));
  TN_ASSIGN_OR_RETURN(const Place* l, body.NeedLoop(loop));
  if (l->inner) return Because("loop " + loop + " is inside the body of a block");
  return ConsumerMover(s, &body, *b, *l).Run();
}

}  // namespace tenon::primitive

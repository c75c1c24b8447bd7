// When may iterations change places?
//
// Where each element is touched in one iteration only (dependence/iterations.h), they may. In
//
//   for i in 0..7, j in 0..10, k in 0..6 {
//     block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) {
//       reads A[vi, vk], B[vk, vj]; writes C[vi, vj]
//
// i and j may run in parallel, and bind("k", "threadIdx.x") is refused with: of block C: loop k
// runs over its reduction.
//
// Where elements do not fix iterations, three things help still. A reduction may be done in another
// order by declaration, if its first iteration stays first for its init. A buffer that is written
// before it is read in each iteration (dependence/coverage.h) carries nothing from one iteration to
// the next; the loop then says that it has the buffer privately. And elements that several
// iterations write have the last one's value, which does not matter where one block writes them
// all. What is shown is shown by the analyzer; what it cannot show is a refusal that names the
// block and the reason.

#include "schedule/analysis/conflicts.h"

#include <algorithm>

#include "ir/visit.h"
#include "loop/promises.h"
#include "loop/reducer.h"

namespace tenon::primitive {

namespace {

using LoopList = std::vector<const For*>;

bool In(const LoopList& loops, const For* loop) {
  return std::find(loops.begin(), loops.end(), loop) != loops.end();
}

std::string NameOf(const For* loop) { return loop->var->name; }

std::optional<Diagnostic> OpaqueUnder(const Body& body, const Node* stmt) {
  if (body.HasStrayUnder(stmt)) {
    return Because(
        "the loop holds statements that are in no block, so that nothing is known of them");
  }
  for (const Place* p : body.BlocksUnder(stmt)) {
    if (p->block()->opaque) return OfBlock(p->block()->name, "the block is opaque");
  }
  return std::nullopt;
}

// The updates may be combined in another association than one after the other.
bool PermitsReassociation(const Block& block) {
  if (block.fp == FpMode::kReassoc) return true;
  std::optional<Reduction> reduction = DetectReducer(block);
  return reduction && IsExactInAnyOrder(*reduction);
}

// The first of its iterations sets the initial value, in itself or in a block inside.
bool HasInit(const Block& block) {
  bool found = block.init != nullptr;
  PreOrder(block.body, [&](const NodeRef& n) {
    const auto* inner = As<Block>(n);
    found |= inner != nullptr && inner->init;
    return IsA<StmtNode>(n) && !found;
  });
  return found;
}

// A reduction by one block without init, in an order that does not matter. A loop over spatial
// variables too (a fused one) changes element as it goes.
bool IsFreeReduction(const std::vector<Access>& accesses, const For* loop) {
  const Block& block = *accesses[0].place->block();
  for (const Access& a : accesses) {
    if (a.place != accesses[0].place) return false;
  }
  return !HasInit(block) && BindsLoop(block, IterKind::kReduce, loop) &&
         !BindsLoop(block, IterKind::kSpatial, loop) && PermitsReassociation(block);
}

bool UpdatesAccumulator(const std::vector<Access>& accesses, const For* loop) {
  return std::any_of(accesses.begin(), accesses.end(), [&](const Access& a) {
    return a.write && BindsLoop(*a.place->block(), IterKind::kReduce, loop);
  });
}

Diagnostic WhyConflict(const Body& body, const std::vector<Access>& accesses, const For* loop) {
  const Buffer& buffer = accesses[0].region->buffer;
  for (const Access& a : accesses) {
    if (a.write && BindsLoop(*a.place->block(), IterKind::kReduce, loop)) {
      return OfBlock(a.place->block()->name, "loop " + NameOf(loop) + " runs over its reduction");
    }
  }
  const auto write =
      std::find_if(accesses.begin(), accesses.end(), [](const Access& a) { return a.write; });
  Diagnostic d = OfBlock(write->place->block()->name,
                         "iterations of loop " + NameOf(loop) +
                             " are not known to touch different elements of " + buffer->name);
  if (body.IsAlloc(buffer) && AllUsesUnder(body, buffer, loop)) {
    if (const auto read = FirstUncovered(body, buffer, loop, false)) {
      d.notes.push_back("nor is all that block " + read->place->block()->name + " reads of " +
                        buffer->name + " known to be written before in the same iteration");
    }
  }
  d.notes.push_back(std::string("where they are apart all the same, the loop's attribute ") +
                    kIndependentAttr + " promises it");
  return d;
}

}  // namespace

std::optional<Diagnostic> ConflictBetweenIterations(const Body& body, const Place& place,
                                                    bool reductions, Names* own) {
  const For* loop = place.loop();
  if (place.inner) return Because("loop " + NameOf(loop) + " is inside the body of a block");
  if (IsOne(loop->extent)) return std::nullopt;
  const bool promised = loop->attrs.Has(kIndependentAttr);
  if (auto opaque = OpaqueUnder(body, loop); opaque && !promised) return opaque;
  for (const Place* p : body.BlocksUnder(loop)) {
    if (BindsLoop(*p->block(), IterKind::kOrdered, loop)) {
      return OfBlock(p->block()->name, "loop " + NameOf(loop) + " runs over an ordered variable");
    }
  }
  for (const std::vector<Access>& accesses : WrittenUnder(body, loop)) {
    const Buffer& buffer = accesses[0].region->buffer;
    if (ElementFixesLoops(body, accesses, {loop})) continue;
    // Lanes of a vector share what is allocated among them.
    if (!reductions && IsAllocatedUnder(*accesses[0].place, buffer, loop)) continue;
    if (body.IsAlloc(buffer) && AllUsesUnder(body, buffer, loop) &&
        IsCoveredIn(body, buffer, loop)) {
      own->push_back(buffer->name);
      continue;
    }
    if (reductions && IsFreeReduction(accesses, loop)) continue;
    if (promised && !UpdatesAccumulator(accesses, loop)) continue;
    return WhyConflict(body, accesses, loop);
  }
  return std::nullopt;
}

namespace {

// The loops whose place relative to another changes: what is left without the common start and end.
LoopList Moved(const LoopList& from, const LoopList& to) {
  size_t first = 0, last = from.size();
  while (first < last && from[first] == to[first]) ++first;
  while (last > first && from[last - 1] == to[last - 1]) --last;
  return LoopList(from.begin() + static_cast<ptrdiff_t>(first),
                  from.begin() + static_cast<ptrdiff_t>(last));
}

bool SameOrder(const LoopList& some, const LoopList& to) {
  LoopList in_to = to;
  std::erase_if(in_to, [&](const For* loop) { return !In(some, loop); });
  return in_to == some;
}

// A reduction with its init inside starts right in any order of loops when its first iteration is
// the one with all of its loops at their first values.
std::optional<Diagnostic> ConflictOfInit(const Body& body, const Place& place,
                                         const LoopList& moved) {
  const Block& block = *place.block();
  if (!HasInit(block)) return std::nullopt;
  LoopList reduce = LoopsOfKind(block, IterKind::kReduce, moved);
  for (const For* loop : reduce) {
    if (BindsLoop(block, IterKind::kSpatial, loop)) {
      return OfBlock(block.name, "loop " + NameOf(loop) +
                                     " runs over spatial and reduce variables at once; "
                                     "decompose_reduction first");
    }
  }
  if (!reduce.empty()) {
    if (const For* loop = RepeatingLoop(body, place, moved)) {
      return OfBlock(block.name, "each iteration of loop " + NameOf(loop) +
                                     " computes it anew; decompose_reduction first");
    }
  }
  Analyzer analyzer;
  Learn(*body.func(), &analyzer);
  VarMap first;
  for (const For* loop : place.Loops()) {
    Learn(*loop, &analyzer);
    if (BindsLoop(block, IterKind::kReduce, loop)) first[loop->var.get()] = loop->min;
  }
  for (const IterVar& v : block.iters) {
    if (reduce.empty() || v->iter_kind != IterKind::kReduce) continue;
    if (!analyzer.CanProveEqual(Substitute(v->binding, first), v->min)) {
      return OfBlock(block.name, "the first iteration is not known to start the reduction over " +
                                     v->var->name);
    }
  }
  return std::nullopt;
}

std::optional<Diagnostic> ConflictOfOrdered(const Body& body, const Place& place,
                                            const LoopList& moved, const LoopList& to) {
  const Block& block = *place.block();
  LoopList ordered = LoopsOfKind(block, IterKind::kOrdered, moved);
  if (ordered.empty()) return std::nullopt;
  if (!SameOrder(ordered, to)) {
    return OfBlock(block.name, "the order of loop " + NameOf(ordered[0]) +
                                   " matters: it runs over an ordered variable");
  }
  LoopList others = moved;
  std::erase_if(others, [&](const For* loop) { return In(ordered, loop); });
  for (const std::vector<Access>& accesses : WrittenUnder(body, moved[0])) {
    for (const For* loop : others) {
      if (!ElementFixesLoops(body, accesses, {moved[0], loop}) &&
          !ElementFixesLoops(body, accesses, {loop})) {
        return OfBlock(block.name, "iterations of loop " + NameOf(loop) +
                                       " may depend on each other through an ordered variable");
      }
    }
  }
  return std::nullopt;
}

}  // namespace

namespace {

bool OneWriter(const std::vector<Access>& accesses) {
  const Place* writer = nullptr;
  for (const Access& a : accesses) {
    if (!a.write) continue;
    if (writer != nullptr && writer != a.place) return false;
    writer = a.place;
  }
  return true;
}

}  // namespace

std::optional<Diagnostic> ConflictOfOrder(const Body& body, const LoopList& from,
                                          const LoopList& to) {
  LoopList moved = Moved(from, to);
  if (moved.empty()) return std::nullopt;
  if (auto opaque = OpaqueUnder(body, moved[0])) return opaque;
  for (const Place* p : body.BlocksUnder(moved[0])) {
    if (auto conflict = ConflictOfInit(body, *p, moved)) return conflict;
    if (auto conflict = ConflictOfOrdered(body, *p, moved, to)) return conflict;
  }
  for (const std::vector<Access>& accesses : WrittenUnder(body, moved[0])) {
    bool one_block = std::all_of(accesses.begin(), accesses.end(),
                                 [&](const Access& a) { return a.place == accesses[0].place; });
    if (one_block && IsOneSpatialBlock(accesses)) continue;  // any order, by declaration
    if (one_block && HasKind(*accesses[0].place->block(), IterKind::kOrdered)) continue;
    if (ElementFixesLoops(body, accesses, moved)) continue;
    bool complete = std::all_of(accesses.begin(), accesses.end(), [&](const Access& a) {
      return LoopsOfKind(*a.place->block(), IterKind::kReduce, moved).empty() &&
             LoopsOfKind(*a.place->block(), IterKind::kOrdered, moved).empty();
    });
    const Buffer& buffer = accesses[0].region->buffer;
    if (IsAllocatedUnder(*accesses[0].place, buffer, moved.back())) continue;
    // Elements that several iterations write have the last one's value afterwards: the same whoever
    // is last where one block alone writes them, and nobody's business where all uses are inside.
    bool last_is_any =
        OneWriter(accesses) || (body.IsAlloc(buffer) && AllUsesUnder(body, buffer, moved[0]));
    if (complete && last_is_any && IsCoveredIn(body, buffer, moved.back())) continue;
    return OfBlock(accesses.back().place->block()->name,
                   "iterations of the loops depend on each other through " + buffer->name);
  }
  return std::nullopt;
}

}  // namespace tenon::primitive

// When may iterations change places?
//
// Everything here is judged on what blocks declare: regions read and written, kinds of variables.
// Iterations of loops are independent through a buffer if each of its elements is touched in one
// iteration only. That is a question of number theory, answered by injective.h: the touched
// regions, each dimension a sum over the loops' variables known up to the extent of what is inside,
// are known numbers; do they fix the variables? In
//
//   for i in 0..7, j in 0..10, k in 0..6 {
//     block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) {
//       reads A[vi, vk], B[vk, vj]; writes C[vi, vj]
//
// C[vi, vj] fixes i and j and not k, so i and j may run in parallel, and parallel("k") is refused
// with: of block C: loop k runs over its reduction.
//
// Where elements do not fix iterations, four things help still. A reduction may be done in another
// order by declaration, if its first iteration stays first for its init. The threads of a block may
// each make a part of one. A buffer that is written
// before it is read in each iteration (IsCoveredIn: the box that is written earlier, by one block
// or by several whose boxes join, holds the box that is read) carries nothing from one iteration to
// the next; the loop then says that it has the buffer privately. And elements that several
// iterations write have the last one's value, which does not matter where one block writes them
// all. What is shown is shown by the analyzer; what it cannot show is a refusal that names the
// block and the reason.

#include "schedule/analysis/dependence.h"

#include <algorithm>

#include "arith/injective.h"
#include "ir/visit.h"
#include "loop/promises.h"
#include "loop/reducer.h"
#include "loop/thread_reduction.h"
#include "schedule/analysis/retarget.h"

namespace tenon::primitive {

namespace {

using LoopList = std::vector<const For*>;

bool In(const LoopList& loops, const For* loop) {
  return std::find(loops.begin(), loops.end(), loop) != loops.end();
}

std::string NameOf(const For* loop) { return loop->var->name; }

// The loops around all accesses, from `top` inwards.
LoopList SharedLoops(const std::vector<Access>& accesses, const For* top) {
  auto from_top = [&](const Place& p) {
    LoopList loops = p.Loops();
    loops.erase(loops.begin(), std::find(loops.begin(), loops.end(), top));
    return loops;
  };
  LoopList shared = from_top(*accesses[0].place);
  for (const Access& a : accesses) {
    LoopList other = from_top(*a.place);
    auto differ = std::mismatch(shared.begin(), shared.end(), other.begin(), other.end());
    shared.erase(differ.first, shared.end());
  }
  return shared;
}

// All accesses of one block to its accumulator, or to elements that its spatial variables tell
// apart.
bool IsOneSpatialBlock(const std::vector<Access>& accesses) {
  const Block& block = *accesses[0].place->block();
  const Region& first = accesses[0].region;
  for (const Access& a : accesses) {
    if (a.place != accesses[0].place) return false;
    if (a.region != first && !StructuralEqual(a.region, first)) return false;
  }
  return !HasKind(block, IterKind::kOrdered);
}

std::vector<KnownSum> SumsOfSpatial(const Block& block) {
  std::vector<KnownSum> known;
  for (const IterVar& v : block.iters) {
    if (v->iter_kind == IterKind::kSpatial) known.push_back({v->binding});
  }
  return known;
}

// Where in the buffer one iteration of the shared loops is.
std::vector<KnownSum> SumsOfRegions(const std::vector<Access>& accesses, const LoopList& shared,
                                    Analyzer* analyzer) {
  Box all;
  for (const Access& a : accesses) {
    const LoopList inner = a.place->LoopsInside(shared.back());
    Box box = TouchedBox(a.region, *a.place->block(), inner, analyzer);
    all = all.empty() ? box : Union(all, box, analyzer);
  }
  return SumsOf(all, analyzer);
}

// What holds of the shared loops wherever the block runs.
std::vector<Expr> GuardsOutside(const Place& place, const LoopList& shared, Analyzer* analyzer) {
  const LoopList inner = place.LoopsInside(shared.back());
  const IntervalMap domain = DomainOf(inner, analyzer);
  std::unordered_set<const VarNode*> vars;
  for (const For* loop : inner) vars.insert(loop->var.get());
  std::vector<Expr> out;
  for (const Expr& raw : Conjuncts(place.block()->where)) {
    const Expr guard = analyzer->Simplify(Substitute(raw, BindingsOf(*place.block())));
    const auto* order = As<Binary>(guard);
    if (!UsesAnyVar(guard, vars)) {
      out.push_back(guard);
    } else if (order && (order->op == BinaryOp::kLt || order->op == BinaryOp::kLe)) {
      const Expr least = EvalInterval(order->lhs - order->rhs, domain, analyzer).min;
      if (!least || UsesAnyVar(least, vars)) continue;
      out.push_back(analyzer->Simplify(Binary::Make(order->op, least, IndexConst(0))));
    }
  }
  return out;
}

// What holds in an iteration of loops that has one of their bodies run: they have iterations.
void AddExtents(const LoopList& loops, std::vector<Expr>* guards) {
  for (const For* loop : loops) {
    if (!AsInt(loop->extent)) guards->push_back(Gt(loop->extent, IndexConst(0)));
  }
}

// What holds where the block runs, besides the ranges of loops, which the analyzer learns.
std::vector<Expr> GuardsOf(const Place& place, Analyzer* analyzer) {
  Learn(place.path, analyzer);
  std::vector<Expr> out = Conjuncts(place.block()->where);
  for (Expr& c : out) c = Substitute(c, BindingsOf(*place.block()));
  AddExtents(place.Loops(), &out);
  return out;
}

// What all accesses have in common: the loops around them, and what they run under. What one of
// them runs under does not hold for another.
std::vector<Expr> SharedGuards(const std::vector<Access>& accesses, const LoopList& shared,
                               Analyzer* analyzer) {
  const std::vector<Stmt>& first = accesses[0].place->path;
  const auto end = std::find_if(first.begin(), first.end(), [&](const Stmt& s) {
    return s.get() == static_cast<const Node*>(shared.back());
  });
  Learn(std::vector<Stmt>(first.begin(), end + 1), analyzer);
  for (const Access& a : accesses) {
    for (const For* loop : a.place->LoopsInside(shared.back())) Learn(*loop, analyzer);
  }
  std::vector<Expr> out = GuardsOutside(*accesses[0].place, shared, analyzer);
  for (const Access& a : accesses) {
    if (a.place == accesses[0].place) continue;
    const std::vector<Expr> own = GuardsOutside(*a.place, shared, analyzer);
    std::erase_if(out, [&](const Expr& c) {
      return std::none_of(own.begin(), own.end(),
                          [&](const Expr& o) { return StructuralEqual(o, c); });
    });
  }
  AddExtents(shared, &out);
  return out;
}

}  // namespace

std::vector<const For*> LoopsOfKind(const Block& block, IterKind kind, const LoopList& loops) {
  LoopList out;
  for (const For* loop : loops) {
    if (BindsLoop(block, kind, loop)) out.push_back(loop);
  }
  return out;
}

bool BindsLoop(const Block& block, IterKind kind, const For* loop) {
  return std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& v) {
    return v->iter_kind == kind && UsesVar(v->binding, loop->var.get());
  });
}

const For* RepeatingLoop(const Body& body, const Place& place, const LoopList& loops) {
  const Block& block = *place.block();
  Analyzer analyzer;
  Learn(*body.func(), &analyzer);
  const std::vector<Expr> guards = GuardsOf(place, &analyzer);
  std::unordered_set<const VarNode*> unknown;
  for (const For* loop : loops) unknown.insert(loop->var.get());
  auto fixed = FixedVars(SumsOfSpatial(block), unknown, guards, &analyzer);
  for (const For* loop : loops) {
    bool once = fixed.count(loop->var.get()) != 0 || IsOne(loop->extent) ||
                BindsLoop(block, IterKind::kReduce, loop);
    if (!once) return loop;
  }
  return nullptr;
}

bool ElementFixesLoops(const Body& body, const std::vector<Access>& accesses,
                       const LoopList& loops) {
  const LoopList shared = SharedLoops(accesses, loops[0]);
  if (shared.empty()) return false;
  Analyzer analyzer;
  Learn(*body.func(), &analyzer);
  const bool one_place = std::all_of(accesses.begin(), accesses.end(),
                                     [&](const Access& a) { return a.place == accesses[0].place; });
  const std::vector<Expr> guards = one_place ? GuardsOf(*accesses[0].place, &analyzer)
                                             : SharedGuards(accesses, shared, &analyzer);
  const std::vector<KnownSum> known = IsOneSpatialBlock(accesses)
                                          ? SumsOfSpatial(*accesses[0].place->block())
                                          : SumsOfRegions(accesses, shared, &analyzer);
  std::unordered_set<const VarNode*> unknown;
  for (const For* loop : shared) unknown.insert(loop->var.get());
  auto fixed = FixedVars(known, unknown, guards, &analyzer);
  return std::all_of(loops.begin(), loops.end(), [&](const For* loop) {
    return fixed.count(loop->var.get()) != 0 || IsOne(loop->extent);
  });
}

namespace {

// The block starts each of its reductions inside one iteration of `scope` (one run of it when
// `whole`).
bool StartsInside(const Place& place, const Node* scope, bool whole) {
  const Block& block = *place.block();
  if (!block.init || HasKind(block, IterKind::kOrdered)) return false;
  LoopList all = place.Loops(), inside = place.LoopsInside(scope);
  for (const For* l : LoopsOfKind(block, IterKind::kReduce, all)) {
    if (!In(inside, l) && !(whole && l == scope)) return false;
  }
  return true;
}

// What a block has written by the time that another reads.
struct Written {
  const Node* common = nullptr;  // what both are in
  Box box;                       // by one iteration of it, every element of it
};

// What `write` writes earlier in the same iteration of their innermost common ancestor.
std::optional<Written> WrittenBefore(const Body& body, const Access& write, const Access& read,
                                     Analyzer* analyzer) {
  if (body.OrderOf(write.place) >= body.OrderOf(read.place)) return std::nullopt;
  const Node* common = CommonAncestor(*write.place, *read.place);
  if (common == nullptr || !write.place->block()->exact) return std::nullopt;
  // A condition on the shared loops that the reader is under, too, is no obstacle.
  std::vector<Stmt> shared = read.place->path;
  while (!shared.empty() && shared.back().get() != common) shared.pop_back();
  std::vector<Expr> guards =
      GuardsBesideDomain(*write.place, *body.func(), GuardsAround(*read.place, shared));
  Learn(write.place->path, analyzer);
  auto box = FilledBox(write.region, *write.place->block(), write.place->LoopsInside(common),
                       std::move(guards), analyzer);
  if (!box) return std::nullopt;
  return Written{common, std::move(*box)};
}

// All that `read` touches in an iteration of `written.common` is in that box.
bool ReadsWithin(const Written& written, const Access& read, Analyzer* analyzer) {
  Learn(read.place->path, analyzer);
  // What the reader touches is inside both of its boxes; the ends of either will do.
  const Block& block = *read.place->block();
  Box here = TouchedBox(read.region, block, read.place->LoopsInside(written.common), analyzer);
  Box ever = DomainBox(read.region, block, analyzer);
  for (size_t d = 0; d < written.box.size(); ++d) {
    auto reaches = [&](const ExprInterval& r, bool low) {
      ExprInterval half = low ? ExprInterval{r.min, nullptr} : ExprInterval{nullptr, r.max};
      ExprInterval limit = low ? ExprInterval{written.box[d].min, nullptr}
                               : ExprInterval{nullptr, written.box[d].max};
      return Contains(limit, half, analyzer);
    };
    if (!reaches(here[d], true) && !reaches(ever[d], true)) return false;
    if (!reaches(here[d], false) && !reaches(ever[d], false)) return false;
  }
  return true;
}

// Earlier in the same iteration of their innermost common ancestor, `write` writes
// all that `read` reads.
bool WritesBefore(const Body& body, const Access& write, const Access& read) {
  Analyzer analyzer;
  Learn(*body.func(), &analyzer);
  auto written = WrittenBefore(body, write, read, &analyzer);
  if (!written || !ReadsWithin(*written, read, &analyzer)) return false;
  if (!write.place->block()->where) return true;
  // It is written inside of the writer's domain alone.
  const Block& reader = *read.place->block();
  const Box domain = DomainBox(write.region, *write.place->block(), &analyzer);
  if (Contains(domain, DomainBox(read.region, reader, &analyzer), &analyzer)) return true;
  return Contains(domain, TouchedBox(read.region, reader, read.place->Loops(), &analyzer),
                  &analyzer);
}

// Two boxes that are one: they differ in one dimension, where `b` begins behind the end of `a`.
std::optional<Box> Joined(const Box& a, const Box& b, Analyzer* analyzer) {
  auto equal = [&](const Expr& x, const Expr& y) {
    return x && y && analyzer->CanProveEqual(x, y);
  };
  std::optional<size_t> along;
  for (size_t d = 0; d < a.size(); ++d) {
    if (equal(a[d].min, b[d].min) && equal(a[d].max, b[d].max)) continue;
    if (along || !a[d].max || !equal(a[d].max + 1, b[d].min)) return std::nullopt;
    along = d;
  }
  if (!along) return std::nullopt;
  Box out = a;
  out[*along].max = b[*along].max;
  return out;
}

// Several blocks, each with a part of it, write all that `read` reads.
bool PartsWrittenBefore(const Body& body, const std::vector<Access>& all, const Access& read) {
  constexpr size_t kMostParts = 64;
  Analyzer analyzer;
  Learn(*body.func(), &analyzer);
  std::vector<Written> parts;
  for (const Access& w : all) {
    const bool other = w.write && w.region->buffer == read.region->buffer &&
                       w.place != read.place && !w.place->block()->where;
    if (!other || parts.size() == kMostParts) continue;
    if (auto written = WrittenBefore(body, w, read, &analyzer)) parts.push_back(*written);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    Written whole = parts[i];
    for (bool grows = true; grows;) {
      grows = false;
      for (size_t j = 0; j < parts.size() && !grows; ++j) {
        if (j == i || parts[j].common != whole.common) continue;
        auto joined = Joined(whole.box, parts[j].box, &analyzer);
        grows = joined.has_value();
        if (grows) whole.box = *joined;
      }
      if (grows && ReadsWithin(whole, read, &analyzer)) return true;
    }
  }
  return false;
}

}  // namespace

namespace {

// The first read under the scope that is not known to find what the same run of it has written.
std::optional<Access> FirstUncovered(const Body& body, const Buffer& buffer, const Node* scope,
                                     bool whole) {
  std::vector<Access> all = body.AccessesUnder(scope);
  std::erase_if(all, [&](const Access& a) { return a.region->buffer != buffer; });
  for (const Access& read : all) {
    if (read.write) continue;
    bool covered = std::any_of(all.begin(), all.end(), [&](const Access& w) {
      if (!w.write) return false;
      if (w.place == read.place) return StartsInside(*w.place, scope, whole);
      return WritesBefore(body, w, read);
    });
    if (!covered && !PartsWrittenBefore(body, all, read)) return read;
  }
  return std::nullopt;
}

}  // namespace

bool IsCoveredIn(const Body& body, const Buffer& buffer, const Node* scope, bool whole) {
  return !FirstUncovered(body, buffer, scope, whole);
}

bool IsWrittenBefore(const Body& body, const Access& read) {
  const std::vector<Access> all = body.AccessesUnder(nullptr);
  const bool by_one = std::any_of(all.begin(), all.end(), [&](const Access& w) {
    return w.write && w.region->buffer == read.region->buffer && WritesBefore(body, w, read);
  });
  return by_one || PartsWrittenBefore(body, all, read);
}

bool AllUsesUnder(const Body& body, const Buffer& buffer, const Node* stmt) {
  for (const Access& a : body.AccessesUnder(nullptr)) {
    if (a.region->buffer != buffer || a.place->IsUnder(stmt)) continue;
    if (!HasPrivately(*a.place, buffer, stmt)) return false;
  }
  for (const Place& stray : body.strays()) {  // calls of what was outlined, say
    if (stray.IsUnder(stmt) || !UsesBuffer(stray.stmt, buffer.get())) continue;
    if (!HasPrivately(stray, buffer, stmt)) return false;
  }
  return true;
}

std::vector<std::vector<Access>> WrittenUnder(const Body& body, const Node* stmt) {
  std::vector<Access> all = body.AccessesUnder(stmt);
  std::vector<std::vector<Access>> out;
  for (const Access& a : all) {
    if (!a.write) continue;
    bool seen = std::any_of(out.begin(), out.end(), [&](const std::vector<Access>& group) {
      return group[0].region->buffer == a.region->buffer;
    });
    if (seen) continue;
    out.emplace_back();
    for (const Access& b : all) {
      if (b.region->buffer == a.region->buffer) out.back().push_back(b);
    }
  }
  return out;
}

namespace {

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

// Of a loop to be one over threads, who make parts of the block's reduction: nobody else may look
// on where it runs over that.
static std::optional<Diagnostic> ConflictOfParts(const Body& body, const Place& place,
                                                 const For* loop) {
  const Block& block = *place.block();
  for (const std::vector<Access>& accesses : WrittenUnder(body, loop)) {
    const bool own = std::any_of(accesses.begin(), accesses.end(), [&](const Access& a) {
      return a.write && a.place == &place && BindsLoop(block, IterKind::kReduce, loop);
    });
    for (const Access& a : accesses) {
      if (own && a.place != &place) return WhyConflict(body, accesses, loop);
    }
  }
  const Expected<ThreadReduction> parts = ThreadReductionOf(block, place.path, loop);
  if (parts) return std::nullopt;
  return OfBlock(block.name, parts.errors()[0].message);
}

std::optional<Diagnostic> JudgeThreadReductions(const Func& func) {
  bool any = false;
  PreOrder(func->body, [&](const NodeRef& n) {
    const auto* loop = As<For>(n);
    any |= loop && IsOverThreads(*loop);
    return !any && !IsA<ExprNode>(n);
  });
  if (!any) return std::nullopt;
  const Body body(func);
  for (const Place& p : body.blocks()) {
    if (p.inner || !ReducesOverThreads(*p.block(), p.path)) continue;
    const Expected<ThreadReduction> parts = ThreadReductionOf(*p.block(), p.path);
    if (!parts) return OfBlock(p.block()->name, parts.errors()[0].message);
  }
  return std::nullopt;
}

std::optional<Diagnostic> ConflictBetweenIterations(const Body& body, const Place& place,
                                                    ForKind kind, ThreadAxis thread, Names* own) {
  const For* loop = place.loop();
  const bool lanes = kind == ForKind::kVectorized;
  const bool threads = kind == ForKind::kThread && IsThreadAxis(thread);
  if (place.inner) return Because("loop " + NameOf(loop) + " is inside the body of a block");
  if (IsOne(loop->extent)) return std::nullopt;
  const bool promised = loop->attrs.Has(kIndependentAttr);
  if (auto opaque = OpaqueUnder(body, loop); opaque && !promised) return opaque;
  for (const Place* p : body.BlocksUnder(loop)) {
    if (BindsLoop(*p->block(), IterKind::kOrdered, loop)) {
      return OfBlock(p->block()->name, "loop " + NameOf(loop) + " runs over an ordered variable");
    }
    const bool reduces = BindsLoop(*p->block(), IterKind::kReduce, loop);
    const bool shared = ReducesOverThreads(*p->block(), p->path);
    if (threads && (reduces || shared)) {
      if (auto conflict = ConflictOfParts(body, *p, loop)) return conflict;
    } else if (!lanes && reduces && shared) {
      return OfBlock(p->block()->name, "loop " + NameOf(loop) + " runs over its reduction");
    }
  }
  for (const std::vector<Access>& accesses : WrittenUnder(body, loop)) {
    const Buffer& buffer = accesses[0].region->buffer;
    if (ElementFixesLoops(body, accesses, {loop})) continue;
    // Lanes of a vector share what is allocated among them.
    if (!lanes && IsAllocatedUnder(*accesses[0].place, buffer, loop)) continue;
    if (body.IsAlloc(buffer) && AllUsesUnder(body, buffer, loop) &&
        IsCoveredIn(body, buffer, loop)) {
      own->push_back(buffer->name);
      continue;
    }
    if (lanes && IsFreeReduction(accesses, loop)) continue;
    if (threads && UpdatesAccumulator(accesses, loop)) continue;
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

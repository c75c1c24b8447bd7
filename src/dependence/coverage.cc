// Is what is read written before, in the same iteration?
//
// One block that runs earlier in the iteration, or several whose boxes join, must have written the
// box that is read, every element of it (FilledBox). In
//
//   for i in 0..8 {
//     for j in 0..4 { block T(…) { writes T[j * 2..+2] … } }
//     block C(vi: spatial = i) { reads T[0..8]; writes C[vi] … }
//   }
//
// the loop over j fills T[0..8] before C reads it, so that nothing is carried from one iteration of
// i to the next. Where threads take elements in turns, T[i + j * 64], and what one thread writes
// has holes, elements are counted in those steps: j of them from i on (InSteps).

#include "dependence/coverage.h"

#include <algorithm>
#include <numeric>

#include "dependence/iterations.h"
#include "ir/visit.h"

namespace tenon {

namespace {

using LoopList = std::vector<const For*>;

bool In(const LoopList& loops, const For* loop) {
  return std::find(loops.begin(), loops.end(), loop) != loops.end();
}

// The block starts each of its reductions inside one iteration of `scope` (one run of it when
// `whole`), or what it goes through in order with elements that are the same at each step.
bool StartsInside(const Body::Access& write, const Node* scope, bool whole) {
  const Block& block = *write.place->block();
  if (!block.init) return false;
  for (const IterVar& v : block.iters) {
    if (v->iter_kind != IterKind::kOrdered) continue;
    for (const Range& range : write.region->ranges)
      if (UsesVar(range->min, v->var.get()) || UsesVar(range->extent, v->var.get())) return false;
  }
  LoopList all = write.place->Loops(), inside = write.place->LoopsInside(scope);
  for (IterKind kind : {IterKind::kReduce, IterKind::kOrdered}) {
    for (const For* l : LoopsOfKind(block, kind, all)) {
      if (!In(inside, l) && !(whole && l == scope)) return false;
    }
  }
  return true;
}

// What a block has written by the time that another reads.
struct Written {
  const Node* common = nullptr;  // what both are in
  Box box;                       // by one iteration of it, every element of it
};

// What `write` writes earlier in the same iteration of their innermost common ancestor.
std::optional<Written> WrittenBefore(const Body& body, const Body::Access& write,
                                     const Body::Access& read, Analyzer* analyzer) {
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
bool ReadsWithin(const Written& written, const Body::Access& read, Analyzer* analyzer) {
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

// How far an index moves with the loops: e = base + step * (a sum of them).
struct Steps {
  Expr base;
  int64_t step;  // 0: not at all
};

std::optional<Steps> StepsOf(const Expr& e, const LoopList& loops, Analyzer* analyzer) {
  std::vector<Var> vars;
  for (const For* loop : loops) vars.push_back(loop->var);
  const std::optional<AffineForm> form = DetectAffine(analyzer->Simplify(e), vars);
  if (!form) return std::nullopt;
  int64_t step = 0;
  for (const Expr& c : form->coefficients) {
    if (!AsInt(c)) return std::nullopt;
    step = std::gcd(step, *AsInt(c));
  }
  return Steps{form->base, step};
}

// Both regions, in terms of loops, with their elements counted in the steps that the writer takes
// from one to the next; false where it leaves none out, or the reader takes others.
bool InSteps(Body::Access* write, Body::Access* read, Analyzer* analyzer) {
  const Node* common = CommonAncestor(*write->place, *read->place);
  std::vector<Range> written = InLoops(write->region, *write->place->block())->ranges;
  std::vector<Range> touched = InLoops(read->region, *read->place->block())->ranges;
  bool any = false;
  for (size_t d = 0; d < written.size(); ++d) {
    if (!IsOne(written[d]->extent) || !IsOne(touched[d]->extent)) continue;
    const auto own = StepsOf(written[d]->min, write->place->LoopsInside(common), analyzer);
    if (!own || own->step <= 1) continue;
    const Expr step = IndexConst(own->step);
    const Expr from_base = touched[d]->min - own->base;
    const auto its = StepsOf(from_base, read->place->LoopsInside(common), analyzer);
    if (!its || its->step % own->step != 0) continue;
    if (!analyzer->CanProveEqual(its->base % step, IndexConst(0))) continue;
    auto counted = [&](const Expr& e) {
      return RangeNode::Make(analyzer->Simplify(e / step), IndexConst(1));
    };
    written[d] = counted(written[d]->min - own->base);
    touched[d] = counted(from_base);
    any = true;
  }
  write->region = RegionNode::Make(write->region->buffer, std::move(written));
  read->region = RegionNode::Make(read->region->buffer, std::move(touched));
  return any;
}

bool FillsWhatIsRead(const Body& body, const Body::Access& write, const Body::Access& read,
                     Analyzer* analyzer) {
  auto written = WrittenBefore(body, write, read, analyzer);
  return written && ReadsWithin(*written, read, analyzer);
}

// Earlier in the same iteration of their innermost common ancestor, `write` writes
// all that `read` reads.
bool WritesBefore(const Body& body, const Body::Access& write, const Body::Access& read) {
  Analyzer analyzer;
  Learn(*body.func(), &analyzer);
  if (!FillsWhatIsRead(body, write, read, &analyzer)) {
    Body::Access write_in_steps = write, read_in_steps = read;
    Analyzer fresh;
    Learn(*body.func(), &fresh);
    Learn(write.place->path, &fresh);
    Learn(read.place->path, &fresh);
    if (!InSteps(&write_in_steps, &read_in_steps, &fresh)) return false;
    if (!FillsWhatIsRead(body, write_in_steps, read_in_steps, &analyzer)) return false;
  }
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
bool PartsWrittenBefore(const Body& body, const std::vector<Body::Access>& all,
                        const Body::Access& read) {
  constexpr size_t kMostParts = 64;
  Analyzer analyzer;
  Learn(*body.func(), &analyzer);
  std::vector<Written> parts;
  for (const Body::Access& w : all) {
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

std::optional<Body::Access> FirstUncovered(const Body& body, const Buffer& buffer,
                                           const Node* scope, bool whole) {
  std::vector<Body::Access> all = body.AccessesUnder(scope);
  std::erase_if(all, [&](const Body::Access& a) { return a.region->buffer != buffer; });
  for (const Body::Access& read : all) {
    if (read.write) continue;
    bool covered = std::any_of(all.begin(), all.end(), [&](const Body::Access& w) {
      if (!w.write) return false;
      if (w.place == read.place) return StartsInside(w, scope, whole);
      return WritesBefore(body, w, read);
    });
    if (!covered && !PartsWrittenBefore(body, all, read)) return read;
  }
  return std::nullopt;
}

bool IsCoveredIn(const Body& body, const Buffer& buffer, const Node* scope, bool whole) {
  return !FirstUncovered(body, buffer, scope, whole);
}

bool IsWrittenBefore(const Body& body, const Body::Access& read) {
  const std::vector<Body::Access> all = body.AccessesUnder(nullptr);
  const bool by_one = std::any_of(all.begin(), all.end(), [&](const Body::Access& w) {
    return w.write && w.region->buffer == read.region->buffer && WritesBefore(body, w, read);
  });
  return by_one || PartsWrittenBefore(body, all, read);
}

bool AllUsesUnder(const Body& body, const Buffer& buffer, const Node* stmt) {
  for (const Body::Access& a : body.AccessesUnder(nullptr)) {
    if (a.region->buffer != buffer || a.place->IsUnder(stmt)) continue;
    if (!HasPrivately(*a.place, buffer, stmt)) return false;
  }
  for (const Body::Place& stray : body.strays()) {  // calls of what was outlined, say
    if (stray.IsUnder(stmt) || !UsesBuffer(stray.stmt, buffer.get())) continue;
    if (!HasPrivately(stray, buffer, stmt)) return false;
  }
  return true;
}

bool HasPrivately(const Body::Place& place, const Buffer& buffer, const Node* stmt) {
  std::vector<const For*> loops = place.Loops();
  return std::any_of(loops.begin(), loops.end(), [&](const For* loop) {
    const Names own = loop->attrs.Get<Names>(kPrivateAttr, {});
    if (std::find(own.begin(), own.end(), buffer->name) == own.end()) return false;
    bool around = false;
    PreOrder(loop->body, [&](const NodeRef& n) {
      around |= n.get() == stmt;
      return IsA<StmtNode>(n) && !around;
    });
    return !around && loop != stmt;
  });
}

}  // namespace tenon

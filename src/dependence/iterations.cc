// Which iterations touch the same elements?
//
// Judged on what blocks declare: regions read and written, kinds of variables. Iterations of loops
// are independent through a buffer if each of its elements is touched in one iteration only. That
// is a question of number theory, answered by injective.h: the touched regions, each dimension a
// sum over the loops' variables known up to the extent of what is inside, are known numbers; do
// they fix the variables? In
//
//   for i in 0..7, j in 0..10, k in 0..6 {
//     block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) {
//       reads A[vi, vk], B[vk, vj]; writes C[vi, vj]
//
// C[vi, vj] fixes i and j and not k.

#include "dependence/iterations.h"

#include <algorithm>

#include "arith/injective.h"
#include "ir/visit.h"

namespace tenon {

namespace {

using LoopList = std::vector<const For*>;

// The loops around all accesses, from `top` inwards.
LoopList SharedLoops(const std::vector<Body::Access>& accesses, const For* top) {
  auto from_top = [&](const Body::Place& p) {
    LoopList loops = p.Loops();
    loops.erase(loops.begin(), std::find(loops.begin(), loops.end(), top));
    return loops;
  };
  LoopList shared = from_top(*accesses[0].place);
  for (const Body::Access& a : accesses) {
    LoopList other = from_top(*a.place);
    auto differ = std::mismatch(shared.begin(), shared.end(), other.begin(), other.end());
    shared.erase(differ.first, shared.end());
  }
  return shared;
}

// Of axes that were taken as one also the place along all of them: a loop over parts of it does not
// begin where one of them does, and quotients and remainders hide what it is.
std::vector<KnownSum> SumsOfSpatial(const Block& block) {
  std::vector<KnownSum> known;
  Expr place = IndexConst(0);
  bool numbers = true, parts = false;
  for (const IterVar& v : block.iters) {
    if (v->iter_kind != IterKind::kSpatial) continue;
    known.push_back({v->binding});
    place = place * v->extent + (v->binding - v->min);
    numbers &= AsInt(v->extent).has_value();
    parts |= HasDivMod(v->binding);
  }
  if (numbers && parts) known.push_back({Simplify(place)});
  return known;
}

// Where in the buffer one iteration of the shared loops is.
std::vector<KnownSum> SumsOfRegions(const std::vector<Body::Access>& accesses,
                                    const LoopList& shared, Analyzer* analyzer) {
  Box all;
  for (const Body::Access& a : accesses) {
    const LoopList inner = a.place->LoopsInside(shared.back());
    Box box = TouchedBox(a.region, *a.place->block(), inner, analyzer);
    all = all.empty() ? box : Union(all, box, analyzer);
  }
  return SumsOf(all, analyzer);
}

// What holds of the shared loops wherever the block runs.
std::vector<Expr> GuardsOutside(const Body::Place& place, const LoopList& shared,
                                Analyzer* analyzer) {
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
std::vector<Expr> GuardsOf(const Body::Place& place, Analyzer* analyzer) {
  Learn(place.path, analyzer);
  std::vector<Expr> out = Conjuncts(place.block()->where);
  for (Expr& c : out) c = Substitute(c, BindingsOf(*place.block()));
  AddExtents(place.Loops(), &out);
  return out;
}

// What all accesses have in common: the loops around them, and what they run under. What one of
// them runs under does not hold for another.
std::vector<Expr> SharedGuards(const std::vector<Body::Access>& accesses, const LoopList& shared,
                               Analyzer* analyzer) {
  const std::vector<Stmt>& first = accesses[0].place->path;
  const auto end = std::find_if(first.begin(), first.end(), [&](const Stmt& s) {
    return s.get() == static_cast<const Node*>(shared.back());
  });
  Learn(std::vector<Stmt>(first.begin(), end + 1), analyzer);
  for (const Body::Access& a : accesses) {
    for (const For* loop : a.place->LoopsInside(shared.back())) Learn(*loop, analyzer);
  }
  std::vector<Expr> out = GuardsOutside(*accesses[0].place, shared, analyzer);
  for (const Body::Access& a : accesses) {
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

const For* RepeatingLoop(const Body& body, const Body::Place& place, const LoopList& loops) {
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

bool IsOneSpatialBlock(const std::vector<Body::Access>& accesses) {
  const Block& block = *accesses[0].place->block();
  const Region& first = accesses[0].region;
  for (const Body::Access& a : accesses) {
    if (a.place != accesses[0].place) return false;
    if (a.region != first && !StructuralEqual(a.region, first)) return false;
  }
  return !HasKind(block, IterKind::kOrdered);
}

bool ElementFixesLoops(const Body& body, const std::vector<Body::Access>& accesses,
                       const LoopList& loops) {
  const LoopList shared = SharedLoops(accesses, loops[0]);
  if (shared.empty()) return false;
  Analyzer analyzer;
  Learn(*body.func(), &analyzer);
  const bool one_place = std::all_of(accesses.begin(), accesses.end(), [&](const Body::Access& a) {
    return a.place == accesses[0].place;
  });
  const std::vector<Expr> guards = one_place ? GuardsOf(*accesses[0].place, &analyzer)
                                             : SharedGuards(accesses, shared, &analyzer);
  const std::vector<KnownSum> known = IsOneSpatialBlock(accesses)
                                          ? SumsOfSpatial(*accesses[0].place->block())
                                          : SumsOfRegions(accesses, shared, &analyzer);
  std::unordered_set<const VarNode*> unknown, wanted;
  for (const For* loop : shared) unknown.insert(loop->var.get());
  for (const For* loop : loops) {
    if (IsOne(loop->extent)) continue;
    if (unknown.count(loop->var.get()) == 0) return false;
    wanted.insert(loop->var.get());
  }
  return AreFixed(wanted, known, unknown, guards, &analyzer);
}

std::vector<std::vector<Body::Access>> WrittenUnder(const Body& body, const Node* stmt) {
  std::vector<Body::Access> all = body.AccessesUnder(stmt);
  std::vector<std::vector<Body::Access>> out;
  for (const Body::Access& a : all) {
    if (!a.write) continue;
    bool seen = std::any_of(out.begin(), out.end(), [&](const std::vector<Body::Access>& group) {
      return group[0].region->buffer == a.region->buffer;
    });
    if (seen) continue;
    out.emplace_back();
    for (const Body::Access& b : all) {
      if (b.region->buffer == a.region->buffer) out.back().push_back(b);
    }
  }
  return out;
}

}  // namespace tenon

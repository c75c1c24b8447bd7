// Primitives on loops: split, fuse, reorder, and how a loop runs.
//
// Each primitive here is an identity of iteration spaces: loops are renamed, and block variables'
// bindings follow by substitution, so that the block's body never changes. With split("i", [-1, 4])
// of a loop of 7
//
//   for i in 0..7 {
//     block C(vi: spatial = i) { … }
//   }
//
// becomes
//
//   for i.0 in 0..2, i.1 in 0..4 {
//     block C(vi: spatial in 0..7 = i.0 * 4 + i.1) where i.0 * 4 + i.1 < 7 { … }
//   }
//
// and fuse is the inverse, with i / n and i % n. The `where` is there only if the factors do not
// divide for certain. reorder and the kinds of loops (parallel, vectorized, thread) promise
// something about the order of iterations, and ask dependence.h whether it holds; what they then
// know (`private`) is written at the loop, since lowering has to give each iteration its own.

#include <algorithm>
#include <limits>

#include "ir/print.h"
#include "ir/visit.h"
#include "loop/promises.h"
#include "loop/threads.h"
#include "schedule/analysis/conflicts.h"
#include "schedule/primitive/primitives.h"
#include "support/strings.h"

namespace tenon::primitive {

namespace {

Stmt WithKind(const For& loop, ForKind kind, ThreadAxis thread = ThreadAxis::kNone) {
  return For::Make(loop.var, loop.min, loop.extent, kind, loop.body, loop.attrs, thread);
}

void LearnAround(const State& s, const Place& place, Analyzer* analyzer) {
  Learn(*s.func, analyzer);
  Learn(place.path, analyzer);
}

std::optional<Diagnostic> NotSerial(const For& loop) {
  if (loop.for_kind == ForKind::kSerial) return std::nullopt;
  if (loop.for_kind == ForKind::kThread)
    return Because("loop " + loop.var->name + " is bound to " + Name(loop.thread) + " already");
  return Because("loop " + loop.var->name + " is " + Name(loop.for_kind) + ", expected serial");
}

// Beyond these a loop is a mistake, and what makes code or lanes of it would not end.
constexpr int64_t kMaxFactor = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxCopies = 65536;

std::optional<Diagnostic> TooLong(const For& loop, const char* kind) {
  const std::optional<int64_t> extent = AsInt(loop.extent);
  if (!extent) {
    Diagnostic error = Because("expected a constant extent, got " + ToString(loop.extent));
    error.notes.push_back(
        "split it first: the inner loop of a split by a factor has a constant one");
    return error;
  }
  if (*extent <= kMaxCopies) return std::nullopt;
  return Because("loop " + loop.var->name + " has " + std::to_string(*extent) +
                 " iterations, more than the " + std::to_string(kMaxCopies) + " that can be " +
                 kind);
}

// The trip counts, with -1 replaced.
Expected<std::vector<Expr>> TripCounts(const For& loop, const Ints& factors, Analyzer* analyzer) {
  if (factors.empty()) return Because("expected at least one factor");
  int64_t product = 1;
  int derived = 0;
  for (int64_t f : factors) {
    if (f == -1) {
      ++derived;
    } else if (f > kMaxFactor) {
      return Because("factor " + std::to_string(f) + " is more than " + std::to_string(kMaxFactor));
    } else if (f <= 0 || __builtin_mul_overflow(product, f, &product)) {
      return Because("factor " + std::to_string(f) + " is not a positive size or -1");
    }
  }
  if (derived > 1) return Because("at most one factor may be -1, got " + std::to_string(derived));
  if (derived == 0 && !analyzer->CanProve(Le(loop.extent, IndexConst(product)))) {
    return Because("the product " + std::to_string(product) +
                   " of the factors is not known to reach the extent " + ToString(loop.extent));
  }
  std::vector<Expr> counts;
  if (IsOne(loop.extent)) return std::vector<Expr>(factors.size(), IndexConst(1));
  for (int64_t f : factors) {
    counts.push_back(f == -1 ? analyzer->Simplify(CeilDiv(loop.extent, IndexConst(product)))
                             : IndexConst(f));
  }
  return counts;
}

}  // namespace

Result Split(State& s, const std::string& name, const Ints& factors) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedLoop(name));
  const For& loop = *place->loop();
  if (auto error = NotSerial(loop)) return *error;
  Analyzer analyzer;
  LearnAround(s, *place, &analyzer);
  TN_ASSIGN_OR_RETURN(std::vector<Expr> counts, TripCounts(loop, factors, &analyzer));

  Names names;
  std::vector<Var> vars;
  Expr offset = IndexConst(0), total = IndexConst(1);
  for (size_t i = 0; i < counts.size(); ++i) {
    names.push_back(body.NewVarName(name + "." + std::to_string(i)));
    vars.push_back(VarNode::Make(names.back()));
    analyzer.Bind(vars.back(), IndexConst(0), counts[i]);
    offset = offset * counts[i] + vars.back();
    total = total * counts[i];
  }
  offset = analyzer.Simplify(offset);
  Stmt inner =
      Substitute(loop.body, VarMap{{loop.var.get(), analyzer.Simplify(loop.min + offset)}});
  if (!analyzer.CanProveEqual(total, loop.extent)) {
    inner = AddGuard(inner, Lt(offset, loop.extent));
  }
  for (size_t i = counts.size(); i-- > 0;) {
    inner = For::Make(vars[i], IndexConst(0), counts[i], ForKind::kSerial, inner,
                      i == 0 ? loop.attrs : Attrs());
  }
  s.SetBody(Edit(body.root(), {{place->stmt.get(), Tidy(inner, &analyzer)}}));
  return names;
}

namespace {

// The loops of these names, which must be a chain with nothing in between when `adjacent`; else the
// whole chain from the outermost to the innermost of them.
Expected<std::vector<const Place*>> PerfectNest(const Body& body, const Names& names) {
  std::vector<const Place*> wanted;
  for (const std::string& name : names) {
    TN_ASSIGN_OR_RETURN(const Place* place, body.NeedLoop(name));
    if (std::find(wanted.begin(), wanted.end(), place) != wanted.end()) {
      return Because("loop " + name + " is named twice");
    }
    wanted.push_back(place);
  }
  auto depth = [](const Place* a, const Place* b) { return a->path.size() < b->path.size(); };
  const Place* top = *std::min_element(wanted.begin(), wanted.end(), depth);
  const Place* bottom = *std::max_element(wanted.begin(), wanted.end(), depth);
  std::vector<const Place*> chain;
  for (Stmt s = top->stmt; IsA<For>(s); s = As<For>(s)->body) {
    chain.push_back(body.FindLoop(As<For>(s)->var->name));
    if (s == bottom->stmt) break;
  }
  for (const Place* p : wanted) {
    if (std::find(chain.begin(), chain.end(), p) == chain.end()) {
      return Because("loops " + top->loop()->var->name + " and " + p->loop()->var->name +
                     " are not perfectly nested");
    }
  }
  return chain;
}

// Why the bounds of a loop of the chain change when the order does.
std::optional<Diagnostic> NotRectangular(const std::vector<const Place*>& chain) {
  for (const Place* outer : chain) {
    for (const Place* p : chain) {
      const VarNode* var = outer->loop()->var.get();
      if (UsesVar(p->loop()->min, var) || UsesVar(p->loop()->extent, var)) {
        return Because("the bounds of loop " + p->loop()->var->name + " depend on loop " +
                       var->name);
      }
    }
  }
  return std::nullopt;
}

// Why a loop over a block's space must not become one with a loop of its reduction: where there is
// nothing to reduce, the loop that is both does not run, and nobody sets the results.
std::optional<Diagnostic> MayLeaveUnset(const Body& body, const std::vector<const Place*>& chain,
                                        Analyzer* analyzer) {
  for (const Place* p : body.BlocksUnder(chain[0]->stmt.get())) {
    const Block& block = *p->block();
    const IterVar* empty = nullptr;
    bool spatial = false, reduced = false;
    for (const IterVar& iter : block.iters) {
      const bool fused = std::any_of(chain.begin(), chain.end(), [&](const Place* loop) {
        return UsesVar(iter->binding, loop->loop()->var.get());
      });
      if (iter->iter_kind == IterKind::kSpatial) {
        spatial |= fused;
        continue;
      }
      reduced |= fused;
      if (!analyzer->CanProve(Lt(IndexConst(0), iter->extent))) empty = &iter;
    }
    if (!block.init || !spatial || !reduced || !empty) continue;
    return OfBlock(block.name, "the loops are over its space and over what it reduces, " +
                                   ToString((*empty)->extent) +
                                   " elements, which may be none: the results would not be set " +
                                   "then; decompose_reduction first");
  }
  return std::nullopt;
}

}  // namespace

Result Fuse(State& s, const Names& loops) {
  Body body(s.func);
  if (loops.empty()) return Because("expected at least one loop");
  TN_ASSIGN_OR_RETURN(std::vector<const Place*> chain, PerfectNest(body, loops));
  if (chain.size() != loops.size()) return Because("the loops are not adjacent");
  for (size_t i = 0; i < chain.size(); ++i) {
    if (chain[i]->loop()->var->name != loops[i])
      return Because("expected the outermost loop first");
    if (auto error = NotSerial(*chain[i]->loop())) return *error;
  }
  if (auto error = NotRectangular(chain)) return *error;
  if (loops.size() == 1) return loops;

  Analyzer analyzer;
  LearnAround(s, *chain[0], &analyzer);
  if (auto error = MayLeaveUnset(body, chain, &analyzer)) return *error;
  std::string name = body.NewVarName(Join(loops, "_"));
  Var fused = VarNode::Make(name);
  Expr total = IndexConst(1);
  for (const Place* p : chain) total = analyzer.Simplify(total * p->loop()->extent);
  analyzer.Bind(fused, IndexConst(0), total);
  VarMap values;
  Expr below = IndexConst(1);  // the product of the extents further inside
  for (size_t i = chain.size(); i-- > 0;) {
    const For& loop = *chain[i]->loop();
    Expr digit = fused / below;
    if (i != 0) digit = digit % loop.extent;
    values[loop.var.get()] = analyzer.Simplify(loop.min + digit);
    below = analyzer.Simplify(below * loop.extent);
  }
  Stmt inner = Tidy(Substitute(chain.back()->loop()->body, values), &analyzer);
  Attrs attrs = chain[0]->loop()->attrs;
  const bool promised = std::all_of(chain.begin(), chain.end(), [](const Place* p) {
    return p->loop()->attrs.Has(kIndependentAttr);
  });
  if (!promised) attrs.Erase(kIndependentAttr);
  Stmt out = For::Make(fused, IndexConst(0), total, ForKind::kSerial, inner, attrs);
  s.SetBody(Edit(body.root(), {{chain[0]->stmt.get(), out}}));
  return Names{name};
}

Result Reorder(State& s, const Names& loops) {
  Body body(s.func);
  if (loops.empty()) return Because("expected at least one loop");
  TN_ASSIGN_OR_RETURN(std::vector<const Place*> chain, PerfectNest(body, loops));
  if (auto error = NotRectangular(chain)) return *error;
  if (chain[0]->inner) return Because("the loops are inside the body of a block");
  std::vector<const For*> from, to;
  size_t next = 0;
  for (const Place* p : chain) {
    from.push_back(p->loop());
    bool moves = std::find(loops.begin(), loops.end(), p->loop()->var->name) != loops.end();
    to.push_back(moves ? body.FindLoop(loops[next++])->loop() : p->loop());
  }
  if (auto conflict = ConflictOfOrder(body, from, to)) return *conflict;
  Stmt inner = from.back()->body;
  for (size_t i = to.size(); i-- > 0;) {
    inner = For::Make(to[i]->var, to[i]->min, to[i]->extent, to[i]->for_kind, inner, to[i]->attrs,
                      to[i]->thread);
  }
  s.SetBody(Edit(body.root(), {{chain[0]->stmt.get(), inner}}));
  return Names{};
}

namespace {

// The loop around or under `place` that runs in one of two ways; null when there is none.
const For* Related(const Body& body, const Place& place, ForKind a, ForKind b) {
  for (const Place& p : body.loops()) {
    ForKind kind = p.loop()->for_kind;
    bool related = p.IsUnder(place.loop()) || place.IsUnder(p.loop());
    if (&p != &place && related && (kind == a || kind == b)) return p.loop();
  }
  return nullptr;
}

Diagnostic Nested(const For& loop) {
  return Because("it is nested with loop " + loop.var->name + ", which is " + Name(loop.for_kind));
}

Result SetKind(State& s, const Body& body, const Place& place, ForKind kind, Names own = {},
               ThreadAxis thread = ThreadAxis::kNone) {
  const Stmt loop = WithPrivate(*As<For>(WithKind(*place.loop(), kind, thread)), std::move(own));
  s.SetBody(Edit(body.root(), {{place.stmt.get(), loop}}));
  return Names{};
}

}  // namespace

Result Parallel(State& s, const std::string& name) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedLoop(name));
  if (auto error = NotSerial(*place->loop())) return *error;
  if (const For* other = Related(body, *place, ForKind::kParallel, ForKind::kParallel)) {
    return Nested(*other);
  }
  for (const For* outer : place->Loops()) {
    if (outer->for_kind == ForKind::kVectorized) return Nested(*outer);
  }
  Names own;
  if (auto conflict =
          ConflictBetweenIterations(body, *place, ForKind::kParallel, ThreadAxis::kNone, &own)) {
    return *conflict;
  }
  if (auto conflict = ConflictOfScopes(body, *place, ForKind::kParallel, ThreadAxis::kNone))
    return *conflict;
  return SetKind(s, body, *place, ForKind::kParallel, std::move(own));
}

Result Vectorize(State& s, const std::string& name) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedLoop(name));
  const For& loop = *place->loop();
  if (auto error = NotSerial(loop)) return *error;
  if (auto error = TooLong(loop, "lanes")) return *error;
  if (const For* other = Related(body, *place, ForKind::kVectorized, ForKind::kVectorized)) {
    return Nested(*other);
  }
  for (const Place& p : body.loops()) {
    bool parallel = p.loop()->for_kind == ForKind::kParallel;
    if (parallel && p.IsUnder(&loop)) return Nested(*p.loop());
  }
  Names own;
  if (auto conflict =
          ConflictBetweenIterations(body, *place, ForKind::kVectorized, ThreadAxis::kNone, &own)) {
    return *conflict;
  }
  return SetKind(s, body, *place, ForKind::kVectorized, std::move(own));
}

Result Unroll(State& s, const std::string& name) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedLoop(name));
  if (auto error = NotSerial(*place->loop())) return *error;
  if (auto error = TooLong(*place->loop(), "unrolled")) return *error;
  return SetKind(s, body, *place, ForKind::kUnrolled);
}

namespace {

bool RunsOverReduction(const Body& body, const Place& place) {
  const std::vector<const Place*> blocks = body.BlocksUnder(place.loop());
  return std::any_of(blocks.begin(), blocks.end(), [&](const Place* p) {
    return BindsLoop(*p->block(), IterKind::kReduce, place.loop());
  });
}

}  // namespace

Result Bind(State& s, const std::string& name, const ThreadAxis& thread_axis) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedLoop(name));
  if (auto error = NotSerial(*place->loop())) return *error;
  // A tile that all threads load together stands inside what each of them does.
  if (IsBlockAxis(thread_axis)) {
    for (const For* outer : place->Loops()) {
      if (outer->thread == thread_axis) {
        return Because("it stands inside loop " + outer->var->name + ", which is bound to " +
                       Name(thread_axis) + " already: an axis is bound once in a nest");
      }
    }
  }
  Names own;
  if (auto conflict =
          ConflictBetweenIterations(body, *place, ForKind::kThread, thread_axis, &own)) {
    if (RunsOverReduction(body, *place) && !IsThreadAxis(thread_axis))
      conflict->notes.push_back("rfactor first makes partial results that threads can compute");
    return *conflict;
  }
  if (auto conflict = ConflictOfScopes(body, *place, ForKind::kThread, thread_axis)) {
    return *conflict;
  }
  return SetKind(s, body, *place, ForKind::kThread, std::move(own), thread_axis);
}

}  // namespace tenon::primitive

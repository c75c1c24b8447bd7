// The memory that workers and threads have for themselves, and that iterations have.
#include <algorithm>
#include <map>

#include "ir/visit.h"
#include "loop/threads.h"
#include "schedule/analysis/conflicts.h"

namespace tenon::primitive {

bool IsOwn(Scope scope, ForKind kind, ThreadAxis thread) {
  const Holder holder = HolderOf(scope);
  if (kind == ForKind::kParallel) return holder != Holder::kLaunch;
  if (kind != ForKind::kThread || thread == ThreadAxis::kVThread) return false;
  return holder != Holder::kLaunch && (holder != Holder::kBlock || IsBlockAxis(thread));
}

namespace {

// A loop's variable as a digit of what an access touches: element / weight % extent, in one
// dimension, less what is in both.
struct Digit {
  size_t dim;
  int64_t weight, extent;
  Expr base;
};

// That of the loop in dimension d; nothing where it is none.
std::optional<Digit> DigitIn(const Access& access, size_t d, const For* loop, Analyzer* analyzer) {
  const Range& range = access.region->ranges[d];
  const std::vector<const For*> around = access.place->Loops();
  std::vector<Var> vars;
  for (const For* l : around) vars.push_back(l->var);
  const Expr first = Substitute(range->min, BindingsOf(*access.place->block()));
  auto affine = DetectAffine(analyzer->Simplify(first), vars);
  const auto own = AsInt(analyzer->Simplify(range->extent));
  const auto extent = AsInt(loop->extent);
  if (!affine || !own || !extent) return std::nullopt;
  std::vector<std::pair<int64_t, int64_t>> others;  // weight, extent or 0
  int64_t weight = 0;
  for (size_t i = 0; i < around.size(); ++i) {
    const auto c = AsInt(analyzer->Simplify(affine->coefficients[i]));
    if (!c || *c < 0 || (*c > 0 && !IsZero(around[i]->min))) return std::nullopt;
    if (around[i] == loop) weight = *c;
    if (around[i] != loop && *c > 0) {
      others.emplace_back(*c, AsInt(around[i]->extent).value_or(0));
    }
  }
  if (weight == 0) return std::nullopt;
  int64_t below = *own - 1;
  for (const auto& [c, n] : others) {
    if (c % (weight * *extent) == 0) continue;
    if (n == 0) return std::nullopt;
    below += c * (n - 1);
  }
  if (below >= weight) return std::nullopt;
  return Digit{d, weight, *extent, analyzer->Simplify(affine->base)};
}

std::optional<Digit> DigitOf(const Access& access, const For* loop, Analyzer* analyzer) {
  for (size_t d = 0; d < access.region->ranges.size(); ++d) {
    if (auto digit = DigitIn(access, d, loop, analyzer)) return digit;
  }
  return std::nullopt;
}

const For* AxisAround(const Place& place, ThreadAxis thread) {
  for (const For* loop : place.Loops()) {
    if (loop->for_kind == ForKind::kThread && loop->thread == thread) return loop;
  }
  return nullptr;
}

// Every element that the loop's accesses write is that of the thread with the same number in
// `other`, below another loop of the same axis: threads find what they wrote themselves.
bool IsSameThread(const Body& body, const std::vector<Access>& accesses, const For* loop,
                  ThreadAxis thread, const Access& other) {
  const For* axis = IsThreadAxis(thread) ? AxisAround(*other.place, thread) : nullptr;
  if (!axis) return false;
  Analyzer analyzer;
  Learn(*body.func(), &analyzer);
  const auto want = DigitOf(other, axis, &analyzer);
  if (!want) return false;
  return std::all_of(accesses.begin(), accesses.end(), [&](const Access& a) {
    if (!a.write) return true;
    const auto got = DigitIn(a, want->dim, loop, &analyzer);
    return got && got->weight == want->weight && got->extent == want->extent &&
           StructuralEqual(got->base, want->base);
  });
}

// All that is written is the result of a reduction over the loop: threads that combine their parts
// each have it afterwards.
bool IsReducedBy(const std::vector<Access>& accesses, const For* loop) {
  return std::all_of(accesses.begin(), accesses.end(), [&](const Access& a) {
    return !a.write || BindsLoop(*a.place->block(), IterKind::kReduce, loop);
  });
}

bool IsUsedUnder(const Body& body, const Buffer& buffer, const Node* stmt) {
  auto uses = [&](const Access& a) { return a.region->buffer == buffer; };
  const std::vector<Access> all = body.AccessesUnder(stmt);
  return std::any_of(all.begin(), all.end(), uses) ||
         std::any_of(body.strays().begin(), body.strays().end(), [&](const Place& stray) {
           return stray.IsUnder(stmt) && UsesBuffer(stray.stmt, buffer.get());
         });
}

}  // namespace

std::optional<Diagnostic> ConflictOfScopes(const Body& body, const Place& place, ForKind kind,
                                           ThreadAxis thread) {
  const For* loop = place.loop();
  for (const Buffer& buffer : body.allocs()) {
    if (!IsOwn(buffer->scope, kind, thread) || !IsUsedUnder(body, buffer, loop)) continue;
    if (AllUsesUnder(body, buffer, loop)) continue;
    if (auto error = UsedInNoBlock(body, buffer)) return error;
  }
  for (const std::vector<Access>& accesses : WrittenUnder(body, loop)) {
    const Buffer& buffer = accesses[0].region->buffer;
    if (!IsOwn(buffer->scope, kind, thread) || !body.IsAlloc(buffer)) continue;
    if (kind == ForKind::kThread && IsReducedBy(accesses, loop)) continue;
    for (const Access& a : body.AccessesUnder(nullptr)) {
      if (a.region->buffer != buffer || a.place->IsUnder(loop)) continue;
      if (HasPrivately(*a.place, buffer, loop)) continue;
      if (kind == ForKind::kThread && IsSameThread(body, accesses, loop, thread, a)) continue;
      return OfBlock(a.place->block()->name, "it uses " + buffer->name + " outside loop " +
                                                 loop->var->name +
                                                 ", whose iterations write it, each worker in " +
                                                 Name(buffer->scope) + " memory of its own");
    }
  }
  return std::nullopt;
}

Stmt WithPrivate(const For& loop, Names own) {
  Attrs attrs = loop.attrs;
  if (own.empty()) {
    attrs.Erase(kPrivateAttr);
  } else {
    attrs.Set(kPrivateAttr, std::move(own));
  }
  return For::Make(loop.var, loop.min, loop.extent, loop.for_kind, loop.body, attrs, loop.thread);
}

namespace {

// What two statements around a loop say to what is inside.
bool SaySame(const Stmt& a, const Stmt& a_inside, const Stmt& b, const Stmt& b_inside) {
  if (a == b) return true;
  if (a->kind != b->kind) return false;
  if (const auto* loop = As<For>(a)) {
    const auto* other = As<For>(b);
    return loop->var == other->var && loop->min == other->min && loop->extent == other->extent &&
           loop->for_kind == other->for_kind && loop->thread == other->thread;
  }
  if (const auto* let = As<Let>(a)) {
    return let->var == As<Let>(b)->var && let->value == As<Let>(b)->value;
  }
  if (const auto* branch = As<If>(a)) {
    const auto* other = As<If>(b);
    return branch->condition == other->condition &&
           (branch->then_body == a_inside) == (other->then_body == b_inside);
  }
  return IsA<Alloc>(a) || IsA<Seq>(a);
}

// The path of the loop and the loop.
std::vector<Stmt> Around(const Place& loop) {
  std::vector<Stmt> out = loop.path;
  out.push_back(loop.stmt);
  return out;
}

// What holds between the iterations of a loop with nothing of their own is a matter of what is
// under the loop and what holds around it.
bool StandsAsJudged(const JudgedLoops& judged, const Place& loop) {
  const auto it = judged.find(loop.stmt.get());
  if (it == judged.end()) return false;
  const std::vector<Stmt> now = Around(loop);
  const std::vector<Stmt>& then = it->second;
  if (now.size() != then.size()) return false;
  for (size_t i = 0; i + 1 < now.size(); ++i) {
    if (!SaySame(then[i], then[i + 1], now[i], now[i + 1])) return false;
  }
  return true;
}

}  // namespace

std::optional<Diagnostic> JudgeConcurrentLoops(State* state) {
  const Body body(state->func);
  std::map<const VarNode*, Names> changed;
  for (const Place& p : body.loops()) {
    const For& loop = *p.loop();
    const ForKind kind = loop.for_kind;
    if (kind == ForKind::kSerial || kind == ForKind::kUnrolled || p.inner) continue;
    std::optional<Diagnostic> conflict;
    Names own = loop.attrs.Get<Names>(kPrivateAttr, {});
    if (!body.HasStrayUnder(&loop) && !(state->judged && StandsAsJudged(*state->judged, p))) {
      Names now;
      conflict = ConflictBetweenIterations(body, p, kind, loop.thread, &now);
      if (state->judged && !conflict && now.empty() && own.empty()) {
        (*state->judged)[&loop] = Around(p);
      }
      if (now != own) changed[loop.var.get()] = std::move(now);
    }
    if (!conflict) conflict = ConflictOfScopes(body, p, kind, loop.thread);
    if (conflict) {
      conflict->notes.push_back("loop " + loop.var->name + " is " + Name(kind));
      return conflict;
    }
  }
  if (changed.empty()) return std::nullopt;
  state->SetBody(MapStmts(body.root(), [&](const Stmt& s) -> Stmt {
    const auto* loop = As<For>(s);
    auto it = loop ? changed.find(loop->var.get()) : changed.end();
    return it == changed.end() ? s : WithPrivate(*loop, it->second);
  }));
  return std::nullopt;
}

}  // namespace tenon::primitive

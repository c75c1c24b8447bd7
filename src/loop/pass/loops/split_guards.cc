// Guards become ranges of loops.
//
// A conjunct of an `if` or a select that compares indices is brought to the form f >= 0, and f is
// read as slope * v + rest for the loop's variable v. If the rest knows nothing of inner loops, the
// guard holds exactly from (or up to) a value of v; if it does, the least value that the rest takes
// over the inner loops' ranges tells from where it holds for all of them. All lower bounds of a
// loop make one `first`, all upper bounds one `last`, and the loop becomes three: before, inside,
// after. Inside, every guard is true by construction and is replaced by it; before and after, an
// exact guard that stands alone is false there, and an `if` around it goes. Parts that are empty
// for certain are not made. An interior is looked at again: with the ranges gone, equalities (the
// first iteration of a reduction) are what is left to peel. From
//
//   for i in 0..20, k in 0..3 {
//     if 1 <= i + k && i + k <= 20 { C[i] = C[i] + A[i + k - 1] * W[k] }
//   }
//
// comes, with simplify behind it, since i = 0 and i = 19 are left over as loops of one iteration,
//
//   for k.1 in 1..3 {
//     C[0] = C[0] + A[k.1 - 1] * W[k.1]
//   }
//   for i in 1..19, k in 0..3 {
//     C[i] = C[i] + A[i + k - 1] * W[k]
//   }
//   for k.2 in 0..2 {
//     C[19] = C[19] + A[k.2 + 18] * W[k.2]
//   }
//
// The body of a parallel loop gets versions instead. Where several operands lie behind each other
// along an axis, there is one for each of them, chosen by the loop's variable alone; where tiles
// end two axes, one for whole tiles, for either end and for both.
//
// What keeps this from exploding: an edge is not split again for guards that only hold for a whole
// inner tile (in_edge_), a tile that several serial loops move is split in the innermost one alone,
// and copies count against max_unrolled_stmts.

#include "loop/pass/loops/split_guards.h"

#include <algorithm>

#include "loop/rewrite.h"
#include "loop/threads.h"

namespace tenon {

namespace {

// A comparison that holds exactly, or at least, where the variable is >= lo and < hi; null: no
// bound on that side. The same without divisions is `holds`, and where there are neither bounds, it
// holds at least there; it may hold for some values of inner loops only where `may` does.
struct Guard {
  const Node* comparison;
  bool exact;
  Expr lo, hi;
  bool equality = false;
  Expr holds = nullptr, may = nullptr;
  Expr hi_may = nullptr;  // from here on it holds for no values of inner loops; null: not known

  bool IsCurved() const { return !lo && !hi; }
};

// The guards in a loop's body that speak of its variable.
class GuardFinder {
 public:
  GuardFinder(const Var& var, Analyzer* analyzer,
              const std::unordered_set<const VarNode*>& outer_loops)
      : var_(var), analyzer_(analyzer), outer_loops_(outer_loops) {}

  std::vector<Guard> operator()(const Stmt& body) {
    PreOrder(body, [&](const NodeRef& n) {
      if (const auto* loop = As<For>(n)) BindLoop(*loop);
      if (const auto* let = As<Let>(n)) opaque_.insert(let->var.get());
      if (const auto* node = As<If>(n)) Conditions(node->condition);
      if (const auto* select = As<Select>(n)) Conditions(select->condition);
      return true;
    });
    return std::move(guards_);
  }

 private:
  void BindLoop(const For& loop) {
    bool fixed = !Inner(loop.min) && !Inner(loop.extent) && IsPure(loop.min) && IsPure(loop.extent);
    if (fixed)
      inner_[loop.var.get()] = {loop.min, analyzer_->Simplify(loop.min + loop.extent - 1)};
    else
      opaque_.insert(loop.var.get());
    if (loop.for_kind == ForKind::kSerial) serial_.insert(loop.var.get());
  }

  // Of a tile that serial loops move over the tensor, the innermost one of them knows best whether
  // the tile is inside.
  bool IsForInnerLoop(const Expr& f) const {
    bool moves = UsesAnyVar(f, serial_), tile = false;
    for (const auto& [var, range] : inner_) tile |= !serial_.count(var) && UsesVar(f, var);
    return moves && tile;
  }

  bool Inner(const Expr& e) const {
    bool inner = false;
    PreOrder(e, [&](const NodeRef& n) {
      const auto* var = As<VarNode>(n);
      inner |= var && (inner_.count(var) || opaque_.count(var));
      return !inner;
    });
    return inner;
  }

  // Inner loops are gone from it, and with their ranges the variable itself has not come in (j in
  // 0..i + 1).
  bool IsBound(const Expr& e) const { return !Inner(e) && !UsesVar(e, var_.get()); }

  void Conditions(const Expr& condition) {
    for (const Expr& e : Conjuncts(condition)) {
      if (!seen_.insert(e.get()).second || !UsesVar(e, var_.get()) || !IsPure(e)) continue;
      if (UsesAnyVar(e, opaque_)) continue;
      const auto* comparison = As<Binary>(e);
      if (comparison && comparison->lhs->dtype == DType::Index()) Add(*comparison);
    }
  }

  // x == c: one iteration, the first as a rule, which is peeled.
  void AddEquality(const Binary& comparison) {
    auto affine = DetectAffine(analyzer_->Simplify(comparison.lhs - comparison.rhs), {var_});
    auto slope = affine ? AsInt(analyzer_->Simplify(affine->coefficients[0])) : std::nullopt;
    if (!slope || std::abs(*slope) != 1 || Inner(affine->base)) return;
    Expr value = *slope == 1 ? IndexConst(0) - affine->base : affine->base;
    guards_.push_back({&comparison, true, value, value + 1, true});
  }

  // The comparison as f >= 0; null when it is none.
  static Expr NonNegative(const Binary& e) {
    switch (e.op) {
      case BinaryOp::kLt: return e.rhs - e.lhs - 1;
      case BinaryOp::kLe: return e.rhs - e.lhs;
      case BinaryOp::kGt: return e.lhs - e.rhs - 1;
      case BinaryOp::kGe: return e.lhs - e.rhs;
      default: return nullptr;
    }
  }

  void Add(const Binary& comparison) {
    if (comparison.op == BinaryOp::kEq) return AddEquality(comparison);
    Expr f = NonNegative(comparison);
    auto affine = f ? DetectAffine(analyzer_->Simplify(f), {var_}) : std::nullopt;
    if (f && !affine) return AddCurved(comparison, f);
    auto slope = affine ? AsInt(analyzer_->Simplify(affine->coefficients[0])) : std::nullopt;
    if (!slope || *slope == 0) return;
    Expr least = affine->base, most = least;
    bool exact = !Inner(least);
    if (!exact) {
      if (IsForInnerLoop(least)) return;
      bool moves = UsesAnyVar(least, serial_);
      const auto values = EvalInterval(least, inner_, analyzer_);
      least = values.min;
      most = values.max;
      if (!least || !IsBound(least)) return;
      // A split of a whole nest is worth it only where it is one split, not one per outer
      // iteration.
      if (moves && UsesAnyVar(least, outer_loops_)) return;
    }
    Guard guard{&comparison, exact, nullptr, nullptr, false};
    if (*slope > 0)
      guard.lo = CeilDiv(IndexConst(0) - least, IndexConst(*slope));
    else
      guard.hi = least / IndexConst(-*slope) + 1;
    guard.holds = Ge(var_ * *slope + least, IndexConst(0));
    if (most && IsBound(most)) {
      guard.may = Ge(var_ * *slope + most, IndexConst(0));
      if (*slope < 0) guard.hi_may = most / IndexConst(-*slope) + 1;
    }
    guards_.push_back(std::move(guard));
  }

  // f >= 0 where the variable stands under a division: one loop over several axes of tiles.
  void AddCurved(const Binary& comparison, const Expr& f) {
    if (IsForInnerLoop(f)) return;
    if (!Inner(f)) return;
    const auto [least, most] = EvalInterval(analyzer_->Simplify(f), inner_, analyzer_);
    if (!least || Inner(least) || UsesAnyVar(least, outer_loops_)) return;
    guards_.push_back({&comparison, false, nullptr, nullptr, false, Ge(least, IndexConst(0))});
    if (most && !Inner(most)) guards_.back().may = Ge(most, IndexConst(0));
  }

  const Var& var_;
  Analyzer* analyzer_;
  const std::unordered_set<const VarNode*>& outer_loops_;
  IntervalMap inner_;
  std::unordered_set<const VarNode*> opaque_, serial_;
  std::unordered_set<const Node*> seen_;
  std::vector<Guard> guards_;
};

// What is left of a node one of whose parts has become true or false.
NodeRef Fold(const NodeRef& n) {
  if (const auto* both = As<Binary>(n); both && both->op == BinaryOp::kAnd) {
    if (IsZero(both->lhs) || IsOne(both->rhs)) return both->lhs;
    if (IsZero(both->rhs) || IsOne(both->lhs)) return both->rhs;
  }
  if (const auto* select = As<Select>(n); select && select->condition->dtype.IsScalar()) {
    if (IsOne(select->condition)) return select->on_true;
    if (IsZero(select->condition)) return select->on_false;
  }
  if (const auto* node = As<If>(n)) {
    if (IsOne(node->condition)) return node->then_body;
    if (IsZero(node->condition)) return node->else_body ? node->else_body : Seq::Make({});
  }
  if (const auto* seq = As<Seq>(n)) return Seq::Make(seq->stmts);
  return n;
}

// Whether `value` is what `store` overwrites, combined with nothing. A sum of 0 keeps all but the
// sign of a zero.
bool KeepsElement(const Store& store) {
  const auto loads = [&](const Expr& e) {
    const auto* load = As<Load>(e);
    return load && load->buffer == store.buffer &&
           std::equal(load->indices.begin(), load->indices.end(), store.indices.begin(),
                      store.indices.end(),
                      [](const Expr& a, const Expr& b) { return StructuralEqual(a, b); });
  };
  if (loads(store.value)) return true;
  const auto* op = As<Binary>(store.value);
  const Expr neutral = op ? NeutralOf(op->op, op->dtype) : nullptr;
  return neutral && ((loads(op->lhs) && StructuralEqual(op->rhs, neutral)) ||
                     (loads(op->rhs) && StructuralEqual(op->lhs, neutral)));
}

// Memory that nobody writes and hints about what nobody will read are nothing, too.
bool DoesNothing(const Stmt& stmt) {
  if (const auto* seq = As<Seq>(stmt))
    return std::all_of(seq->stmts.begin(), seq->stmts.end(), DoesNothing);
  if (const auto* loop = As<For>(stmt)) return DoesNothing(loop->body);
  if (const auto* alloc = As<Alloc>(stmt)) return DoesNothing(alloc->body);
  if (const auto* hint = As<Evaluate>(stmt)) {
    const auto* call = As<Call>(hint->call);
    return call && call->intrinsic == Intrinsic::kPrefetch;
  }
  const auto* store = As<Store>(stmt);
  return store && KeepsElement(*store);
}

// The statement with comparisons replaced by what they are known to be.
Stmt Decide(const Stmt& stmt, const std::unordered_map<const Node*, bool>& known) {
  if (known.empty()) return stmt;
  // Guards are found by address in the tree as it is, so a parent is looked at before its parts are
  // rebuilt.
  struct Decider final : ChildMapper {
    NodeRef MapChild(const NodeRef& child, FieldRole role) override {
      if (role == FieldRole::kBinds || child->kind == NodeKind::kBuffer) return child;
      auto it = known->find(child.get());
      if (it != known->end()) return BoolConst(it->second);
      const bool shared = !child->IsUnique();
      if (auto was = done.find(child.get()); shared && was != done.end()) return was->second;
      NodeRef mapped = child->MapChildren(*this);
      if (mapped != child) mapped = Fold(mapped);
      if (shared) done[child.get()] = mapped;
      return mapped;
    }
    const std::unordered_map<const Node*, bool>* known;
    std::unordered_map<const Node*, NodeRef> done;  // of those with several parents
  } decider;
  decider.known = &known;
  return Cast<StmtNode>(decider.MapChild(stmt, FieldRole::kChild));
}

// Goes over one function. What it has made runs the same iterations in the same order as before;
// `stmts_` counts the function's statements with all copies made so far.
class GuardSplitter final : public ScopedRewriter {
 public:
  GuardSplitter(const Func& func, const PassContext& context)
      : names_(*func),
        stmts_(CountStmts(func->body)),
        max_stmts_(context.max_unrolled_stmts),
        bound_(IsBound(*func)) {
    Learn(*func, &analyzer_);
  }

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    const auto* loop = As<For>(stmt);
    if (!loop) return Children(stmt);
    bool serial = loop->for_kind == ForKind::kSerial,
         parallel = loop->for_kind == ForKind::kParallel;
    bool fits = stmts_ + 2 * CountStmts(loop->body) <= max_stmts_;
    std::vector<Guard> guards;
    if ((serial || parallel) && fits) guards = GuardsOf(*loop, parallel);
    loops_.insert(loop->var.get());
    Stmt out = guards.empty() ? Children(stmt)
               : parallel     ? Version(*loop, guards)
                              : Split(*loop, guards);
    loops_.erase(loop->var.get());
    return out;
  }

  std::vector<Guard> GuardsOf(const For& loop, bool parallel) {
    analyzer_.Bind(loop.var, loop.min, loop.extent);
    std::vector<Guard> guards = GuardFinder(loop.var, &analyzer_, loops_)(loop.body);
    std::erase_if(guards, [&](const Guard& g) {
      if (bound_ && !(g.exact && IsConstant(g.lo) && IsConstant(g.hi))) return true;
      return (g.exact ? parallel : in_edge_) || (g.IsCurved() && !parallel);
    });
    KeepOneKind(&guards);
    return guards;
  }

  static bool IsConstant(const Expr& bound) { return !bound || AsInt(Simplify(bound)).has_value(); }

  // Ranges first; what equalities single out is peeled from the interior that they leave, in a
  // second round.
  static void KeepOneKind(std::vector<Guard>* guards) {
    bool ranges =
        std::any_of(guards->begin(), guards->end(), [](const Guard& g) { return !g.equality; });
    std::erase_if(*guards, [&](const Guard& g) {
      bool other_value = !ranges && !StructuralEqual(g.lo, guards->front().lo);
      return g.equality == ranges || other_value;
    });
  }

  static std::unordered_map<const Node*, bool> AllTrue(const std::vector<Guard>& guards) {
    std::unordered_map<const Node*, bool> known;
    for (const Guard& g : guards) known[g.comparison] = true;
    return known;
  }

  // Before `first` some guard with a lower bound is false: the one that there is.
  static std::unordered_map<const Node*, bool> OnlyFalse(const std::vector<Guard>& guards,
                                                         bool lower) {
    std::unordered_map<const Node*, bool> known;
    const Guard* only = nullptr;
    for (const Guard& g : guards) {
      const Expr& side = lower ? g.lo : g.hi;
      if (!side) continue;
      if (!g.exact || (only && !StructuralEqual(lower ? only->lo : only->hi, side))) return {};
      only = &g;
      known[g.comparison] = false;
    }
    return known;
  }

  Stmt Split(const For& loop, const std::vector<Guard>& guards) {
    Expr end = analyzer_.Simplify(loop.min + loop.extent), first = loop.min, last = end;
    bool any_lo = false, any_hi = false;
    for (const Guard& g : guards) {
      if (g.lo) first = Max(first, g.lo), any_lo = true;
      if (g.hi) last = Min(last, g.hi), any_hi = true;
    }
    first = any_lo ? analyzer_.Simplify(Min(first, end)) : loop.min;
    last = any_hi ? analyzer_.Simplify(Max(first, last)) : end;
    bool relaxed = false;
    for (const Guard& g : guards) relaxed |= !g.exact;

    Stmt inside = Part(loop, first, last, Decide(loop.body, AllTrue(guards)),
                       guards[0].equality ? kEdge : kInterior);
    bool outer_edge = std::exchange(in_edge_, in_edge_ || relaxed);
    Stmt before = any_lo ? Part(loop, loop.min, first, Decide(loop.body, OnlyFalse(guards, true)),
                                kCopiedEdge)
                         : nullptr;
    if (any_hi) end = EndOfWork(loop, guards, last, end);
    Stmt after =
        any_hi ? Part(loop, last, end, Decide(loop.body, OnlyFalse(guards, false)), kCopiedEdge)
               : nullptr;
    in_edge_ = outer_edge;
    Stmt out = Seq::Make({before, inside, after});
    const auto* seq = As<Seq>(out);
    return seq && seq->stmts.empty() ? nullptr : out;
  }

  // Where guards hold nowhere and the loop's body then does nothing (a vector that is all beyond
  // the end adds zeroes; a block of tiles has fewer than its size), what comes after is left out.
  Expr EndOfWork(const For& loop, const std::vector<Guard>& guards, const Expr& last,
                 const Expr& end) {
    std::unordered_map<const Node*, bool> never;
    Expr most;
    for (const Guard& g : guards) {
      const Expr& may = g.exact ? g.hi : g.hi_may;
      if (!may) continue;
      never[g.comparison] = false;
      if (!most)
        most = may;
      else if (!analyzer_.CanProve(Le(may, most)))
        most = analyzer_.CanProve(Le(most, may)) ? may : Max(most, may);
    }
    if (!most || !DoesNothing(Decide(loop.body, never))) return end;
    return analyzer_.Simplify(Max(last, Min(end, most)));
  }

  // Of a split loop. The interior may have more guards to split at.
  enum PartKind { kInterior, kEdge, kCopiedEdge };

  Stmt Part(const For& loop, const Expr& first, const Expr& end, const Stmt& body, PartKind kind) {
    Expr extent = analyzer_.Simplify(end - first);
    if (analyzer_.CanProve(Le(extent, IndexConst(0)))) return nullptr;
    Stmt part = For::Make(loop.var, first, extent, loop.for_kind, body, loop.attrs);
    if (kind == kCopiedEdge) {
      part = FreshCopy(part, {}, &names_);
      stmts_ += CountStmts(part);
    }
    return kind == kInterior ? VisitStmt(part) : Children(part);
  }

  // The statement where the condition does not hold. `e < c`, with an e of c at most: there e is c,
  // and guards that speak of it need not know where the loop is.
  Stmt WhereNot(const Expr& condition, const Stmt& stmt) {
    const auto* less = As<Binary>(condition);
    const auto most = less && less->op == BinaryOp::kLt ? AsInt(less->rhs) : std::nullopt;
    if (!most || !IsA<Binary>(less->lhs) || analyzer_.ConstBounds(less->lhs).max != *most)
      return stmt;
    return PostOrderRewrite(stmt, [&](const NodeRef& n) -> NodeRef {
      const auto* e = As<Binary>(n);
      const bool same = e && e->op == As<Binary>(less->lhs)->op && StructuralEqual(n, less->lhs);
      return same ? NodeRef(less->rhs) : n;
    });
  }

  // Where the guard holds, as a condition on a parallel loop's variable.
  Expr Holds(const For& loop, const Guard& g) {
    const bool numbers = !g.IsCurved() && IsConstant(g.lo) && IsConstant(g.hi);
    return analyzer_.Simplify(!numbers ? g.holds : g.lo ? Ge(loop.var, g.lo) : Lt(loop.var, g.hi));
  }

  // Whether the guard is false for the whole body where it does not hold.
  bool IsAllOrNothing(const For& loop, const Guard& g) {
    return g.may && StructuralEqual(Holds(loop, g), analyzer_.Simplify(g.may));
  }

  // A loop over tiles that end two axes has whole tiles, tiles that are cut short along one axis or
  // the other, and those cut short along both. Each kind has a version, if it has a loop over
  // steps: one test for both axes would leave guards in there. Null where the loop is not such a
  // one.
  Stmt VersionByTwo(const For& loop, const std::vector<Guard>& guards) {
    if (!AnyInSerialLoop(loop.body, guards)) return nullptr;
    const Expr first = Holds(loop, guards[0]);
    Expr second;
    std::vector<Guard> seconds;
    bool curved = false;
    for (const Guard& g : guards) {
      if (IsAllOrNothing(loop, g)) return nullptr;
      curved |= g.IsCurved();
      const Expr holds = Holds(loop, g);
      if (StructuralEqual(holds, first)) continue;
      if (second && !StructuralEqual(holds, second)) return nullptr;
      second = holds;
      seconds.push_back(g);
    }
    if (!second || !curved || IsOne(first) || IsOne(second) ||
        stmts_ + 4 * CountStmts(loop.body) > max_stmts_)
      return nullptr;
    Stmt edge = FreshCopy(WhereNot(second, loop.body), {}, &names_);
    stmts_ += CountStmts(edge);
    Stmt inside = VersionBy(first, loop, Decide(loop.body, AllTrue(seconds)), false);
    edge = VersionBy(first, loop, edge, true);
    if (!inside && !edge) return nullptr;
    return WithBody(loop, inside ? If::Make(second, inside, edge) : If::Make(Not(second), edge));
  }

  // A body of the loop with versions by the guards that hold under the condition. In an edge others
  // stay.
  Stmt VersionBy(const Expr& condition, const For& loop, const Stmt& body, bool is_edge) {
    const Stmt rest = WithBody(loop, body);
    loops_.erase(loop.var.get());  // for guards, it is around no place yet
    std::vector<Guard> guards = GuardsOf(*As<For>(rest), true);
    std::erase_if(guards,
                  [&](const Guard& g) { return !StructuralEqual(Holds(loop, g), condition); });
    loops_.insert(loop.var.get());
    const bool outer_edge = std::exchange(in_edge_, in_edge_ || is_edge);
    const Stmt out = guards.empty() ? Under(loop, body) : BodyOf(Version(*As<For>(rest), guards));
    in_edge_ = outer_edge;
    return out;
  }

  static bool AnyInSerialLoop(const Stmt& body, const std::vector<Guard>& guards) {
    std::unordered_set<const Node*> comparisons;
    for (const Guard& g : guards) comparisons.insert(g.comparison);
    bool found = false;
    PreOrder(body, [&](const NodeRef& n) {
      const auto* loop = As<For>(n);
      if (loop && loop->for_kind == ForKind::kSerial) {
        PreOrder(loop->body, [&](const NodeRef& inner) {
          found |= comparisons.contains(inner.get());
          return !found;
        });
      }
      return !found;
    });
    return found;
  }

  static Stmt BodyOf(const Stmt& loop) { return loop ? As<For>(loop)->body : nullptr; }

  // Where not all guards hold, the first one may be false for the whole body (an operand of several
  // that lie behind each other, each in whole tiles): then what is left is looked at again.
  Stmt Version(const For& loop, const std::vector<Guard>& guards) {
    if (Stmt by_two = VersionByTwo(loop, guards)) return by_two;
    std::vector<Expr> hold;
    for (const Guard& g : guards) hold.push_back(Holds(loop, g));
    Expr all = analyzer_.Simplify(Conjunction(hold));
    Stmt inside = Decide(loop.body, AllTrue(guards));
    if (IsOne(all)) return Children(WithBody(loop, inside));
    const Guard& first = guards[0];
    const bool apart = first.may && StructuralEqual(all, analyzer_.Simplify(first.holds)) &&
                       StructuralEqual(all, analyzer_.Simplify(first.may));
    std::unordered_map<const Node*, bool> known;
    for (const Guard& g : guards) {
      if (apart && g.may && StructuralEqual(all, analyzer_.Simplify(g.may)))
        known[g.comparison] = false;
    }
    Stmt edge = WhereNot(all, Decide(loop.body, known));
    edge = FreshCopy(edge, {}, &names_);
    stmts_ += CountStmts(edge);
    inside = Under(loop, inside);
    edge = apart ? Rest(loop, edge) : InEdge(loop, edge);
    if (!inside && !edge) return nullptr;
    Stmt body = !inside ? If::Make(Not(all), edge) : If::Make(all, inside, edge);
    return WithBody(loop, body);
  }

  // The body of a parallel loop for what has not been told apart.
  Stmt Rest(const For& loop, const Stmt& body) {
    const Stmt rest = WithBody(loop, body);
    std::vector<Guard> guards;
    loops_.erase(loop.var.get());  // for guards, it is around no place yet
    if (stmts_ + 2 * CountStmts(body) <= max_stmts_) guards = GuardsOf(*As<For>(rest), true);
    loops_.insert(loop.var.get());
    if (guards.empty()) return InEdge(loop, body);
    return BodyOf(Version(*As<For>(rest), guards));
  }

  Stmt InEdge(const For& loop, const Stmt& body) {
    const bool outer_edge = std::exchange(in_edge_, true);
    const Stmt out = Under(loop, body);
    in_edge_ = outer_edge;
    return out;
  }

  // A body of the loop, rewritten.
  Stmt Under(const For& loop, const Stmt& body) {
    analyzer_.Bind(loop.var, loop.min, loop.extent);
    return VisitStmt(body);
  }

  NameSupply names_;
  int64_t stmts_;
  const int64_t max_stmts_;
  const bool bound_;  // threads must go by the same way, where there may be barriers
  std::unordered_set<const VarNode*> loops_;  // around the present place
  bool in_edge_ = false;
};

}  // namespace

Module SplitGuards(const Module& module, const PassContext& context) {
  return MapFuncs(module, [&](const Func& func) {
    bool runs_loops = func->func_kind == FuncKind::kKernel || func->func_kind == FuncKind::kDevice;
    return runs_loops ? WithBody(func, GuardSplitter(func, context).Rewrite(func->body)) : func;
  });
}

}  // namespace tenon

// From an access to a condition on sizes, by its worst iteration.
//
// The walk knows the path to each access: loops, conditions, values of lets. For "index < extent"
// the path is gone back from the access outwards, and each loop's variable is replaced by the end
// of its range at which the index is largest, which its trend says (does the index rise or fall
// with it?). What is left mentions dims and scalars alone; the loops that must not be empty and the
// conditions that must hold on the way become "if". So of
//
//   func @f<n, m>(A: f32[m], out C: f32[n]) {
//     for i in 0..n { C[i] = A[i + 3] }
//   }
//
// i = n - 1 is the witness, and the function requires
//
//   n + 2 < m if n >= 1: A[i + 3] along dim 0
//
// If the condition cannot hold wherever the path leads, it is no requirement but an error; if it
// always holds, it is nothing. An index that neither rises nor falls with a loop (i * i % k) has no
// worst iteration that is known: then the requirement keeps the loop and is about all of them.

#include "loop/requirements.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_set>

#include "arith/analyzer.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "loop/access_walker.h"
#include "loop/trend.h"

namespace tenon {

namespace {

// No more is asked of one call.
constexpr size_t kMaxRequirements = 1024;

enum class Side : uint8_t { kLeast, kMost };

/// Where a loop stands in the witness of an index that neither rises nor falls with it.
enum class Otherwise : uint8_t { kFirst, kLast, kWraps };

// Walks one function. A requirement in found_ holds wherever the function runs without a fault, and
// an error in errors_ is a fault wherever its loops run.
class Finder final : public AccessWalker {
 public:
  Finder(const PrimFunc& func, const Module& module) : AccessWalker(func, module) {
    for (size_t i = 0; i < func.dims.size(); ++i) {
      const DimRange range = func.dim_range(i);
      numbers_.insert(func.dims[i].get());
      analyzer_.BindInterval(func.dims[i], {range.lo, range.hi < 0 ? Interval::kPosInf : range.hi});
    }
    for (const Var& scalar : func.scalars) {
      if (!scalar->dtype.IsFloat() && !scalar->dtype.IsHandle()) numbers_.insert(scalar.get());
    }
  }

  Expected<std::vector<Requirement>> Find() {
    bool leaves = false;  // then what stands behind may not run
    PreOrder(func_.body, [&](const NodeRef& n) {
      leaves |= IsA<Return>(n);
      return !IsA<ExprNode>(n);
    });
    if (!leaves) Walk(func_.body);
    if (!errors_.empty()) return errors_;
    return std::move(found_);
  }

 private:
  // ---- The witness ----

  // What the condition compares at a witness, and when that runs. The last one's index is the
  // side that the witness makes large or small.
  struct Witness {
    Expr left, right;
    std::vector<Expr> loops, conditions;
    bool unsure = false;   // whether an index neither rises nor falls
    bool between = false;  // whether it may be larger elsewhere, or not get to the witness
  };

  std::optional<Witness> At(const Binary& holds, Otherwise otherwise) {
    Witness w{holds.lhs, holds.rhs, {}, {}};
    VarMap put;
    auto all = [&](const Var& var, const Expr& value) {
      put = {{var.get(), value}};
      w.left = Substitute(w.left, put), w.right = Substitute(w.right, put);
      for (Expr& e : w.loops) e = Substitute(e, put);
      for (Expr& e : w.conditions) e = Substitute(e, put);
    };
    for (auto step = path_.rbegin(); step != path_.rend(); ++step) {
      switch (step->kind) {
        case Step::Kind::kCondition:
          if (!step->value) return std::nullopt;
          w.conditions.push_back(analyzer_.Simplify(step->value));
          break;
        case Step::Kind::kValue: all(step->var, step->value); break;
        case Step::Kind::kLoop:
          w.loops.push_back(Lt(IndexConst(0), step->extent));
          all(step->var, PlaceOf(*step, holds.op, otherwise, &w));
          break;
      }
    }
    auto known = [&](const Expr& e) { return IsOfNumbers(e); };
    if (!known(w.left) || !known(w.right) || !std::all_of(w.loops.begin(), w.loops.end(), known) ||
        !std::all_of(w.conditions.begin(), w.conditions.end(), known)) {
      return std::nullopt;
    }
    return w;
  }

  // The loop's value at the witness.
  Expr PlaceOf(const Step& loop, BinaryOp op, Otherwise otherwise, Witness* w) {
    const Side side = op == BinaryOp::kLt ? Side::kMost : Side::kLeast;
    Expr last = loop.min + loop.extent - 1;
    Trend trend = TrendOf(side == Side::kMost ? w->left : w->right, loop.var, &analyzer_);
    if (op == BinaryOp::kNe && UsesVar(w->left, loop.var.get())) trend = Trend::kUnknown;
    if (side == Side::kLeast) trend = Turned(trend);
    if (trend == Trend::kUnknown) return Guess(loop, side, otherwise, w);
    const Trend runs = WhereItRuns(*w, loop.var);
    const bool at_last = (trend == Trend::kNone ? runs : trend) == Trend::kRises;
    const Expr place = at_last ? last : loop.min;
    const bool there = runs == Trend::kNone || runs == (at_last ? Trend::kRises : Trend::kFalls);
    w->between |= !there && !RunsAt(*w, loop.var, place);
    return place;
  }

  // Of an index that neither rises nor falls.
  Expr Guess(const Step& loop, Side side, Otherwise otherwise, Witness* w) {
    bool exact = false;
    Expr wraps;
    if (side == Side::kMost) wraps = WhereItWraps(w->left, loop.var, &exact, &analyzer_);
    w->between |= w->unsure || !exact || WhereItRuns(*w, loop.var) != Trend::kNone;
    w->unsure = true;
    if (otherwise == Otherwise::kFirst) return loop.min;
    Expr last = loop.min + loop.extent - 1;
    if (!wraps || otherwise != Otherwise::kWraps) return last;
    w->conditions.push_back(And(Le(loop.min, wraps), Le(wraps, last)));
    return wraps;
  }

  // At which end of a loop that is so far inside what stands under conditions runs if it does at
  // all: rises: at the last iteration.
  Trend WhereItRuns(const Witness& w, const Var& v) {
    Trend all = Trend::kNone;
    for (const std::vector<Expr>* list : {&w.loops, &w.conditions}) {
      for (const Expr& c : *list) all = Both(all, HoldsAt(c, v));
    }
    return all;
  }

  Trend HoldsAt(const Expr& condition, const Var& v) {
    if (!UsesVar(condition, v.get())) return Trend::kNone;
    const auto* b = As<Binary>(condition);
    if (b && b->op == BinaryOp::kAnd) return Both(HoldsAt(b->lhs, v), HoldsAt(b->rhs, v));
    const bool less = b && (b->op == BinaryOp::kLt || b->op == BinaryOp::kLe);
    if (!less || !b->lhs->dtype.IsIndex()) return Trend::kUnknown;
    return Both(TrendOf(b->rhs, v, &analyzer_), Turned(TrendOf(b->lhs, v, &analyzer_)));
  }

  // Whether the conditions that mention the loop hold at this iteration of it.
  bool RunsAt(const Witness& w, const Var& v, const Expr& place) {
    for (const std::vector<Expr>* list : {&w.loops, &w.conditions}) {
      for (const Expr& c : *list) {
        if (!UsesVar(c, v.get())) continue;
        if (AsInt(analyzer_.Simplify(Substitute(c, VarMap{{v.get(), place}}))) != 1) return false;
      }
    }
    return true;
  }

  bool IsOfNumbers(const Expr& e) const {
    bool known = IsMadeOf(e, numbers_);
    PreOrder(e, [&](const NodeRef& n) {
      known &= !IsA<Call>(n) && !As<ExprNode>(n)->dtype.IsFloat();
      return known;
    });
    return known;
  }

  // Of numbers and these variables.
  static bool IsMadeOf(const Expr& e, const std::unordered_set<const VarNode*>& vars) {
    bool known = true;
    PreOrder(e, [&](const NodeRef& n) {
      const auto* call = As<Call>(n);
      const bool fine = IsA<IntConst>(n) || IsA<FloatConst>(n) || IsA<Binary>(n) || IsA<Unary>(n) ||
                        IsA<Select>(n) || IsA<CastExpr>(n) ||
                        (call && Info(call->intrinsic).purity == Purity::kPure) ||
                        (IsA<VarNode>(n) && vars.count(static_cast<const VarNode*>(n.get())));
      known &= fine && !As<ExprNode>(n)->dtype.IsVector() && !As<ExprNode>(n)->dtype.IsHandle();
      return known;
    });
    return known;
  }

  // ---- The verdict ----

  // That a comparison holds wherever the path leads: 0 <= e at the least e, e < extent at the most.
  void Judge(const Ref<const Binary>& holds, const std::string& what) override {
    if (--budget_ < 0 || !errors_.empty()) return;
    const std::optional<Witness> first = At(*holds, Otherwise::kFirst);
    std::optional<Requirement> every;  // where a few witnesses do not tell
    if (!first || first->unsure || first->between) {
      every = Every(holds, what);
      if (!every || IsCertain(*every)) return;
    }
    if (!first) return Ask(std::move(*every));
    JudgeWitness(holds->op, *first, what);
    for (Otherwise otherwise : {Otherwise::kLast, Otherwise::kWraps}) {
      if (!first->unsure) break;
      if (std::optional<Witness> w = At(*holds, otherwise)) JudgeWitness(holds->op, *w, what);
    }
    if (first->between && errors_.empty()) Ask(std::move(*every));
  }

  // The comparison at every iteration of the loops that have a say in it; nothing where data does.
  std::optional<Requirement> Every(const Ref<const Binary>& holds, const std::string& what) {
    Expr left = holds->lhs, right = holds->rhs;
    std::vector<Expr> given;
    std::vector<Requirement::Loop> every;  // innermost first
    auto all = [&](const std::function<void(Expr&)>& f) {
      f(left), f(right);
      for (Expr& e : given) f(e);
      for (Requirement::Loop& l : every) f(l.min), f(l.end);
    };
    for (auto step = path_.rbegin(); step != path_.rend(); ++step) {
      bool used = false;
      switch (step->kind) {
        case Step::Kind::kCondition:
          if (!step->value) return std::nullopt;
          given.push_back(step->value);
          break;
        case Step::Kind::kValue:
          all([&](Expr& e) { e = Substitute(e, VarMap{{step->var.get(), step->value}}); });
          break;
        case Step::Kind::kLoop:
          all([&](Expr& e) { used |= UsesVar(e, step->var.get()); });
          if (used) {
            every.push_back({step->var, step->min, step->min + step->extent});
          } else {
            given.push_back(Lt(IndexConst(0), step->extent));
          }
          break;
      }
    }
    std::reverse(every.begin(), every.end());
    auto numbers = numbers_;
    for (const Requirement::Loop& l : every) numbers.insert(l.var.get());
    bool known = true;
    all([&](Expr& e) { known &= IsMadeOf(e, numbers); });
    if (!known) return std::nullopt;
    for (Requirement::Loop& l : every) {
      l.min = analyzer_.Simplify(l.min), l.end = analyzer_.Simplify(l.end);
      analyzer_.Bind(l.var, l.min, analyzer_.Simplify(l.end - l.min));
    }
    left = analyzer_.Simplify(left), right = analyzer_.Simplify(right);
    for (Expr& e : given) e = analyzer_.Simplify(e);
    Requirement r{Cast<Binary>(Binary::Make(holds->op, left, right)), nullptr, what, {}};
    for (; !every.empty(); every.pop_back()) {  // those that have a say
      const Requirement::Loop& l = every.back();
      bool used = false;
      all([&](Expr& e) { used |= UsesVar(e, l.var.get()); });
      for (const Requirement::Loop& inner : r.every) {
        used |= UsesVar(inner.min, l.var.get()) || UsesVar(inner.end, l.var.get());
      }
      if (used) r.every.insert(r.every.begin(), l);
      if (!used) given.push_back(analyzer_.Simplify(Lt(l.min, l.end)));
    }
    for (const Expr& c : given) {
      if (AsInt(c) != 1) r.when = r.when ? And(r.when, c) : c;
    }
    return r;
  }

  bool IsCertain(const Requirement& r) {
    if (r.when && AsInt(r.when) == 0) return true;
    std::vector<size_t> tokens;
    if (r.when) tokens.push_back(analyzer_.Assume(r.when));
    for (const Requirement::Loop& l : r.every) {
      const Expr runs = analyzer_.Simplify(Lt(l.min, l.end));
      if (!AsInt(runs)) tokens.push_back(analyzer_.Assume(runs));
    }
    const Expr &left = r.holds->lhs, &right = r.holds->rhs;
    bool certain = IsRest(r.holds->op, left, right) || analyzer_.CanProve(Expr(r.holds));
    if (!certain && r.holds->op == BinaryOp::kLe && IsZero(left)) certain = IsDistance(right);
    for (; !tokens.empty(); tokens.pop_back()) analyzer_.Retract(tokens.back());
    return certain;
  }

  // Whether it is not negative in the way of |x| and max(x, -x).
  bool IsDistance(const Expr& e) {
    const auto* call = As<Call>(e);
    if (call && call->intrinsic == Intrinsic::kAbs) return true;
    const auto* b = As<Binary>(e);
    if (!b || b->op != BinaryOp::kMax) return false;
    const size_t token = analyzer_.Assume(Lt(b->lhs, IndexConst(0)));
    const bool other = analyzer_.CanProve(Le(IndexConst(0), b->rhs));
    analyzer_.Retract(token);
    return other;
  }

  // Of a few iterations with known numbers here; of others at the call.
  void Ask(Requirement r) {
    constexpr int64_t kFew = 4096;
    int64_t count = 1;
    for (const Requirement::Loop& l : r.every) {
      const std::optional<int64_t> min = AsInt(l.min), end = AsInt(l.end);
      if (!min || !end || *end - *min > kFew) return Add(std::move(r));
      count *= std::max<int64_t>(*end - *min, 0);
      if (count > kFew) return Add(std::move(r));
    }
    for (int64_t k = 0; k < count; ++k) {
      VarMap put;
      int64_t rest = k;
      for (size_t i = r.every.size(); i-- > 0;) {
        const int64_t min = *AsInt(r.every[i].min), extent = *AsInt(r.every[i].end) - min;
        put[r.every[i].var.get()] = IndexConst(min + rest % extent);
        rest /= extent;
      }
      const Expr when = r.when ? analyzer_.Simplify(Substitute(r.when, put)) : BoolConst(true);
      const Expr left = analyzer_.Simplify(Substitute(r.holds->lhs, put));
      const Expr right = analyzer_.Simplify(Substitute(r.holds->rhs, put));
      if (AsInt(when) == 0) continue;
      const Expr holds = analyzer_.Simplify(Binary::Make(r.holds->op, left, right));
      if (AsInt(holds) == 1) continue;
      if (AsInt(holds) != 0 || AsInt(when) != 1) return Add(std::move(r));
      return Fail(r.holds->op, left, right, r.what);
    }
  }

  void JudgeWitness(BinaryOp op, const Witness& w, const std::string& what) {
    std::vector<size_t> tokens;
    Expr when;
    bool sure = true;  // given that the loops run
    bool never = false;
    auto assume = [&](const Expr& given, bool is_loop) {
      const Expr c = analyzer_.Simplify(given);
      if (AsInt(c)) never |= *AsInt(c) == 0;
      if (AsInt(c) || analyzer_.CanProve(c)) return;
      sure &= is_loop;
      when = when ? And(when, c) : c;
      tokens.push_back(analyzer_.Assume(c));
    };
    for (const Expr& c : w.loops) assume(c, true);
    for (const Expr& c : w.conditions) assume(c, false);
    if (!never) {
      const Expr left = analyzer_.Simplify(w.left), right = analyzer_.Simplify(w.right);
      const Expr holds = Binary::Make(op, left, right);
      if (!IsRest(op, left, right) && !analyzer_.CanProve(holds)) {
        if (sure && analyzer_.CanProve(Not(holds))) {
          Fail(op, left, right, what);
        } else if (!w.between) {
          Add({Cast<Binary>(holds), when, what, {}});
        }
      }
    }
    for (; !tokens.empty(); tokens.pop_back()) analyzer_.Retract(tokens.back());
  }

  // Whether the comparison is x % d < extent with 1 <= d <= extent.
  bool IsRest(BinaryOp op, const Expr& left, const Expr& right) {
    const auto* mod = As<Binary>(left);
    return op == BinaryOp::kLt && mod && mod->op == BinaryOp::kMod &&
           analyzer_.CanProve(Le(IndexConst(1), mod->rhs)) &&
           analyzer_.CanProve(Le(mod->rhs, right));
  }

  void Add(Requirement r) {
    if (found_.size() >= kMaxRequirements) return;
    const std::string text = r.ToString();
    if (known_.insert(text).second) found_.push_back(std::move(r));
  }

  void Fail(BinaryOp op, const Expr& left, const Expr& right, const std::string& what) {
    std::string reason;
    if (op == BinaryOp::kNe) {
      reason = fmt::format("{}: it divides by zero", what);
    } else if (op == BinaryOp::kLe) {
      reason = fmt::format("{}: the index takes the value {}", what, ToString(right));
    } else {
      reason = fmt::format("{}: the index takes the value {}, but the dim has {} elements", what,
                           ToString(left), ToString(right));
    }
    errors_.push_back(MakeError(fmt::format("function '{}': {}", func_.name, reason)));
  }

  Analyzer analyzer_;
  std::unordered_set<const VarNode*> numbers_;  // known at a call
  std::vector<Requirement> found_;
  std::set<std::string> known_;
};

}  // namespace

Expected<std::vector<Requirement>> RequirementsOf(const PrimFunc& func, const Module& module) {
  return Finder(func, module).Find();
}

Expected<Func> WithRequirements(const Func& func, const Module& module) {
  if (func->attrs.Has(kRequiresAttr)) return func;
  TN_ASSIGN_OR_RETURN(const std::vector<Requirement> needs, RequirementsOf(*func, module));
  if (needs.empty()) return func;
  std::vector<std::string> texts;
  for (const Requirement& r : needs) texts.push_back(r.ToString());
  PrimFunc fields(*func);
  fields.attrs.Set(kRequiresAttr, texts);
  return PrimFunc::Make(std::move(fields));
}

}  // namespace tenon

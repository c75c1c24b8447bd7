// The workings of Analyzer, shared by the files of this folder: facts.cc (what is known), bounds.cc
// (ranges and divisibility), prove.cc (inequalities), simplify.cc (the driver) and the rules of
// sums.cc, div_mod.cc, compare.cc, logic.cc, vectors.cc and fold.cc.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "arith/analyzer.h"
#include "arith/expr_ids.h"
#include "arith/linear.h"

namespace tenon {

/// What is known of one variable. `min` and `max` are symbolic and may be null.
struct VarFacts {
  Interval range;
  ModularSet modular;
  Expr min, max;
  Expr value;     // null: not defined by an equation
  int order = 0;  // bindings come outermost first; the innermost is eliminated first
};

/// An assumed inequality: sum <= bound, where the sum has no constant and its coefficients no
/// common divisor.
struct Inequality {
  Linear sum;
  int64_t bound;
};

/// What a comparison says: a sum without a constant lies in a range, or (`excluded`) outside it.
struct SumRange {
  Linear sum;
  Interval range;
  bool excluded = false;
};

/// A bool scalar known to be true.
struct KnownTrue {
  Expr condition;
  ExprIds::Id id, negation;
};

/// What was found of expressions under certain facts, by their numbers: equal expressions are asked
/// about once. Within a proof less is tried, so what was found there serves what is asked outside
/// only where it is the same node; others may hope for more.
class Results {
 public:
  template <class T>
  struct Answer {
    T value{};
    const ExprNode* asked = nullptr;  // null: nobody did
    int depth = 0;                    // of proofs around it
    bool Serves(const Expr& e, int at_depth) const {
      return asked && (depth <= at_depth || asked == e.get());
    }
    void Set(const Expr& e, int at_depth, T found) {
      *this = {std::move(found), e.get(), at_depth};
    }
  };
  struct Of {
    Answer<Expr> simplified;
    Answer<const Linear*> linear;
    Answer<Interval> bounds;
    Answer<Interval> product;  // of its factors' bounds
    Answer<ModularSet> modular;
  };

  /// They stay where they are until Clear.
  Of& At(ExprIds::Id id);
  const Linear& Keep(Linear sum);
  /// Memory is kept for what comes next.
  void Clear();

 private:
  // Of an expression's answers, by its number; it is none where the age is not the table's.
  struct Place {
    uint32_t age = 0, index = 0;
  };
  std::vector<Place> places_;  // by number
  uint32_t age_ = 1;
  std::deque<Of> of_;        // the first `used_` of them
  std::deque<Linear> sums_;  // the first `sums_used_`
  size_t used_ = 0, sums_used_ = 0;
};

struct Analyzer::Impl {
  // ---- simplify.cc ----
  Expr Simplify(const Expr& e);
  /// One round of rules at the root over simplified children.
  Expr RewriteRoot(const Expr& e);
  Expr RewriteBinary(const Expr& e);
  Expr RewriteSelect(const Expr& e);
  Expr RewriteCast(const Expr& e);
  Expr RewriteLoad(const Expr& e);
  Expr RewriteCall(const Expr& e);
  /// `e` with simplified children, `e` itself when they did not change.
  Expr Children(const Expr& e);
  /// True for scalar index sums, differences, products and negations: what LinearOf takes apart.
  static bool IsArithmetic(const Expr& e);

  // ---- sums.cc ----
  /// The canonical sum equal to a scalar index expression, with simplified atoms.
  const Linear& LinearOf(const Expr& e);
  Linear ComputeLinear(const Expr& e);
  bool Gather(const Expr& e, int64_t scale, Linear* sum);
  /// (x / d) * d + x % d → x and its relatives.
  /// True when something changed.
  bool Recombine(Linear* sum);
  std::optional<Linear> RecombineOnce(const Linear& sum);
  bool MayHoldQuotient(const Linear& sum, const Binary& mod);
  std::optional<Linear> RecombineProduct(const Linear& sum, const Term& t);
  std::optional<Linear> RecombineWhole(const Linear& sum, const Term& t, const Binary& mod,
                                       const Linear& others);
  std::optional<Linear> RecombineMod(const Linear& sum, const Term& t, const Binary& mod);
  std::optional<Linear> RecombineDiv(const Linear& sum, const Term& t, const Binary& div);
  Expr SimplifySum(const Expr& e);
  std::optional<Linear> Difference(const Expr& a, const Expr& b);

  // ---- div_mod.cc: floor division of index scalars ----
  Expr SimplifyDivMod(BinaryOp op, const Expr& lhs, const Expr& rhs);
  Expr DivModByConst(BinaryOp op, const Linear& n, int64_t d);
  Expr DivModByExpr(BinaryOp op, const Linear& n, const Expr& d);
  // Null: the rule does not apply.
  Expr DivModGrouped(BinaryOp op, const Linear& rest, int64_t d, int64_t g);
  Expr DivModAligned(BinaryOp op, const Linear& rest, int64_t d);
  Expr DivNested(const Linear& rest, int64_t d);
  Expr DivNestedByExpr(const Linear& n, const Expr& d);
  void DropInnerMod(Linear* sum, int64_t d);
  std::optional<int64_t> ScaleBetween(const Linear& n, const Linear& d);

  // ---- compare.cc ----
  Expr SimplifyComparison(BinaryOp op, const Expr& lhs, const Expr& rhs);
  Expr SimplifyMinMax(BinaryOp op, const Expr& lhs, const Expr& rhs);
  Expr CompareSums(BinaryOp op, const Linear& difference);  // difference op 0
  Expr AtMost(Linear sum, int64_t bound);
  Expr AtMostQuotient(const Linear& sum, int64_t bound);
  Expr EqualTo(Linear sum, int64_t value, bool equal);
  /// min(a, b) is a (op kMin), max(a, b) is a (op kMax).
  bool Dominates(BinaryOp op, const Expr& a, const Expr& b);

  // ---- logic.cc ----
  Expr SimplifyLogic(BinaryOp op, const Expr& lhs, const Expr& rhs);
  Expr SimplifyNot(const Expr& value);
  std::optional<SumRange> AsRange(const Expr& condition);
  bool Implies(const Expr& a, const Expr& b);

  // ---- vectors.cc ----
  /// Rules for vectors of index: sums of ramps and broadcasts, division and modulo of ramps. Null:
  /// no rule.
  Expr SimplifyVector(BinaryOp op, const Expr& lhs, const Expr& rhs);
  Expr DivModRamp(BinaryOp op, const Expr& base, const Expr& stride, const Expr& d, DType type);

  // ---- bounds.cc ----
  Interval Bounds(const Expr& e);
  Interval ComputeBounds(const Expr& e);
  Interval Bounds(const Linear& sum);
  Interval BoundsOfProduct(const Term& t);
  ModularSet ModularOf(const Expr& e);
  ModularSet ComputeModular(const Expr& e);
  ModularSet ModularOf(const Linear& sum);

  // ---- prove.cc ----
  /// True only if sum <= 0 for all values within the facts.
  bool ProveNonPositive(const Linear& sum);
  bool ProveStep(const Linear& sum, int facts_left);
  /// No step is left, to this proof or to all of this call.
  bool IsExhausted() const { return proof_steps <= 0 || proof_work <= 0; }
  bool ProveByFact(const Linear& sum, int facts_left);
  bool ProveByCases(const Linear& sum, int facts_left);
  bool ProveByQuotient(const Linear& sum, int facts_left);
  std::optional<Linear> BoundQuotient(const Linear& sum, const Term& quotient, const Linear& x,
                                      int64_t d);
  bool ProveByRemainder(const Linear& sum, int facts_left);
  bool ProveByElimination(const Linear& sum, int facts_left);
  bool ProveByFactor(const Linear& sum, int facts_left);
  bool ProveLe(const Expr& a, const Expr& b, int64_t slack = 0);  // a + slack <= b

  // ---- facts.cc ----
  void Bind(const Var& var, const Expr& min, const Expr& extent);
  VarFacts& FactsOf(const Var& var);
  const VarFacts* FindFacts(const VarNode* var) const;
  size_t Assume(const Expr& condition);
  void Retract(size_t token);
  void AssumeOne(const Expr& condition);
  void AssumeAtMost(Inequality fact);
  static bool Mentions(const Expr& e, const VarNode* var);
  std::optional<bool> Known(const Expr& condition);
  /// What holds under the current facts.
  Results& Layer() { return layers[marks.size()]; }
  void ForgetResults() { Layer().Clear(); }
  /// Between calls: gives memory back that a long life has gathered.
  void Trim();

  /// Saved state of a variable, put back by Retract.
  struct Undo {
    const VarNode* var;
    VarFacts facts;
  };
  struct Mark {
    size_t inequalities, known, undo;
  };
  ExprIds ids;
  std::unordered_map<const VarNode*, VarFacts> vars;
  std::vector<Var> keep_vars;
  std::deque<Inequality> inequalities;  // a proof from one of them may assume more
  std::vector<KnownTrue> known;
  std::vector<Undo> undo;
  std::vector<Mark> marks;
  std::deque<Results> layers = std::deque<Results>(1);  // those of all but `marks` + 1 wait for use
  int next_order = 1;
  int proof_steps = 0;    // left to the proof under way
  int proof_depth = 0;    // proofs within which that one is wanted, for simplifying their bounds
  int proof_work = 0;     // steps left to all proofs of this call
  int select_depth = 0;   // conditions assumed around the expression being simplified
  int select_budget = 0;  // how many more may be assumed in this call
};

// ---- fold.cc: constants ----
/// The value of an operation on constants (scalars or broadcasts of them), by the semantics of
/// expr.h; null where an operand is no constant or an index result would overflow.
Expr FoldBinary(BinaryOp op, const Expr& lhs, const Expr& rhs);
Expr FoldUnary(UnaryOp op, const Expr& value);
Expr FoldCast(DType type, const Expr& value);
Expr FoldCall(const Call& call);
/// Neutral and absorbing elements that hold in every type: x * 1, x - 0, true && x, …; null: none
/// applies.
Expr FoldIdentity(BinaryOp op, const Expr& lhs, const Expr& rhs);

}  // namespace tenon

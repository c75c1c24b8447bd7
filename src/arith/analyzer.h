// What is known about integer expressions: ranges, divisibility, simplification, proofs.
//
// All of it concerns `index` and integer scalars (index arithmetic does not overflow, so Z
// applies); floats and other expressions pass through with their children simplified. Nothing here
// sees statements.
#pragma once

#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/expr.h"

namespace tenon {

/// A closed interval of int64; the extremes stand for -infinity and +infinity.
struct Interval {
  static constexpr int64_t kNegInf = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kPosInf = std::numeric_limits<int64_t>::max();
  int64_t min = kNegInf;
  int64_t max = kPosInf;
  bool IsPoint() const { return min == max; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// Numbers of the form coefficient * k + base with 0 <= base < coefficient; coefficient 0: the
/// constant base.
struct ModularSet {
  int64_t coefficient = 1;
  int64_t base = 0;
};

/// e = sum of coefficients[i] * vars[i] + base, where base mentions none of the vars.
struct AffineForm {
  std::vector<Expr> coefficients;
  Expr base;
};

/// A symbolic closed interval; a null side is unbounded.
struct ExprInterval {
  Expr min, max;
};
using IntervalMap = std::unordered_map<const VarNode*, ExprInterval>;

/// Facts about variables in scope, and questions answered from them. Not thread-safe; cheap to
/// make.
class Analyzer {
 public:
  Analyzer();
  ~Analyzer();
  Analyzer(const Analyzer&) = delete;
  Analyzer& operator=(const Analyzer&) = delete;

  /// var is in [min, min + extent). Symbolic bounds are used through their own ranges. Binding
  /// again replaces.
  void Bind(const Var& var, const Expr& min, const Expr& extent);
  void BindInterval(const Var& var, Interval range);
  void BindModular(const Var& var, ModularSet set);
  /// var equals value: Simplify puts the value in its place.
  void BindValue(const Var& var, const Expr& value);
  /// Holds `condition` true until the returned token is given back to Retract (last in, first out).
  size_t Assume(const Expr& condition);
  void Retract(size_t token);

  /// An equal expression, usually shorter: canonical sums of products, div/mod by constants split
  /// off and cancelled with the known ranges ((io * 4 + ii) / 4 → io for ii in [0, 4)),
  /// min/max/select/compare decided where provable, constants folded (floats too, as IEEE).
  /// Idempotent; returns the same node when nothing changes.
  Expr Simplify(const Expr& e);
  /// True only if the bool expression holds for every value of its variables within the known
  /// facts.
  bool CanProve(const Expr& condition);
  bool CanProveEqual(const Expr& a, const Expr& b);

  Interval ConstBounds(const Expr& e);
  ModularSet Modular(const Expr& e);

  struct Impl;

 private:
  Impl* impl_;
};

/// Simplification with no facts.
Expr Simplify(const Expr& e);

/// Coefficients of `vars` in `e`, or nullopt when it is not affine in them (div/mod/min of a var
/// are not).
std::optional<AffineForm> DetectAffine(const Expr& e, const std::vector<Var>& vars);

/// The tightest symbolic interval found that contains e while each var of `domain` ranges over its
/// own interval; other variables stay symbolic.
ExprInterval EvalInterval(const Expr& e, const IntervalMap& domain, Analyzer* analyzer);

/// Extents of a buffer's storage dimensions: the shape itself without a layout; else 1 + the
/// maximum of each storage expression over the logical shape, or the layout's own extents.
std::vector<Expr> StorageExtents(const std::vector<Expr>& shape,
                                 const Ref<const struct LayoutNode>& layout);

}  // namespace tenon

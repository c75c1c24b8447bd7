// From scalar expressions to vectors of lanes.
#pragma once

#include "ir/visit.h"

namespace tenon {

/// A scalar broadcast to `lanes`; a vector as it is.
Expr ToLanes(const Expr& e, int32_t lanes);

/// Evaluates scalar expressions for all lanes at once: variables in `lane_values` are replaced by
/// their vectors; an expression that depends on none of them stays a scalar. Index arithmetic that
/// is affine becomes a Ramp, so that neighbouring lanes are seen to be neighbours. What has no
/// vector form (a call with an effect, say) sets failed().
class Widener : public ExprFunctor<Expr> {
 public:
  explicit Widener(int32_t lanes) : lanes_(lanes) {}
  void Set(const Var& var, Expr vector) { lane_values_[var.get()] = std::move(vector); }

  /// Scalar or `lanes` lanes.
  Expr Visit(const Expr& e) override;
  /// Always `lanes` lanes.
  Expr VisitLanes(const Expr& e) { return ToLanes(Visit(e), lanes_); }
  /// True when it depends on a lane.
  bool Varies(const Expr& e) const;
  /// Empty, or what could not be made a vector.
  const std::string& failure() const { return failure_; }

 protected:
  Expr VisitDefault(const Expr& e) override { return Fail("a vector inside a vectorized loop", e); }
  Expr VisitIntConst(const IntConst&, const Expr& e) override { return e; }
  Expr VisitFloatConst(const FloatConst&, const Expr& e) override { return e; }
  Expr VisitVar(const VarNode& node, const Expr& e) override;
  Expr VisitUnary(const Unary& node, const Expr& e) override;
  Expr VisitBinary(const Binary& node, const Expr& e) override;
  Expr VisitSelect(const Select& node, const Expr& e) override;
  Expr VisitCast(const CastExpr& node, const Expr& e) override;
  Expr VisitLoad(const Load& node, const Expr& e) override;
  Expr VisitCall(const Call& node, const Expr& e) override;

  Expr Fail(const std::string& what, const Expr& e);

  /// How much of what several share is known as a vector; forgets what came later. A value is good
  /// wherever fewer lanes are active.
  size_t Known() const { return order_.size(); }
  void Forget(size_t mark);

  const int32_t lanes_;
  std::string failure_;

 private:
  VarMap lane_values_;
  std::unordered_map<const Node*, Expr> done_;
  std::vector<Expr> order_;
};

}  // namespace tenon

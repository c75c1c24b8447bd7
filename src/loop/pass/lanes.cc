#include "loop/pass/lanes.h"

namespace tenon {

Expr ToLanes(const Expr& e, int32_t lanes) {
  return e->dtype.IsScalar() && lanes > 1 ? Broadcast::Make(e, lanes) : e;
}

namespace {

// A ramp, seeing a scalar as one of stride 0.
struct RampForm {
  Expr base, stride;
};

std::optional<RampForm> AsRamp(const Expr& e) {
  if (const auto* ramp = As<Ramp>(e)) return RampForm{ramp->base, ramp->stride};
  if (e->dtype.IsScalar()) return RampForm{e, IndexConst(0)};
  return std::nullopt;
}

// lhs op rhs as a ramp, or null; at least one of them is a vector of index.
Expr CombineRamps(BinaryOp op, const Expr& lhs, const Expr& rhs, int32_t lanes) {
  auto a = AsRamp(lhs), b = AsRamp(rhs);
  if (!a || !b) return nullptr;
  switch (op) {
    case BinaryOp::kAdd: return Ramp::Make(a->base + b->base, a->stride + b->stride, lanes);
    case BinaryOp::kSub: return Ramp::Make(a->base - b->base, a->stride - b->stride, lanes);
    case BinaryOp::kMul:
      if (rhs->dtype.IsScalar()) return Ramp::Make(a->base * rhs, a->stride * rhs, lanes);
      if (lhs->dtype.IsScalar()) return Ramp::Make(b->base * lhs, b->stride * lhs, lanes);
      return nullptr;
    default: return nullptr;  // the other operators do not keep ramps
  }
}

}  // namespace

Expr Widener::Fail(const std::string& what, const Expr& e) {
  if (failure_.empty()) failure_ = what;
  return e;
}

bool Widener::Varies(const Expr& e) const {
  bool varies = false;
  PreOrder(e, [&](const NodeRef& n) {
    const auto* var = As<VarNode>(n);
    varies |= var != nullptr && lane_values_.count(var) != 0;
    return !varies;
  });
  return varies;
}

Expr Widener::Visit(const Expr& e) {
  if (e->dtype.IsVector()) return VisitDefault(e);
  if (e->IsUnique() || IsA<VarNode>(e)) return ExprFunctor<Expr>::Visit(e);
  if (auto it = done_.find(e.get()); it != done_.end()) return it->second;
  Expr out = ExprFunctor<Expr>::Visit(e);
  done_[e.get()] = out;
  order_.push_back(e);
  return out;
}

void Widener::Forget(size_t mark) {
  for (; order_.size() > mark; order_.pop_back()) done_.erase(order_.back().get());
}

Expr Widener::VisitVar(const VarNode& node, const Expr& e) {
  auto it = lane_values_.find(&node);
  return it == lane_values_.end() ? e : it->second;
}

Expr Widener::VisitUnary(const Unary& node, const Expr& e) {
  Expr value = Visit(node.value);
  if (value == node.value) return e;
  if (const auto* ramp = As<Ramp>(value); ramp && node.op == UnaryOp::kNeg) {
    Expr zero = IndexConst(0);
    return Ramp::Make(zero - ramp->base, zero - ramp->stride, lanes_);
  }
  return Unary::Make(node.op, value);
}

Expr Widener::VisitBinary(const Binary& node, const Expr& e) {
  Expr lhs = Visit(node.lhs), rhs = Visit(node.rhs);
  if (lhs == node.lhs && rhs == node.rhs) return e;
  bool is_vector = lhs->dtype.IsVector() || rhs->dtype.IsVector();
  if (!is_vector) return Binary::Make(node.op, lhs, rhs);
  if (lhs->dtype.IsIndex()) {
    if (Expr ramp = CombineRamps(node.op, lhs, rhs, lanes_)) return ramp;
  }
  return Binary::Make(node.op, ToLanes(lhs, lanes_), ToLanes(rhs, lanes_));
}

Expr Widener::VisitSelect(const Select& node, const Expr& e) {
  Expr condition = Visit(node.condition), on_true = Visit(node.on_true),
       on_false = Visit(node.on_false);
  bool is_vector =
      condition->dtype.IsVector() || on_true->dtype.IsVector() || on_false->dtype.IsVector();
  if (!is_vector) {
    bool same = condition == node.condition && on_true == node.on_true && on_false == node.on_false;
    return same ? e : Select::Make(condition, on_true, on_false);
  }
  return Select::Make(condition, ToLanes(on_true, lanes_), ToLanes(on_false, lanes_));
}

Expr Widener::VisitCast(const CastExpr& node, const Expr& e) {
  Expr value = Visit(node.value);
  return value == node.value ? e : CastExpr::Make(node.dtype, value);
}

Expr Widener::VisitLoad(const Load& node, const Expr& e) {
  std::vector<Expr> indices;
  bool changed = false, is_vector = false;
  for (const Expr& i : node.indices) {
    indices.push_back(Visit(i));
    changed |= indices.back() != i;
    is_vector |= indices.back()->dtype.IsVector();
  }
  if (!changed && !(node.mask && Varies(node.mask))) return e;
  Expr mask = node.mask ? Visit(node.mask) : nullptr;
  if (!is_vector && mask && mask->dtype.IsVector()) {
    // One place, wanted by some lanes: read it in those.
    TN_CHECK(!indices.empty());
    indices.back() = ToLanes(indices.back(), lanes_);
    is_vector = true;
  }
  if (is_vector && mask) mask = ToLanes(mask, lanes_);
  return Load::Make(node.buffer, std::move(indices), std::move(mask));
}

Expr Widener::VisitCall(const Call& node, const Expr& e) {
  const IntrinsicInfo& info = Info(node.intrinsic);
  std::vector<Expr> args;
  bool changed = false, is_vector = false;
  for (const Expr& a : node.args) {
    args.push_back(Visit(a));
    changed |= args.back() != a;
    is_vector |= args.back()->dtype.IsVector();
  }
  if (!changed) return e;
  if (!is_vector) return Call::Make(node.intrinsic, std::move(args), node.dtype);
  bool lane_wise = info.purity == Purity::kPure && (info.type != IntrinsicType::kGiven ||
                                                    node.intrinsic == Intrinsic::kReinterpret);
  if (!lane_wise) return Fail(std::string(info.text) + " depends on the lane", e);
  for (Expr& a : args) a = ToLanes(a, lanes_);
  return Call::Make(node.intrinsic, std::move(args), node.dtype.WithLanes(lanes_));
}

}  // namespace tenon

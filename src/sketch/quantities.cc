#include "sketch/quantities.h"

#include <algorithm>

namespace tenon::sketch {

size_t Quantities::Make(Op op, int64_t a, int64_t b) {
  if (op != Op::kConstant && op != Op::kKnob) {
    const auto x = static_cast<size_t>(a), y = static_cast<size_t>(b);
    const bool known = IsConstant(x) && IsConstant(y);
    if (op == Op::kMul && IsConstant(x) && values_[x] == 1) return y;
    if ((op == Op::kMul || op == Op::kCeilDiv) && IsConstant(y) && values_[y] == 1) return x;
    if (known) return Constant(Value({op, a, b}, point_));
  }
  const auto [at, fresh] = places_.emplace(std::tuple(op, a, b), quantities_.size());
  if (fresh) {
    quantities_.push_back({op, a, b});
    values_.push_back(Value(quantities_.back(), point_));
  }
  return at->second;
}

int64_t Quantities::Value(const Quantity& q, const ops::Point& point) const {
  if (q.op == Op::kConstant) return q.a;
  if (q.op == Op::kKnob) return point[static_cast<size_t>(q.a)].value;
  const int64_t a = values_[static_cast<size_t>(q.a)], b = values_[static_cast<size_t>(q.b)];
  switch (q.op) {
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMul: return a * b;
    case Op::kCeilDiv: return (a + b - 1) / std::max<int64_t>(b, 1);
    case Op::kMin: return std::min(a, b);
    case Op::kMax: return std::max(a, b);
    case Op::kConstant:
    case Op::kKnob: break;
  }
  return 0;
}

void Quantities::MoveTo(const ops::Point& point) {
  for (size_t i = 0; i < quantities_.size(); ++i) values_[i] = Value(quantities_[i], point);
}

}  // namespace tenon::sketch

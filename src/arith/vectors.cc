// Vectors of index: ramps and broadcasts stay ramps and broadcasts, so that an access through any
// layout shows whether its lanes are contiguous.
#include "arith/analyzer_impl.h"
#include "arith/int_math.h"
#include "arith/interval.h"

namespace tenon {

namespace {

// base + stride * lane, plus a vector that is neither (null: none).
struct Lanes {
  Expr base, stride, rest;
};

Expr Make(BinaryOp op, const Expr& a, const Expr& b) { return Binary::Make(op, a, b); }

Lanes TakeApart(const Expr& e) {
  if (const auto* n = As<Ramp>(e)) return {n->base, n->stride, nullptr};
  if (const auto* n = As<Broadcast>(e)) return {n->value, IndexConst(0), nullptr};
  const auto* n = As<Binary>(e);
  if (n && n->op == BinaryOp::kAdd && (IsA<Ramp>(n->rhs) || IsA<Broadcast>(n->rhs))) {
    Lanes out = TakeApart(n->rhs);
    out.rest = n->lhs;
    return out;
  }
  return {IndexConst(0), IndexConst(0), e};
}

Expr PutTogether(const Lanes& lanes, DType type) {
  Expr regular = IsZero(lanes.stride)
                     ? Broadcast::Make(lanes.base, type.lanes, type.scalable)
                     : Ramp::Make(lanes.base, lanes.stride, type.lanes, type.scalable);
  if (!lanes.rest) return regular;
  return IsZero(regular) ? lanes.rest : Make(BinaryOp::kAdd, lanes.rest, regular);
}

}  // namespace

Expr Analyzer::Impl::SimplifyVector(BinaryOp op, const Expr& lhs, const Expr& rhs) {
  Lanes a = TakeApart(lhs), b = TakeApart(rhs);
  auto simple = [&](BinaryOp o, const Expr& x, const Expr& y) { return Simplify(Make(o, x, y)); };
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: {
      if (a.rest && b.rest) {
        if (op == BinaryOp::kAdd || !ids.Same(a.rest, b.rest)) {
          // Move the regular part outward, so that it can meet another.
          if (IsZero(a.base) && IsZero(a.stride) && IsZero(b.base) && IsZero(b.stride))
            return nullptr;
          a.rest = Make(op, a.rest, b.rest);
        } else {
          a.rest = nullptr;
        }
      } else if (b.rest) {
        if (op == BinaryOp::kSub) return nullptr;
        a.rest = b.rest;
      }
      a.base = simple(op, a.base, b.base);
      a.stride = simple(op, a.stride, b.stride);
      return PutTogether(a, lhs->dtype);
    }
    case BinaryOp::kMul: {
      if (a.rest || b.rest) return nullptr;
      if (!IsZero(b.stride)) std::swap(a, b);
      if (!IsZero(b.stride)) return nullptr;
      return PutTogether({simple(op, a.base, b.base), simple(op, a.stride, b.base), nullptr},
                         lhs->dtype);
    }
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
      if (a.rest || b.rest || !IsZero(b.stride)) return nullptr;
      return DivModRamp(op, a.base, a.stride, b.base, lhs->dtype);
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe: {
      bool uniform = !a.rest && !b.rest && IsZero(a.stride) && IsZero(b.stride);
      return uniform ? Broadcast::Make(simple(op, a.base, b.base), lhs->dtype.lanes,
                                       lhs->dtype.scalable)
                     : nullptr;
    }
    default: return nullptr;  // NOLINT: no other operator on index
  }
}

// (base + stride * lane) op d, d the same in every lane.
Expr Analyzer::Impl::DivModRamp(BinaryOp op, const Expr& base, const Expr& stride, const Expr& d,
                                DType type) {
  auto simple = [&](BinaryOp o, const Expr& x, const Expr& y) { return Simplify(Make(o, x, y)); };
  const bool is_div = op == BinaryOp::kDiv;
  if (IsZero(stride)) return Broadcast::Make(simple(op, base, d), type.lanes, type.scalable);
  auto s = AsInt(stride), c = AsInt(d);
  // The stride a multiple of the divisor: every lane has the remainder of the first.
  if (c && s && *c > 0 && *s % *c == 0) {
    if (!is_div) return Broadcast::Make(simple(op, base, d), type.lanes, type.scalable);
    return Ramp::Make(simple(op, base, d), IndexConst(*s / *c), type.lanes, type.scalable);
  }
  if (type.scalable) return nullptr;
  // All lanes within one period of the divisor: 0 <= base % d + stride * lane < d for the first and
  // the last lane.
  Expr remainder = simple(BinaryOp::kMod, base, d);
  Expr last =
      simple(BinaryOp::kAdd, remainder, Make(BinaryOp::kMul, stride, IndexConst(type.lanes - 1)));
  for (const Expr& lane : {remainder, last}) {
    if (!ProveLe(IndexConst(0), lane) || !ProveLe(lane, d, 1)) return nullptr;
  }
  if (!is_div) return Ramp::Make(remainder, stride, type.lanes);
  return Broadcast::Make(simple(op, base, d), type.lanes);
}

}  // namespace tenon

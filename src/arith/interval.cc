#include "arith/interval.h"

#include <algorithm>

#include "arith/int_math.h"

namespace tenon {

namespace {

constexpr int64_t kNegInf = Interval::kNegInf;
constexpr int64_t kPosInf = Interval::kPosInf;

bool IsInf(int64_t v) { return v == kNegInf || v == kPosInf; }

// Sums of bounds: of two lower or two upper ones, so opposite infinities do not meet.
int64_t AddBound(int64_t a, int64_t b) {
  if (IsInf(a)) return a;
  if (IsInf(b)) return b;
  return CheckedAdd(a, b).value_or(a < 0 ? kNegInf : kPosInf);
}

int64_t NegBound(int64_t a) {
  if (a == kNegInf) return kPosInf;
  if (a == kPosInf) return kNegInf;
  return -a;
}

int64_t MulBound(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  bool negative = (a < 0) != (b < 0);
  if (IsInf(a) || IsInf(b)) return negative ? kNegInf : kPosInf;
  return CheckedMul(a, b).value_or(negative ? kNegInf : kPosInf);
}

int64_t DivBound(int64_t a, int64_t b, bool floor) {
  if (IsInf(a)) return b > 0 ? a : NegBound(a);
  if (IsInf(b)) {
    if (a == 0) return 0;
    return floor && (a < 0) != (b < 0) ? -1 : 0;
  }
  return floor ? FloorDivInt(a, b) : a / b;
}

// Quotients over a divisor interval that does not contain zero: the extremes lie at the corners.
Interval DivCorners(Interval a, Interval b, bool floor) {
  int64_t c[] = {DivBound(a.min, b.min, floor), DivBound(a.min, b.max, floor),
                 DivBound(a.max, b.min, floor), DivBound(a.max, b.max, floor)};
  return {*std::min_element(c, c + 4), *std::max_element(c, c + 4)};
}

Interval Div(Interval a, Interval b, bool floor) {
  std::optional<Interval> out;
  auto join = [&](Interval part) { out = out ? Hull(*out, part) : part; };
  if (b.max > 0) join(DivCorners(a, {std::max<int64_t>(b.min, 1), b.max}, floor));
  if (b.min < 0) join(DivCorners(a, {b.min, std::min<int64_t>(b.max, -1)}, floor));
  if (!floor && b.min <= 0 && b.max >= 0) join(Point(0));
  return out.value_or(Point(0));
}

}  // namespace

Interval Point(int64_t value) {
  // The extremes stand for infinities; a constant that is one of them is known only to one side.
  if (value == kNegInf) return {kNegInf, kNegInf + 1};
  if (value == kPosInf) return {kPosInf - 1, kPosInf};
  return {value, value};
}

Interval TypeRange(DType type) {
  if (type.IsBool()) return {0, 1};
  if (!type.IsInt() || type.bits >= 64) return {};
  if (type.code == TypeCode::kUInt) return {0, (int64_t{1} << type.bits) - 1};
  return {-(int64_t{1} << (type.bits - 1)), (int64_t{1} << (type.bits - 1)) - 1};
}

Interval Add(Interval a, Interval b) { return {AddBound(a.min, b.min), AddBound(a.max, b.max)}; }
Interval Neg(Interval a) { return {NegBound(a.max), NegBound(a.min)}; }
Interval Sub(Interval a, Interval b) { return Add(a, Neg(b)); }

Interval Mul(Interval a, Interval b) {
  int64_t c[] = {MulBound(a.min, b.min), MulBound(a.min, b.max), MulBound(a.max, b.min),
                 MulBound(a.max, b.max)};
  return {*std::min_element(c, c + 4), *std::max_element(c, c + 4)};
}

Interval FloorDiv(Interval a, Interval b) { return Div(a, b, /*floor=*/true); }
Interval TruncDiv(Interval a, Interval b) { return Div(a, b, /*floor=*/false); }

Interval FloorMod(Interval a, Interval b) {
  // Within one period of a constant divisor the remainder is the value shifted.
  if (b.IsPoint() && b.min > 0 && !IsInf(a.min) && !IsInf(a.max)) {
    int64_t period = FloorDivInt(a.min, b.min);
    if (period == FloorDivInt(a.max, b.min)) {
      return {FloorModInt(a.min, b.min), FloorModInt(a.max, b.min)};
    }
  }
  if (a.min >= 0 && b.min > a.max && a.max != kPosInf) return a;
  Interval out{0, 0};
  if (b.max > 0) out.max = b.max == kPosInf ? kPosInf : b.max - 1;
  if (b.min < 0) out.min = b.min == kNegInf ? kNegInf : b.min + 1;
  // A dividend of the divisor's sign bounds the remainder as well.
  if (a.min >= 0 && b.min > 0) out.max = std::min(out.max, a.max);
  return out;
}

Interval TruncMod(Interval a, Interval b) {
  Interval magnitude = Max(b, Neg(b));
  int64_t limit = magnitude.max == kPosInf ? kPosInf : std::max<int64_t>(magnitude.max - 1, 0);
  Interval out{0, 0};
  if (a.max > 0) out.max = std::min(limit, a.max);
  if (a.min < 0) out.min = std::max(NegBound(limit), a.min);
  return out;
}

Interval Min(Interval a, Interval b) { return {std::min(a.min, b.min), std::min(a.max, b.max)}; }
Interval Max(Interval a, Interval b) { return {std::max(a.min, b.min), std::max(a.max, b.max)}; }
Interval Hull(Interval a, Interval b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }
Interval Intersect(Interval a, Interval b) {
  return {std::max(a.min, b.min), std::min(a.max, b.max)};
}
bool Contains(Interval outer, Interval inner) {
  return outer.min <= inner.min && inner.max <= outer.max;
}

}  // namespace tenon

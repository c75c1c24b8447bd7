#include "codegen/llvm/lane_distances.h"

#include <algorithm>
#include <cstdlib>

#include "arith/int_math.h"

namespace tenon::codegen {

namespace {

// Larger steps are far apart, whatever becomes of them.
constexpr int64_t kMostStep = int64_t{1} << 20;

std::optional<LaneDistances> OfAny(const Expr& index, Analyzer* facts);

std::optional<LaneDistances> OfSum(const Binary& n, Analyzer* facts) {
  std::optional<LaneDistances> a = OfAny(n.lhs, facts);
  const std::optional<LaneDistances> b = a ? OfAny(n.rhs, facts) : std::nullopt;
  if (!b) return std::nullopt;
  const int64_t sign = n.op == BinaryOp::kAdd ? 1 : -1;
  a->base = Binary::Make(n.op, a->base, b->base);
  for (size_t l = 0; l < a->distance.size(); ++l) a->distance[l] += sign * b->distance[l];
  return a;
}

// Times, divided by or modulo a constant.
std::optional<LaneDistances> OfScaled(const Binary& n, Analyzer* facts) {
  const bool swapped = n.op == BinaryOp::kMul && !AsInt(n.rhs);
  const std::optional<int64_t> by = AsInt(swapped ? n.lhs : n.rhs);
  if (!by || *by <= 0 || *by > kMostStep) return std::nullopt;
  std::optional<LaneDistances> a = OfAny(swapped ? n.rhs : n.lhs, facts);
  if (!a) return std::nullopt;
  if (n.op == BinaryOp::kMul) {
    a->base = a->base * IndexConst(*by);
    for (int64_t& d : a->distance) {
      if (std::abs(d) > kMostStep) return std::nullopt;
      d *= *by;
    }
    return a;
  }
  const ModularSet at = facts->Modular(a->base);
  if (at.coefficient % *by != 0) return std::nullopt;
  const int64_t rest = FloorModInt(at.base, *by);
  const bool divides = n.op == BinaryOp::kDiv;
  a->base = divides ? (a->base - IndexConst(rest)) / IndexConst(*by) : IndexConst(0);
  for (int64_t& d : a->distance)
    d = divides ? FloorDivInt(rest + d, *by) : FloorModInt(rest + d, *by);
  return a;
}

std::optional<LaneDistances> OfAny(const Expr& index, Analyzer* facts) {
  const auto lanes = static_cast<size_t>(index->dtype.lanes);
  if (const auto* ramp = As<Ramp>(index)) {
    const std::optional<int64_t> stride = AsInt(ramp->stride);
    if (!stride || std::abs(*stride) > kMostStep) return std::nullopt;
    LaneDistances out{ramp->base, std::vector<int64_t>(lanes)};
    for (size_t l = 0; l < lanes; ++l) out.distance[l] = *stride * static_cast<int64_t>(l);
    return out;
  }
  if (const auto* same = As<Broadcast>(index)) {
    return LaneDistances{same->value, std::vector<int64_t>(lanes)};
  }
  const auto* n = As<Binary>(index);
  if (!n) return std::nullopt;
  switch (n->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: return OfSum(*n, facts);
    case BinaryOp::kMul:
    case BinaryOp::kDiv:
    case BinaryOp::kMod: return OfScaled(*n, facts);
    default: return std::nullopt;
  }
}

}  // namespace

int64_t LaneDistances::Span() const {
  return 1 + *std::max_element(distance.begin(), distance.end());
}

bool LaneDistances::IsRow() const {
  const int64_t step = distance.size() > 1 ? distance[1] - distance[0] : 0;
  if (std::abs(step) > 1) return false;
  for (size_t l = 1; l < distance.size(); ++l) {
    if (distance[l] - distance[l - 1] != step) return false;
  }
  return true;
}

std::optional<LaneDistances> DistancesOf(const Expr& index, Analyzer* facts) {
  if (index->dtype.IsScalar() || index->dtype.scalable || index->dtype.Element() != DType::Index())
    return std::nullopt;
  std::optional<LaneDistances> out = OfAny(index, facts);
  if (!out) return std::nullopt;
  const int64_t least = *std::min_element(out->distance.begin(), out->distance.end());
  out->base = facts->Simplify(out->base + IndexConst(least));
  for (int64_t& d : out->distance) d -= least;
  return out;
}

}  // namespace tenon::codegen

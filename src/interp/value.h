// Values of the interpreter and the arithmetic of one lane, by the semantics of ir/expr.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/expr.h"

namespace tenon::interp {

/// One lane: floats in f, already rounded to their type; integers (sign- or zero-extended), bools,
/// index and handles in i.
union Lane {
  int64_t i;
  double f;
};
inline Lane IntLane(int64_t i) {
  Lane l;
  l.i = i;
  return l;
}
inline Lane FloatLane(double f) {
  Lane l;
  l.f = f;
  return l;
}

/// A scalar, or the lanes of a vector. A scalar serves wherever one lane of a vector is asked for.
struct Value {
  DType dtype;
  Lane first{};
  std::vector<Lane> lanes;  // empty for scalars

  bool IsVector() const { return !lanes.empty(); }
  Lane at(size_t lane) const { return lanes.empty() ? first : lanes[lane]; }
  int64_t Int() const { return first.i; }
};
inline Value IndexValue(int64_t v) { return {DType::Index(), IntLane(v), {}}; }

/// A value of 64 bits cut to the type and extended again.
int64_t WrapInt(DType type, int64_t v);

/// a op b on operands of `type`; nullopt: index arithmetic overflows or divides by zero.
std::optional<Lane> Apply(BinaryOp op, DType type, Lane a, Lane b);
Lane Apply(UnaryOp op, DType type, Lane v);
Lane Convert(DType to, DType from, Lane v);
/// Pure arithmetic intrinsics (not memory, team, vectors or reinterpret); nullopt for those.
std::optional<Lane> Apply(Intrinsic intrinsic, DType type, const Lane* args);

/// One element as it lies in memory, and back. Sub-byte types are not handled.
Lane Decode(DType type, const uint8_t* bytes);
void Encode(DType type, Lane v, uint8_t* bytes);

}  // namespace tenon::interp

// Values to try operators with.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/dtype.h"

namespace tenon::test {

/// n values of a type, most of them where something may go wrong, as they lie in memory.
inline std::vector<uint8_t> EdgeValues(DType type, size_t n, uint64_t seed) {
  std::vector<uint8_t> out;
  const auto size = static_cast<size_t>(type.Bytes());
  std::vector<uint64_t> edges;
  if (type.IsBool()) {
    edges = {0, 1};
  } else if (type.IsFloat()) {
    const int exponent = type.bits == 64                                     ? 11
                         : type.bits == 32 || type.code == TypeCode::kBFloat ? 8
                                                                             : 5;
    const int mantissa = type.bits - 1 - exponent;
    const uint64_t inf = ((uint64_t{1} << exponent) - 1) << mantissa;
    const uint64_t one = ((uint64_t{1} << (exponent - 1)) - 1) << mantissa;
    const uint64_t sign = uint64_t{1} << (type.bits - 1);
    const uint64_t step = uint64_t{1} << mantissa;
    edges = {0,   1,       step - 1,       step, one, one + 1, one - 1, one + step / 2,
             inf, inf - 1, inf | step >> 1};
    // Powers of two about the limits of the integers, and halves.
    for (int e : {-1, 1, 2, 7, 8, 15, 16, 31, 32, 63, 64}) {
      if (e < (1 << (exponent - 1)))
        edges.push_back(one + static_cast<uint64_t>(static_cast<int64_t>(step) * e));
    }
    for (size_t i = 0, count = edges.size(); i < count; ++i) edges.push_back(edges[i] | sign);
  } else {
    const uint64_t top = uint64_t{1} << (type.bits - 1);
    edges = {0, 1, 2, 3, 7, 31, 32, 33, top - 1, top, top + 1, ~uint64_t{0}, ~uint64_t{0} - 1};
  }
  uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
  auto random = [&] {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return state ^ (state >> 29);
  };
  for (size_t i = 0; i < n; ++i) {
    uint64_t v = random() % 3 != 0 ? edges[random() % edges.size()] : random();
    if (type.IsBool()) v &= 1;
    const auto* p = reinterpret_cast<const uint8_t*>(&v);
    out.insert(out.end(), p, p + size);
  }
  return out;
}

}  // namespace tenon::test

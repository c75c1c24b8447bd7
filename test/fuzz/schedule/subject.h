// What random schedules are tried on: a function of a kind that kernels have, at sizes about the
// tiles' edges, of which some are symbolic.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "interp/arguments.h"
#include "loop/func.h"

namespace tenon::fuzz {

using Random = std::mt19937_64;

template <class T>
const T& Pick(const std::vector<T>& list, Random& random) {
  return list[random() % list.size()];
}
inline int64_t Between(Random& random, int64_t lo, int64_t hi) {
  return lo + static_cast<int64_t>(random() % static_cast<uint64_t>(hi - lo + 1));
}
inline bool Chance(Random& random, int64_t of) { return Between(random, 1, of) == 1; }

struct Subject {
  std::string name;
  Module module;                 // its function is @f
  std::vector<DimValues> sizes;  // of its dims, to run at; one empty map where it has none
};

Subject RandomSubject(Random& random);

inline constexpr const char* kFunction = "f";

}  // namespace tenon::fuzz

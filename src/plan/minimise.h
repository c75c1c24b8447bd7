// The least sum of costs that each depend on a few variables of two values: which layouts serve a
// whole network best.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::plan {

/// A cost over `vars` (distinct): table[bits], where bit i is the value of vars[i].
struct Factor {
  std::vector<int> vars;
  std::vector<double> table;  // 2^vars.size() entries
};

/// Values of all variables for which the factors' sum is least; of equal ones 0 rather than 1, for
/// variables in order of elimination. Variables are eliminated one by one, those with the fewest
/// neighbours first (bucket elimination; Dechter 1999): exact on chains, trees and whatever is as
/// thin as `max_width`. Where a table would have more than max_width variables, the one that the
/// most factors share keeps its value in `guess`.
std::vector<uint8_t> Minimise(int num_variables, std::vector<Factor> factors,
                              const std::vector<uint8_t>& guess, int max_width = 10);

}  // namespace tenon::plan

#include "tune/coverage.h"

#include <algorithm>
#include <map>

namespace tenon::tune {

std::vector<size_t> SampleOf(const Task& task, const std::vector<size_t>& distinct, size_t most) {
  if (distinct.size() <= most) return distinct;
  std::map<size_t, std::vector<size_t>> strata;
  for (const size_t place : distinct) strata[task.candidates[place].structure].push_back(place);
  // How many of each stratum: in turns, one each.
  std::map<size_t, size_t> shares;
  for (size_t taken = 0; taken < most;) {
    for (const auto& [structure, places] : strata) {
      if (taken == most || shares[structure] == places.size()) continue;
      ++shares[structure];
      ++taken;
    }
  }
  std::vector<size_t> out;
  for (const auto& [structure, places] : strata) {
    const size_t share = shares[structure];
    for (size_t i = 0; i < share; ++i) out.push_back(places[i * places.size() / share]);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<size_t> NeighboursOf(const Task& task, size_t place) {
  const Candidate& of = task.candidates[place];
  std::vector<size_t> out;
  for (size_t i = 0; i < task.candidates.size(); ++i) {
    const Candidate& c = task.candidates[i];
    if (c.algorithm != of.algorithm || c.point.size() != of.point.size()) continue;
    const auto differing = [&] {
      size_t n = 0;
      for (size_t k = 0; k < c.point.size(); ++k) n += c.point[k] == of.point[k] ? 0 : 1;
      return n;
    };
    if (differing() == 1) out.push_back(i);
  }
  return out;
}

}  // namespace tenon::tune

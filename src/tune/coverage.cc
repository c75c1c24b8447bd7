#include "tune/coverage.h"

#include <algorithm>
#include <map>

#include "tune/session.h"

namespace tenon::tune {

std::vector<size_t> SampleOf(const Task& task, size_t most) {
  constexpr size_t kLeadersOf = 4;  // one in so many
  const size_t all = task.candidates.size(), leaders = std::min(all, most / kLeadersOf);
  std::vector<size_t> out = Leaders(task, all <= most ? all : leaders);
  std::vector<bool> taken(all, false);
  for (const size_t place : out) taken[place] = true;
  for (size_t i = 0; i < all && out.size() < (all <= most ? all : leaders); ++i) {
    if (!taken[i]) out.push_back(i);
    taken[i] = true;
  }
  std::map<size_t, std::vector<size_t>> strata;
  for (size_t i = 0; i < all; ++i) {
    if (!taken[i]) strata[task.candidates[i].structure].push_back(i);
  }
  // How many of each stratum: in turns, one each.
  std::map<size_t, size_t> shares;
  for (size_t left = std::min(all, most) - out.size(); left > 0;) {
    for (const auto& [structure, places] : strata) {
      if (left == 0 || shares[structure] == places.size()) continue;
      ++shares[structure];
      --left;
    }
  }
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

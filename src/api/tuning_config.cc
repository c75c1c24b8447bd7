// What templates leave open: candidates of each knob, and which of them a config has.
#include <algorithm>
#include <functional>
#include <set>

#include "api/bridge.h"
#include "tenon/tuning.hpp"

namespace tenon::inline v0::tuning {

std::vector<std::vector<int64_t>> SplitCandidates(const std::string& name, int64_t extent,
                                                  int64_t parts, const SplitOptions& options) {
  if (extent < 1 || parts < 1) {
    ThrowValue(
        fmt::format("split '{}': expected an extent and a number of parts of at least 1, "
                    "but got {} and {}",
                    name, extent, parts));
  }
  const bool factors = options.policy == "factors", powers = options.policy == "power2",
             both = options.policy == "verbose";
  if (!factors && !powers && !both) {
    ThrowValue(
        fmt::format("split '{}': there is no policy '{}'; there are factors, power2, "
                    "verbose and candidate",
                    name, options.policy));
  }
  std::set<int64_t> sizes;
  const int64_t most = options.max_factor > 0 ? std::min(options.max_factor, extent) : extent;
  for (int64_t f = 1; f <= most; ++f) {
    const bool divides = extent % f == 0, power = (f & (f - 1)) == 0;
    if ((divides && !powers) || (power && !factors && (divides || !options.no_tail)))
      sizes.insert(f);
  }
  std::vector<std::vector<int64_t>> out;
  std::vector<int64_t> at = {-1};
  const std::function<void(int64_t)> extend = [&](int64_t product) {
    if (static_cast<int64_t>(at.size()) == parts) return out.push_back(at);
    for (const int64_t f : sizes) {
      const bool fits =
          factors || options.no_tail ? extent % (product * f) == 0 : product * f <= extent;
      if (!fits) continue;
      at.push_back(f);
      extend(product * f);
      at.pop_back();
    }
  };
  extend(1);
  if (out.empty()) {
    ThrowValue(fmt::format("split '{}': {} cannot be split into {} parts so", name, extent, parts));
  }
  return out;
}

size_t Config::Place(const std::string& name, size_t count) {
  if (count == 0) ThrowValue(fmt::format("knob '{}': there is nothing to choose from", name));
  if (places_.contains(name)) ThrowValue(fmt::format("knob '{}' is there already", name));
  std::vector<int64_t> domain(count);
  for (size_t i = 0; i < count; ++i) domain[i] = static_cast<int64_t>(i);
  knobs_.push_back({name, std::move(domain)});
  size_t place = 0;
  if (chosen_) {
    const auto given = point_.find(name);
    if (given == point_.end() || given->second < 0 || static_cast<size_t>(given->second) >= count)
      ThrowValue(fmt::format("knob '{}': the point has no candidate of it", name));
    place = static_cast<size_t>(given->second);
  }
  return places_[name] = place;
}

int64_t Config::DefineKnob(const std::string& name, const std::vector<int64_t>& values) {
  Place(name, values.size());
  for (const int64_t v : values) candidates_[name].push_back({v});
  return Value(name);
}

std::vector<int64_t> Config::DefineSplit(const std::string& name, int64_t extent, int64_t parts,
                                         const SplitOptions& options) {
  std::vector<std::vector<int64_t>> ways = SplitCandidates(name, extent, parts, options);
  Place(name, ways.size());
  candidates_[name] = std::move(ways);
  return Split(name);
}

const std::vector<int64_t>& Config::Split(const std::string& name) const {
  const auto place = places_.find(name);
  if (place == places_.end()) ThrowValue(fmt::format("there is no knob '{}'", name));
  return candidates_.at(name)[place->second];
}

int64_t Config::Value(const std::string& name) const { return Split(name).front(); }

}  // namespace tenon::inline v0::tuning

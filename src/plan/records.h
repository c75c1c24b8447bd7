// Measured points as prices: a text with a line for each,
//
//   MACHINE GROUP algorithm {knob: value, …} seconds
//
// where MACHINE and GROUP are hashes of the machine that planning works for and of what the group
// computes, whatever its values are called and however they lie. Empty lines and those that begin
// with # say nothing; of several lines for one point the last one counts.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "plan/prices.h"
#include "support/expected.h"

namespace tenon::plan {

class Records : public Prices {
 public:
  /// Errors carry the line in `file`.
  static Expected<Records> Parse(std::string_view text, const std::string& file);
  /// What lines call a group by.
  static std::string GroupKey(const graph::Graph& region);
  /// The line that says it, with its end.
  static std::string Line(const ops::Algorithm& algorithm, const ops::Site& site,
                          const ops::Point& point, double seconds);

  std::optional<double> Find(const ops::Algorithm& algorithm, const ops::Site& site,
                             const ops::Point& point) const override;
  size_t size() const { return seconds_.size(); }

 private:
  std::map<std::string, double, std::less<>> seconds_;  // by the line without its seconds
};

}  // namespace tenon::plan

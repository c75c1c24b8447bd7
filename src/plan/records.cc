#include "plan/records.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "plan/region.h"
#include "support/hash.h"
#include "support/strings.h"

namespace tenon::plan {

namespace {

std::string KeyFor(const ops::Algorithm& algorithm, const ops::Site& site,
                   const ops::Point& point) {
  return fmt::format("{} {} {} {}", site.machine.Hash().ToHex(), Records::GroupKey(site.region),
                     algorithm.name, graph::ChoicesText(point));
}

// A hash as ToHex writes it.
bool IsHash(std::string_view word) {
  return word.size() == 32 && word.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string Records::GroupKey(const graph::Graph& region) {
  return Hasher().Text(graph::RegionKey(region)).Finish().ToHex();
}

std::string Records::Line(const ops::Algorithm& algorithm, const ops::Site& site,
                          const ops::Point& point, double seconds) {
  return fmt::format("{} {}\n", KeyFor(algorithm, site, point), seconds);
}

std::optional<double> Records::Find(const ops::Algorithm& algorithm, const ops::Site& site,
                                    const ops::Point& point) const {
  if (seconds_.empty()) return std::nullopt;
  const auto it = seconds_.find(KeyFor(algorithm, site, point));
  return it == seconds_.end() ? std::nullopt : std::optional(it->second);
}

Expected<Records> Records::Parse(std::string_view text, const std::string& file) {
  Records out;
  int64_t number = 0;
  for (const std::string& whole : Split(text, '\n')) {
    ++number;
    const std::string_view line = Trim(whole);
    if (line.empty() || line.starts_with('#')) continue;
    const size_t end = line.rfind('}');
    const std::string_view key = line.substr(0, end == std::string_view::npos ? 0 : end + 1);
    const std::string_view last = Trim(line.substr(key.size()));
    const std::vector<std::string> words = Split(key, ' ');
    double seconds = 0;
    const auto [rest, fault] = std::from_chars(last.begin(), last.end(), seconds);
    const bool good = fault == std::errc() && rest == last.end() && std::isfinite(seconds) &&
                      seconds > 0 && words.size() > 3 && IsHash(words[0]) && IsHash(words[1]);
    if (!good) {
      SourceLoc at{.file = file, .line = static_cast<int>(number)};
      return MakeError("expected 'MACHINE GROUP algorithm {knob: value, …} seconds'", at);
    }
    out.seconds_.insert_or_assign(std::string(key), seconds);
  }
  return out;
}

}  // namespace tenon::plan

#include "log_text.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "console.h"
#include "tune/history.h"
#include "tune/log.h"

namespace tenon::tools {

namespace {

using Json = nlohmann::ordered_json;

struct Row {
  tune::Circumstances circumstances;
  std::string kernel;
  tune::KernelHistory known;
};

// By machine, target and team, then by kernel.
std::vector<Row> RowsOf(const tune::LogContents& contents) {
  std::set<std::tuple<std::string, std::string, int64_t, std::string>> places;
  for (const tune::Record& r : contents.records)
    places.emplace(r.machine, r.target, r.team, r.cache);
  std::vector<Row> rows;
  for (const auto& [machine, target, team, cache] : places) {
    const tune::Circumstances circumstances{machine, target, team, cache};
    const tune::History history = tune::History::Of(contents, circumstances);
    for (const auto& [kernel, known] : history.kernels())
      rows.push_back({circumstances, kernel, known});
  }
  return rows;
}

int64_t Deaths(const tune::KernelHistory& known) {
  int64_t deaths = 0;
  for (const auto& [trace, count] : known.deaths) deaths += count;
  return deaths;
}

Json RowJson(const Row& row) {
  Json j = {{"machine", row.circumstances.machine},
            {"target", row.circumstances.target},
            {"team", row.circumstances.team},
            {"cache", row.circumstances.cache},
            {"kernel", row.kernel},
            {"trials", row.known.trials},
            {"failed", row.known.failed.size()},
            {"deaths", Deaths(row.known)}};
  if (!row.known.best.empty()) {
    j["best"] = row.known.best;
    j["best_us"] = 1e6 * row.known.seconds.at(row.known.best);
    j["record"] = row.known.ids.at(row.known.best);
  }
  return j;
}

void PrintRows(const tune::LogContents& contents, bool json, bool best_only) {
  const std::vector<Row> rows = RowsOf(contents);
  if (json) {
    Json list = Json::array();
    for (const Row& row : rows) list.push_back(RowJson(row));
    const Json whole = {{"version", tune::kLogVersion},
                        {"records", contents.records.size()},
                        {"skipped", contents.skipped.size()},
                        {"kernels", list}};
    WriteOut(whole.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return;
  }
  if (!best_only) {
    Print("log of tuning, version {}: {} records of {} kernels\n", tune::kLogVersion,
          contents.records.size(), contents.kernels.size());
  }
  std::string place;
  for (const Row& row : rows) {
    const tune::Circumstances& c = row.circumstances;
    const std::string here = fmt::format("machine {}, {} thread{}, {}", c.machine, c.team,
                                         c.team == 1 ? "" : "s", c.target);
    if (here != place) {
      Print("\n{}\n  {:<32} {:>7} {:>7} {:>7} {:>11}  best\n", here, "kernel", "trials", "failed",
            "deaths", "µs");
    }
    place = here;
    const bool has_best = !row.known.best.empty();
    Print("  {:<32} {:>7} {:>7} {:>7} {:>11}  {}\n", row.kernel, row.known.trials,
          row.known.failed.size(), Deaths(row.known),
          has_best ? fmt::format("{:.2f}", 1e6 * row.known.seconds.at(row.known.best)) : "-",
          row.known.best);
  }
}

}  // namespace

void PrintLog(const tune::LogContents& contents, bool json) { PrintRows(contents, json, false); }
void PrintBest(const tune::LogContents& contents, bool json) { PrintRows(contents, json, true); }

}  // namespace tenon::tools

#include "log_text.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "console.h"
#include "support/strings.h"
#include "tune/history.h"
#include "tune/log.h"

namespace tenon::tools {

namespace {

using Json = nlohmann::ordered_json;

// What a kernel computes, of its text: operators in order and what the last one gives, as in
// "conv relu f32[1, 16, 14, 14]". What only moves elements is left out beside others.
std::string Summary(const std::string& text) {
  std::vector<std::string> operators;
  std::string moves, type;
  for (std::string_view line : Split(text, '\n')) {
    const size_t equals = line.find(" = "), colon = line.find(": ");
    const size_t begin = equals == std::string_view::npos ? equals : line.find('(', equals);
    if (begin == std::string_view::npos || colon > equals) continue;
    const std::string name(line.substr(equals + 3, begin - equals - 3));
    if (name == "fused" || ToIdentifier(name) != name) continue;
    const bool only_moves = name == "reshape" || name == "transpose";
    if (only_moves && !operators.empty()) continue;
    type = line.substr(colon + 2, line.find_first_of("]", colon) + 1 - colon - 2);
    if (only_moves)
      moves = name;
    else
      operators.push_back(name);
  }
  constexpr size_t kMost = 4;
  std::string all = operators.empty() ? moves : operators[0];
  for (size_t i = 1; i < std::min(operators.size(), kMost); ++i) all += " " + operators[i];
  if (operators.size() > kMost) all += " …";
  const bool prints = std::all_of(type.begin(), type.end(), [](char c) { return c >= ' '; });
  return all.empty() || !prints ? all : all + " " + type;
}

struct Row {
  tune::Circumstances circumstances;
  std::string kernel, computes;
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
    for (const auto& [kernel, known] : history.kernels()) {
      const auto text = contents.kernels.find(kernel);
      const bool there = text != contents.kernels.end();
      rows.push_back({circumstances, kernel, there ? Summary(text->second) : "", known});
    }
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
            {"computes", row.computes},
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
      Print("\n{}\n  {:<32} {:>7} {:>7} {:>7} {:>11}  {:<40}  best\n", here, "kernel", "trials",
            "failed", "deaths", "µs", "computes");
    }
    place = here;
    const bool has_best = !row.known.best.empty();
    Print("  {:<32} {:>7} {:>7} {:>7} {:>11}  {:<40}  {}\n", row.kernel, row.known.trials,
          row.known.failed.size(), Deaths(row.known),
          has_best ? fmt::format("{:.2f}", 1e6 * row.known.seconds.at(row.known.best)) : "-",
          row.computes, row.known.best);
  }
}

}  // namespace

void PrintLog(const tune::LogContents& contents, bool json) { PrintRows(contents, json, false); }
void PrintBest(const tune::LogContents& contents, bool json) { PrintRows(contents, json, true); }

}  // namespace tenon::tools

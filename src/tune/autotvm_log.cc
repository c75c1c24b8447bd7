#include "tune/autotvm_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/json.h"
#include "support/strings.h"

namespace tenon::tune {

namespace {

using Json = nlohmann::json;

constexpr double kVersion = 0.2;
// What AutoTVM writes for a time where there is none.
constexpr double kFailed = 1e9;

Expected<AutotvmRecord> RecordOf(const Json& j) {
  if (j.is_object() && j.contains("i") && j.contains("r")) {
    return MakeError("it is a record of Ansor's, whose hash keys cannot be recreated: tune again");
  }
  if (!j.is_object() || !j.contains("input")) return MakeError("it is no record");
  if (j.value("version", 0.0) != kVersion)
    return MakeError(fmt::format("it is of version {} instead of {}",
                                 j.contains("version") ? j["version"].dump() : "none", kVersion));
  AutotvmRecord r;
  r.target = j.at("input").at(0);
  r.task = j.at("input").at(1);
  for (const Json& arg : j.at("input").at(2)) {
    if (arg.is_array() && arg.size() == 3 && arg[0] == "TENSOR")
      r.shapes.push_back(arg[1].get<std::vector<int64_t>>());
  }
  for (const Json& entity : j.at("config").at("entity")) {
    if (entity.at(1) == "sp") r.splits[entity.at(0)] = entity.at(2).get<std::vector<int64_t>>();
  }
  double sum = 0;
  const Json& costs = j.at("result").at(0);
  for (const Json& cost : costs) sum += cost.get<double>();
  const double mean = costs.empty() ? kFailed : sum / static_cast<double>(costs.size());
  const bool works = j.at("result").at(1) == 0 && std::isfinite(mean) && mean > 0 && mean < kFailed;
  r.seconds = works ? mean : 0;
  return r;
}

Expected<AutotvmRecord> ReadLine(const std::string& line) {
  const std::string_view text = Trim(line);
  if (!text.starts_with("{") && !text.starts_with("["))
    return MakeError(
        "records are lines of JSON; pickles, which run code when they are read, are "
        "not read");
  Expected<Json> json = ParseJson(text);
  if (!json) return MakeError("it is broken");
  try {
    return RecordOf(*json);
  } catch (const Json::exception&) {
    return MakeError("it is broken");
  }
}

/// Which inner part of a split of a template is which knob of ours. `in_lanes`: it counts elements,
/// the knob vectors.
struct TileRow {
  const char* task;
  const char* entity;
  const char* knob;
  bool in_lanes;
};
constexpr TileRow kTiles[] = {
    {"conv2d_NCHWc", "tile_ow", "tile_width", false},
    {"conv2d_NCHWc", "tile_oh", "tile_height", false},
    {"conv2d_NCHWc", "tile_oc", "nv", true},
    {"depthwise_conv2d_NCHWc", "tile_ow", "tile_width", false},
    {"dense_", "tile_y", "tile_rows", false},
    {"dense_", "tile_x", "nv", true},
    {"batch_matmul", "tile_y", "tile_rows", false},
    {"batch_matmul", "tile_x", "nv", true},
};

// What a record's tiles are as our knobs.
std::map<std::string, double> WantedOf(const AutotvmRecord& r, double lanes) {
  std::map<std::string, double> wanted;
  for (const TileRow& row : kTiles) {
    const auto split = r.splits.find(row.entity);
    if (!r.task.starts_with(row.task) || split == r.splits.end() || split->second.empty()) continue;
    const auto inner = static_cast<double>(split->second.back());
    if (inner > 0) wanted[row.knob] = std::max(1.0, row.in_lanes ? inner / lanes : inner);
  }
  return wanted;
}

// The first operands have the shapes of the record's tensors.
bool IsAbout(const AutotvmRecord& r, const Task& task) {
  size_t same = 0;
  for (size_t i = 0; i < std::min(r.shapes.size(), task.graph.inputs.size()) && i < 2; ++i) {
    const auto dims = task.graph.type(task.graph.inputs[i]).StaticDims();
    if (!dims) return false;
    std::vector<int64_t> turned(dims->rbegin(), dims->rend());
    const bool may_turn = dims->size() == 2 && i == 1;  // a weight, stored either way
    if (*dims != r.shapes[i] && !(may_turn && turned == r.shapes[i])) return false;
    ++same;
  }
  return same == 2;
}

// How far a point's tiles are from what is wanted; infinite for one without such knobs.
double DistanceOf(const Candidate& c, const std::map<std::string, double>& wanted) {
  double distance = 0;
  size_t known = 0;
  for (const graph::Choice& choice : c.point) {
    const auto want = wanted.find(choice.name);
    if (want == wanted.end()) continue;
    ++known;
    distance +=
        std::abs(std::log(static_cast<double>(std::max<int64_t>(1, choice.value)) / want->second));
  }
  return known == 0 ? std::numeric_limits<double>::infinity()
                    : distance + static_cast<double>(wanted.size() - known);
}

}  // namespace

AutotvmLog ParseAutotvmLog(std::string_view text, const std::string& file) {
  AutotvmLog out;
  int32_t number = 0;
  for (const std::string& line : Split(text, '\n')) {
    ++number;
    if (Trim(line).empty() || line.starts_with("#")) continue;
    Expected<AutotvmRecord> record = ReadLine(line);
    if (record) {
      out.records.push_back(std::move(*record));
    } else {
      out.skipped.push_back(MakeError("passed over: " + record.errors()[0].message,
                                      SourceLoc{.file = file, .line = number}));
    }
  }
  return out;
}

std::vector<size_t> HintsFor(const Task& task, const Machine& machine, const AutotvmLog& log,
                             size_t most) {
  std::vector<const AutotvmRecord*> records;
  for (const AutotvmRecord& r : log.records) {
    if (r.seconds > 0 && IsAbout(r, task)) records.push_back(&r);
  }
  std::stable_sort(records.begin(), records.end(),
                   [](const auto* a, const auto* b) { return a->seconds < b->seconds; });
  std::vector<size_t> out;
  for (const AutotvmRecord* r : records) {
    const auto wanted = WantedOf(*r, static_cast<double>(machine.Lanes(DType::Float(32))));
    if (wanted.empty()) continue;
    size_t nearest = 0;
    double least = std::numeric_limits<double>::infinity();
    // Candidates stand by their predicted times: of equally near ones the fastest.
    for (size_t i = 0; i < task.candidates.size(); ++i) {
      const double distance = DistanceOf(task.candidates[i], wanted);
      if (distance >= least) continue;
      least = distance;
      nearest = i;
    }
    const bool fresh = std::find(out.begin(), out.end(), nearest) == out.end();
    if (std::isfinite(least) && fresh && out.size() < most) out.push_back(nearest);
  }
  return out;
}

}  // namespace tenon::tune

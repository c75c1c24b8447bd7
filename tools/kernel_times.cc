#include "kernel_times.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "console.h"
#include "driver/compile.h"

namespace tenon::tools {

namespace {

using Json = nlohmann::ordered_json;

// The rows of the table by what the library says of itself.
std::vector<KernelTime> RowsOf(const Json& info) {
  std::map<std::string, Json> kernels;
  for (const Json& k : info.at("kernels")) kernels[k.at("name")] = k;
  std::vector<KernelTime> rows;
  for (const Json& launch : info.at("launches")) {
    KernelTime row{.kernel = launch.at("kernel"), .kind = "", .node = launch.at("node")};
    // Kernels that a device's launch was split into are not described.
    if (auto k = kernels.find(row.kernel); k != kernels.end()) {
      row.kind = k->second.value("kind", "");
      row.flops = k->second.value("flops", 0.0);
      row.bytes = k->second.value("bytes", 0.0);
      row.estimated_microseconds = k->second.value("estimated_us", 0.0);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

Expected<std::vector<KernelTime>> KernelTimesOf(const Program& program) {
  std::vector<KernelTime> rows;
  std::string function;
  try {
    const Json info = Json::parse(program.Info());
    if (!info.contains("launches")) return rows;
    rows = RowsOf(info);
    function = info.at("name").get<std::string>() + driver::kTimesSuffix;
  } catch (const Json::exception&) {
    return DamagedDescription();
  }
  TN_ASSIGN_OR_RETURN(const Tensor times, program.Result(function));
  if (times.num_elements() != static_cast<int64_t>(2 * rows.size())) return DamagedDescription();
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].launches = static_cast<int64_t>(times.At(static_cast<int64_t>(2 * i)));
    rows[i].microseconds = times.At(static_cast<int64_t>(2 * i + 1)) / 1e3;
  }
  return rows;
}

std::vector<KernelTime> Since(std::vector<KernelTime> now, const std::vector<KernelTime>& before) {
  for (size_t i = 0; i < before.size(); ++i) {
    now[i].launches -= before[i].launches;
    now[i].microseconds -= before[i].microseconds;
  }
  return now;
}

void PrintKernelTimes(std::vector<KernelTime> times, size_t calls) {
  double all = 0;
  for (const KernelTime& t : times) all += t.microseconds;
  std::stable_sort(times.begin(), times.end(), [](const KernelTime& a, const KernelTime& b) {
    return a.microseconds > b.microseconds;
  });
  const auto of = static_cast<double>(calls);
  Print(
      "\nof a call, each kernel alone (est.: what the compiler expected):\n"
      "{:>7} {:>12} {:>12} {:>9} {:>9} {:>8}  {:<20} {}\n",
      "share", "µs", "est. µs", "launches", "GFLOP/s", "GB/s", "kernel", "node");
  for (const KernelTime& t : times) {
    if (t.launches == 0) continue;
    const auto launches = static_cast<double>(t.launches);
    const double per_second = launches / (t.microseconds * 1e-6) / 1e9;
    const auto known = [](double value) { return value > 0 ? fmt::format("{:.1f}", value) : "-"; };
    Print("{:>6.1f}% {:>12.1f} {:>12} {:>9.4g} {:>9} {:>8}  {:<20} {}\n",
          100 * t.microseconds / all, t.microseconds / of,
          known(launches * t.estimated_microseconds / of), launches / of,
          known(t.flops * per_second), known(t.bytes * per_second), t.kernel, t.node);
  }
  Print("{:>6.1f}% {:>12.1f}\n", 100.0, all / of);
}

Json ToJson(const std::vector<KernelTime>& times) {
  Json rows = Json::array();
  for (const KernelTime& t : times) {
    rows.push_back({{"kernel", t.kernel},
                    {"kind", t.kind},
                    {"node", t.node},
                    {"launches", t.launches},
                    {"us", t.microseconds},
                    {"flops", t.flops},
                    {"bytes", t.bytes},
                    {"estimated_us", t.estimated_microseconds}});
  }
  return rows;
}

}  // namespace tenon::tools

#include "tune_table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "console.h"

namespace tenon::tools {

namespace {

using Json = nlohmann::ordered_json;

// Rows of the live table: those that take most.
constexpr size_t kMostRows = 16;

double First(const tune::TaskState& t) {
  return t.Weighed(t.first_seconds > 0 ? t.first_seconds : t.best_seconds);
}
double Best(const tune::TaskState& t) { return t.Weighed(t.best_seconds); }

std::string Micros(double seconds) {
  return seconds > 0 ? fmt::format("{:.1f}", 1e6 * seconds) : "-";
}

// Longest launches first; of all launches, so that the columns add up.
std::string Rows(const tune::SessionState& state, size_t most) {
  std::vector<const tune::TaskState*> tasks;
  double whole = 0, first = 0;
  for (const tune::TaskState& t : state.tasks) {
    tasks.push_back(&t);
    whole += Best(t);
    first += First(t);
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const auto* a, const auto* b) { return Best(*a) > Best(*b); });
  std::string out = fmt::format("{:<28} {:>8} {:>11} {:>11} {:>11} {:>7} {:>7} {:>7} {:>7}\n",
                                "kernel", "launches", "first µs", "best µs", "bound µs", "gain",
                                "noise", "trials", "share");
  auto percent = [](double part, double of) {
    return of > 0 ? fmt::format("{:.1f} %", 100 * part / of) : std::string("-");
  };
  for (size_t i = 0; i < std::min(most, tasks.size()); ++i) {
    const tune::TaskState& t = *tasks[i];
    out += fmt::format("{:<28.28} {:>8} {:>11} {:>11} {:>11} {:>7} {:>7} {:>7} {:>7}\n", t.name,
                       t.launches, Micros(First(t)), Micros(Best(t)), Micros(t.Weighed(t.bound)),
                       percent(First(t) - Best(t), First(t)),
                       t.noise > 0 ? fmt::format("{:.2f} %", 100 * t.noise) : "-", t.trials,
                       percent(Best(t), whole));
  }
  if (tasks.size() > most) out += fmt::format("… and {} more\n", tasks.size() - most);
  out += fmt::format("{:<28} {:>8} {:>11} {:>11} {:>11} {:>7} {:>7} {:>7}\n", "together", "",
                     Micros(first), Micros(whole), "", percent(first - whole, first), "",
                     state.trials);
  return out;
}

Json TaskJson(const tune::TaskState& t) {
  Json finals = Json::array();
  for (const tune::Finalist& f : t.finals)
    finals.push_back({{"point", f.trace}, {"ratio", f.ratio}});
  return {{"kernel", t.kernel},
          {"name", t.name},
          {"kind", t.kind},
          {"launches", t.launches},
          {"weight", t.weight},
          {"points", t.points},
          {"distinct", t.distinct},
          {"sample", t.sample},
          {"covered", t.covered},
          {"first_us", 1e6 * t.first_seconds},
          {"best_us", 1e6 * t.best_seconds},
          {"bound_us", 1e6 * t.bound},
          {"noise", t.noise},
          {"first", t.first},
          {"best", t.best},
          {"trials", t.trials},
          {"failures", t.failures},
          {"finals", finals},
          {"trouble", t.trouble}};
}

Json NetworkJson(const driver::TuneReport& report) {
  if (!report.network_trouble.empty()) return {{"trouble", report.network_trouble}};
  const auto& n = report.network;
  if (!n) return nullptr;
  return {{"untuned_us", 1e6 * n->untuned_seconds},
          {"ratio", n->ratio},
          {"noise", n->noise},
          {"pairs", n->pairs},
          {"kept", n->kept}};
}

Json FusionsJson(const driver::TuneReport& report) {
  Json out = Json::array();
  for (const driver::FusionRace& f : report.fusions) {
    out.push_back({{"result", f.name},
                   {"nodes", f.nodes},
                   {"ratio", f.ratio},
                   {"noise", f.noise},
                   {"pairs", f.pairs},
                   {"taken", f.taken}});
  }
  return out;
}

void WriteJson(const Json& json) {
  WriteOut(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  FlushOutput();
}

}  // namespace

TuneTable::TuneTable(Form form, int64_t trials, double seconds)
    : form_(form), trials_(trials), seconds_(seconds), terminal_(isatty(STDERR_FILENO) != 0) {}

// "about 90 s left": by whichever limit comes first, trials at the pace so far.
std::string TuneTable::Ending(const tune::SessionState& state) const {
  double left = -1;
  if (seconds_ > 0) left = std::max(0.0, seconds_ - state.seconds);
  if (trials_ > 0 && state.trials > 0) {
    const double by_trials = state.seconds / static_cast<double>(state.trials) *
                             static_cast<double>(std::max<int64_t>(0, trials_ - state.trials));
    left = left < 0 ? by_trials : std::min(left, by_trials);
  }
  return left < 0 ? "" : fmt::format(", about {:.0f} s left", left);
}

void TuneTable::Show(const tune::SessionState& state) {
  if (form_ == Form::kSummary) return;
  if (form_ == Form::kJson) {
    return WriteJson({{"trial", state.trials}, {"seconds", state.seconds}, {"event", state.event}});
  }
  if (!terminal_) {
    if (!state.event.empty() && state.stopped.empty())
      PrintError("{:>5} {:7.1f} s  {}\n", state.trials, state.seconds, state.event);
    return;
  }
  Clear();
  const std::string text = Rows(state, kMostRows) +
                           fmt::format("{:.0f} s, {} trials, {} failed{}; {:.100}\n", state.seconds,
                                       state.trials, state.failures, Ending(state), state.event);
  lines_ = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  WriteError(Harmless(text));
}

void TuneTable::Clear() {
  if (!terminal_ || lines_ == 0) return;
  WriteError(fmt::format("\033[{}A\033[J", lines_));
  lines_ = 0;
}

void TuneTable::PrintSummary(const driver::TuneReport& report, const std::string& log) {
  const tune::SessionState& state = report.state;
  if (form_ == Form::kJson) {
    Json tasks = Json::array();
    for (const tune::TaskState& t : state.tasks) tasks.push_back(TaskJson(t));
    return WriteJson({{"log", log},
                      {"stopped", state.stopped},
                      {"seconds", state.seconds},
                      {"timing_seconds", state.spent.bursts},
                      {"building_seconds", state.spent.building},
                      {"reference_seconds", state.spent.references},
                      {"trials", state.trials},
                      {"failures", state.failures},
                      {"trees", state.trees},
                      {"relayouts", state.relayouts},
                      {"worker_starts", report.worker_starts},
                      {"tasks", tasks},
                      {"left_out", report.left_out},
                      {"fusions", FusionsJson(report)},
                      {"network", NetworkJson(report)}});
  }
  Print("{}", Rows(state, state.tasks.size()));
  for (const tune::TaskState& t : state.tasks) {
    if (!t.trouble.empty()) Print("not tuned: {}: {}\n", t.name, t.trouble);
  }
  for (const std::string& why : report.left_out) Print("not tuned: {}\n", why);
  for (const driver::FusionRace& f : report.fusions) {
    Print("'{}' in parts, the first of {} {}: {:.3f} of the network's time, ± {:.2f} %{}\n", f.name,
          f.nodes, f.nodes == 1 ? "node" : "nodes", f.ratio, 100 * f.noise,
          f.taken ? "; so it is from now on" : "");
  }
  if (const auto& n = report.network) {
    Print("\nthe whole network: {:.1f} µs, without records {:.1f} µs: {:.3f} of it, ± {:.2f} %{}\n",
          1e6 * n->untuned_seconds * n->ratio, 1e6 * n->untuned_seconds, n->ratio, 100 * n->noise,
          n->kept ? "" : "; it stays as it was");
  }
  if (!report.network_trouble.empty()) Print("\n{}\n", report.network_trouble);
  Print(
      "\n{} trials, {} failed, in {:.1f} s ({:.1f} s timing, {:.1f} s building, {:.1f} s for "
      "answers "
      "to compare with); {}. Records: {}\n",
      state.trials, state.failures, state.seconds, state.spent.bursts, state.spent.building,
      state.spent.references, state.stopped, log);
}

}  // namespace tenon::tools

#include "driver/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "driver/check_options.h"
#include "driver/graph_pipeline.h"
#include "driver/profile.h"
#include "driver/source.h"
#include "driver/tune_network.h"
#include "driver/workbench.h"
#include "graph/pass/constants.h"
#include "graph/text.h"
#include "support/deep_stack.h"
#include "support/file.h"
#include "tune/log.h"

namespace tenon::driver {

namespace {

using Clock = std::chrono::steady_clock;

// Of a session's time, for near-ties in fusion after it.
constexpr double kFusionsOfSession = 0.5;
// Of a limit of time for a whole network: until when its kernels are tuned, and its fusions; the
// rest is for building and racing the network.
constexpr double kKernelsUntil = 0.7, kFusionsUntil = 0.85;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool IsGraphText(const std::string& path) {
  const Expected<MappedFile> file = MappedFile::Open(path);
  return file && file->text().starts_with("graph @");
}

// Of a graph's text, where those of a network lie.
graph::WeightSource WeightsOf(const CompileOptions& how) {
  namespace fs = std::filesystem;
  const fs::path folder = how.external_data_dir.empty() ? fs::path(how.model).parent_path()
                                                        : fs::path(how.external_data_dir);
  return [folder](const std::string& name) -> Expected<std::shared_ptr<const graph::WeightFile>> {
    TN_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open((folder / name).string()));
    return std::make_shared<const graph::WeightFile>(name, std::move(map));
  };
}

Expected<std::vector<graph::Graph>> ReadGraphs(const CompileOptions& how) {
  if (IsGraphText(how.model)) {
    TN_ASSIGN_OR_RETURN(const std::string text, ReadFile(how.model));
    TN_ASSIGN_OR_RETURN(graph::Graph g, graph::Parse(text, how.model, WeightsOf(how)));
    return std::vector<graph::Graph>{std::move(g)};
  }
  TN_ASSIGN_OR_RETURN(graph::Program program, ImportModel(how));
  return std::move(program.parts);
}

void Append(tune::Tasks more, tune::Tasks* tasks) {
  for (tune::Task& task : more.tasks) {
    const auto same = std::find_if(tasks->tasks.begin(), tasks->tasks.end(),
                                   [&](const auto& t) { return t.kernel == task.kernel; });
    if (same == tasks->tasks.end()) {
      tasks->tasks.push_back(std::move(task));
    } else {
      same->launches += task.launches;
    }
  }
  for (std::string& why : more.left_out) tasks->left_out.push_back(std::move(why));
}

// A model's kernels, and what planning went by.
struct Planned {
  Machine machine;
  bool far_weights = false;
  tune::Tasks tasks;
};

// What planning asks of relayouts while it weighs layouts; else it knows what another one does.
class RelayoutsAsked : public plan::WithCuts {
 public:
  using plan::WithCuts::WithCuts;
  double Relayout(const graph::TensorType& from, const Layout& to,
                  double predicted) const override {
    tune::Relayout asked(from, to);
    const std::string kernel = asked.kernel;
    asked_.emplace(kernel, std::move(asked)).first->second.weight += predicted;
    return predicted;
  }
  /// Those that weigh most first.
  std::vector<tune::Relayout> Take() {
    std::vector<tune::Relayout> out;
    for (auto& [kernel, relayout] : asked_) out.push_back(std::move(relayout));
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& a, const auto& b) { return a.weight > b.weight; });
    return out;
  }

 private:
  mutable std::map<std::string, tune::Relayout> asked_;
};

// With the groups that the log, if there is one, has in parts.
Expected<Planned> PlannedOf(const CompileOptions& how, const Target& target,
                            const std::string& log) {
  TN_ASSIGN_OR_RETURN(PlannedFor planned_for, MachineFor(how, target));
  Planned out{.machine = std::move(planned_for.machine)};
  TN_ASSIGN_OR_RETURN(std::vector<graph::Graph> graphs, ReadGraphs(how));
  out.far_weights = HasFarWeights(graphs, out.machine);
  RelayoutsAsked asked(nullptr, CutsOf(log, out.machine, out.far_weights));
  for (graph::Graph& g : graphs) {
    // Sizes that are open are planned otherwise where there are prices (plan/sizes.h).
    const bool asks = g.dims.empty() || !asked.FusionCuts().empty();
    TN_ASSIGN_OR_RETURN(
        g, RunGraphPasses(std::move(g), out.machine, how, asks ? &asked : nullptr, {}));
    Append(tune::TasksOf(g, out.machine, how.shape_weights), &out.tasks);
  }
  out.tasks.relayouts = asked.Take();
  return out;
}

Expected<TuneReport> TuneHere(const TuneOptions& options, const std::atomic<bool>& stop) {
  const Clock::time_point start = Clock::now();
  TN_ASSIGN_OR_RETURN(const Target target, CheckOptions(options.how));
  TN_RETURN_IF_ERROR(CheckRunsHere(target));
  TN_ASSIGN_OR_RETURN(Planned planned, PlannedOf(options.how, target, options.log));
  const Machine& machine = planned.machine;
  tune::Tasks& tasks = planned.tasks;
  if (!options.only.empty()) {
    std::erase_if(tasks.tasks, [&](const tune::Task& task) {
      return std::find(options.only.begin(), options.only.end(), task.kernel) == options.only.end();
    });
  }
  // Of a part of the kernels nothing follows for the whole.
  const bool whole = options.only.empty() && !IsGraphText(options.how.model);
  if (!whole) tasks.relayouts.clear();
  tune::SessionOptions session = options.session;
  session.machine = MachineKeyOf(target);
  if (target.IsDevice()) session.device = std::string(target.kind().name);
  session.team = TeamOf(machine);
  session.far_weights = planned.far_weights;
  TN_ASSIGN_OR_RETURN(const std::unique_ptr<Workbench> bench,
                      Workbench::Make(target,
                                      {.program = options.worker,
                                       .team = session.team,
                                       .most_bytes = options.worker_bytes,
                                       .time_limit = options.worker_seconds},
                                      options.how.jobs));
  TN_ASSIGN_OR_RETURN(const std::string no_device, bench->FindDevice());
  if (!no_device.empty()) return MakeError("nothing can be measured here: " + no_device);
  std::optional<tune::Log> log;
  {
    TN_ASSIGN_OR_RETURN(tune::Log opened, tune::Log::Open(options.log));
    log.emplace(std::move(opened));
  }
  constexpr double kLeast = 1e-3;  // 0 would be no limit
  const double limit = options.session.seconds;
  if (limit > 0)
    session.seconds = std::max(kLeast, (whole ? kKernelsUntil : 1) * limit - Since(start));
  TuneReport report;
  Expected<tune::SessionState> state = tune::RunSession(
      tasks, machine, session, bench->tools(), bench->folder(), &*log, options.changed, stop);
  if (!state) return tune::WithKept(std::move(state.errors()), options.log);
  report.state = *std::move(state);
  report.left_out = std::move(tasks.left_out);
  log.reset();
  if (whole && !stop) {
    NetworkRaces races;
    double fusions = kFusionsOfSession * report.state.seconds;
    if (limit > 0) fusions = std::min(fusions, kFusionsUntil * limit - Since(start));
    const Status raced =
        RaceNetwork(options, machine, planned.far_weights, fusions, bench.get(), stop, &races);
    if (!raced) report.network_trouble = raced.errors()[0].message;
    report.fusions = std::move(races.fusions);
    report.network = races.whole;
  }
  report.worker_starts = bench->worker_starts();
  return report;
}

}  // namespace

Expected<tune::Tasks> KernelsOf(const CompileOptions& how) {
  std::optional<Expected<tune::Tasks>> tasks;
  OnDeepStack([&]() -> void {
    const Expected<Target> target = CheckOptions(how);
    Expected<Planned> planned =
        target ? PlannedOf(how, *target, "") : Expected<Planned>(target.errors());
    tasks = planned ? Expected<tune::Tasks>(std::move(planned->tasks))
                    : Expected<tune::Tasks>(planned.errors());
  });
  return *std::move(tasks);
}

Expected<TuneReport> Tune(const TuneOptions& options, const std::atomic<bool>& stop) {
  std::optional<Expected<TuneReport>> report;
  OnDeepStack([&] { report = TuneHere(options, stop); });
  return *std::move(report);
}

}  // namespace tenon::driver

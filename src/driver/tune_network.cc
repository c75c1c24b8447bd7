#include "driver/tune_network.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "driver/graph_pipeline.h"
#include "driver/measured_prices.h"
#include "driver/source.h"
#include "measure/elements.h"
#include "plan/fuse.h"
#include "support/atomic_file.h"
#include "tune/log.h"

namespace tenon::driver {

namespace {

// Places in tensors are among the integers that networks are called with; what is below this is one
// everywhere.
constexpr int64_t kPlaces = 2;

// The inputs of a network, as a caller has them; nullopt: they have open sizes, or elements that
// are not measured.
std::optional<std::vector<measure::Parameter>> InputsOf(const graph::Graph& g) {
  std::vector<measure::Parameter> out;
  for (const graph::ValueId v : g.inputs) {
    const auto dims = g.IsTensor(v) ? g.type(v).StaticDims() : std::nullopt;
    measure::Parameter p;
    if (!dims) return std::nullopt;
    p.dtype = LongName(g.type(v).dtype);
    if (!measure::FindElementType(p.dtype)) return std::nullopt;
    p.dims = p.shape = *dims;
    p.begin.assign(dims->size(), 0);
    if (g.type(v).dtype.IsInt()) p.limit = kPlaces;
    int64_t stride = 1;
    for (size_t k = dims->size(); k-- > 0;) {
      p.terms.insert(p.terms.begin(), {static_cast<int64_t>(k), 1, 0, stride});
      stride *= (*dims)[k];
    }
    out.push_back(std::move(p));
  }
  return out;
}

// A group is near a tie where its parts cost no more than this part of it in addition.
constexpr double kNear = 0.1;

tune::Circumstances Here(const Machine& machine, bool far_weights) {
  return {MachineKeyOf(*machine.target), machine.target->ToString(), TeamOf(machine),
          tune::CacheState(far_weights)};
}

double PlannedSeconds(const graph::Graph& planned) {
  double seconds = 0;
  for (const graph::Node& n : planned.nodes) seconds += n.plan ? n.plan->seconds : 0;
  return seconds;
}

// All launches of a group that a network has, whole.
struct WholeGroup {
  graph::GrownGroup grown;
  double seconds = 0;
};

// A group in parts, and what they take beyond the whole.
struct NearTie {
  std::string key, name;
  size_t nodes = 0;
  double seconds = 0;
};

class NetworkBench {
 public:
  NetworkBench(const TuneOptions& options, const Machine& machine, bool far_weights,
               Workbench* bench, const std::atomic<bool>& stop)
      : options_(options),
        machine_(machine),
        far_weights_(far_weights),
        bench_(*bench),
        stop_(stop) {}

  Status Run(double fusion_seconds, NetworkRaces* out) {
    TN_ASSIGN_OR_RETURN(const graph::Program program, ImportModel(options_.how));
    if (!program.IsPlain()) return Ok();
    const auto inputs = InputsOf(program.parts[0]);
    if (!inputs) return Ok();
    inputs_ = *inputs;
    if (fusion_seconds > 0)
      TN_RETURN_IF_ERROR(RaceFusions(program.parts[0], fusion_seconds, &out->fusions));
    if (stop_) return Ok();
    return RaceWhole(program, &out->whole);
  }

 private:
  Status RaceWhole(const graph::Program& program, std::optional<NetworkRace>* out) {
    TN_ASSIGN_OR_RETURN(const tune::LogContents contents, tune::ReadLog(options_.log));
    const tune::LogPrices prices(contents, Here(machine_, far_weights_), machine_,
                                 options_.how.shape_weights);
    TN_ASSIGN_OR_RETURN(const std::string untuned, Planned(program, nullptr));
    TN_ASSIGN_OR_RETURN(const std::string tuned, Planned(program, &prices));
    if (tuned == untuned || prices.RatioOf(tuned)) return Ok();
    TN_ASSIGN_OR_RETURN(NetworkRace race, Race());
    TN_RETURN_IF_ERROR(Write(tuned, race));
    *out = race;
    return Ok();
  }

  // ---- Near-ties in fusion ----

  // By predictions, the most promising first: of wholes that are measured and parts that are not
  // prices of the log would compare the one with the other. Neither what was raced nor what is in
  // parts already.
  Expected<std::vector<NearTie>> NearTies(const graph::Graph& imported,
                                          const tune::LogPrices& prices,
                                          const std::function<bool()>& is_over) const {
    const plan::WithCuts so_far(nullptr, prices.FusionCuts());
    graph::Graph before;
    GraphHooks hooks;
    hooks.after_pass = [&](const char* pass, const graph::Graph& g, const graph::Graph&, double) {
      if (std::string_view(pass) == "fuse") before = g;
    };
    TN_ASSIGN_OR_RETURN(const graph::Graph planned,
                        RunGraphPasses(imported, machine_, options_.how, &so_far, hooks));
    const double whole = PlannedSeconds(planned);
    std::vector<NearTie> out;
    for (const WholeGroup& group : WholeGroups(before, planned)) {
      const graph::GrownGroup& grown = group.grown;
      if (prices.FusionCuts().contains(grown.key)) continue;
      for (const size_t nodes : grown.ends) {
        if (is_over()) break;
        if (prices.KnowsParts(grown.key, nodes)) continue;
        plan::Cuts cuts = prices.FusionCuts();
        cuts[grown.key] = nodes;
        const plan::WithCuts in_parts(nullptr, std::move(cuts));
        TN_ASSIGN_OR_RETURN(const graph::Graph other,
                            RunGraphPasses(imported, machine_, options_.how, &in_parts, {}));
        const double more = PlannedSeconds(other) - whole;
        if (more <= kNear * group.seconds) out.push_back({grown.key, grown.result, nodes, more});
      }
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const NearTie& a, const NearTie& b) { return a.seconds < b.seconds; });
    if (out.size() > kMostFusions) out.resize(kMostFusions);
    return out;
  }

  // Those that take longest first; a group that has several launches once, one of constants, which
  // no call computes, not at all.
  static std::vector<WholeGroup> WholeGroups(const graph::Graph& before,
                                             const graph::Graph& planned) {
    std::map<std::string, double> seconds;  // by the name of a result
    for (const graph::Node& n : planned.nodes) {
      for (const graph::ValueId v : n.outputs) {
        if (n.plan) seconds[planned.value(v).name] += n.plan->seconds;
      }
    }
    std::vector<WholeGroup> out;
    for (graph::GrownGroup& grown : graph::GrownGroups(before)) {
      const double taken = seconds[grown.result];
      if (taken <= 0) continue;
      const auto same = std::find_if(out.begin(), out.end(),
                                     [&](const auto& w) { return w.grown.key == grown.key; });
      if (same == out.end()) {
        out.push_back({std::move(grown), taken});
      } else {
        same->seconds += taken;
      }
    }
    std::stable_sort(out.begin(), out.end(), [](const WholeGroup& a, const WholeGroup& b) {
      return a.seconds > b.seconds;
    });
    return out;
  }

  Status RaceFusions(const graph::Graph& imported, double seconds, std::vector<FusionRace>* out) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    const auto is_over = [&] {
      return stop_ || std::chrono::duration<double>(Clock::now() - start).count() > seconds;
    };
    TN_ASSIGN_OR_RETURN(tune::LogContents contents, tune::ReadLog(options_.log));
    const tune::LogPrices prices(contents, Here(machine_, far_weights_), machine_,
                                 options_.how.shape_weights);
    TN_ASSIGN_OR_RETURN(const std::vector<NearTie> ties, NearTies(imported, prices, is_over));
    // Plans are compared, whatever was said about them as wholes.
    std::erase_if(contents.records, [](const auto& r) { return r.algorithm == tune::kNetwork; });
    std::optional<measure::Program> base;
    double noise = 0;
    std::set<std::string> taken;  // groups, whose other parts would race against these
    for (const NearTie& tie : ties) {
      if (stop_ || (!out->empty() && is_over())) break;
      if (taken.contains(tie.key)) continue;
      if (!base) {
        TN_ASSIGN_OR_RETURN(base, LibraryBy(contents, "whole"));
        TN_ASSIGN_OR_RETURN(const measure::RaceAnswer itself, Against(*base, *base, 0));
        noise = itself.noise;
      }
      tune::Record record = RecordOfParts(tie);
      tune::LogContents tried = contents;
      tried.records.push_back(record);
      TN_ASSIGN_OR_RETURN(const measure::Program parts, LibraryBy(tried, "parts"));
      TN_ASSIGN_OR_RETURN(const measure::RaceAnswer answer, Against(*base, parts, noise));
      record.leader = answer.faster;
      record.predicted = answer.incumbent_seconds;
      record.seconds = answer.incumbent_seconds * std::exp(answer.log_ratio);
      record.noise = noise;
      record.pairs = answer.pairs;
      TN_RETURN_IF_ERROR(Write(record));
      out->push_back(
          {tie.name, tie.nodes, std::exp(answer.log_ratio), noise, answer.pairs, answer.faster});
      if (!answer.faster) continue;
      taken.insert(tie.key);
      contents.records.push_back(std::move(record));
      TN_ASSIGN_OR_RETURN(base, LibraryBy(contents, "whole"));
    }
    return Ok();
  }

  // That the parts are faster, which planning follows.
  tune::Record RecordOfParts(const NearTie& tie) const {
    tune::Record r = RecordHere();
    r.kernel = tie.key;
    r.algorithm = tune::kFusion;
    r.point = fmt::format("{{nodes: {}}}", tie.nodes);
    r.id = tune::NewId();
    r.outcome = tune::kOk;
    r.leader = true;
    r.predicted = 1;
    r.seconds = 0.5;
    return r;
  }

  // The network by records that are in no log yet.
  Expected<measure::Program> LibraryBy(const tune::LogContents& contents, const char* name) const {
    const std::string log = fmt::format("{}/{}.jsonl", bench_.folder(), name);
    TN_RETURN_IF_ERROR(WriteFile(log, tune::ToLines(contents)));
    return Library(name, log);
  }

  // ---- The whole ----

  Expected<std::string> Planned(const graph::Program& program, const plan::Prices* prices) const {
    std::vector<graph::Graph> parts = program.parts;
    for (graph::Graph& g : parts) {
      TN_ASSIGN_OR_RETURN(g, RunGraphPasses(std::move(g), machine_, options_.how, prices, {}));
    }
    return PlanKey(parts);
  }

  Expected<measure::Program> Library(const char* name, const std::string& log) const {
    CompileOptions how = options_.how;
    how.log = log;
    how.output = fmt::format("{}/{}.so", bench_.folder(), name);
    TN_ASSIGN_OR_RETURN(const CompileReport report, Compile(how));
    return measure::Program{report.artifact, how.name, inputs_};
  }

  Expected<measure::RaceAnswer> Against(const measure::Program& untuned,
                                        const measure::Program& other, double noise) {
    // As long as several kernels together.
    constexpr double kTimes = 4;
    constexpr int64_t kPairs = 400;
    TN_ASSIGN_OR_RETURN(measure::RaceAnswer answer,
                        bench_.tools().race({.kernel = "network",
                                             .incumbent = untuned,
                                             .candidate = other,
                                             .device = Device(),
                                             .team = TeamOf(machine_),
                                             .noise = noise,
                                             .most_pairs = kPairs,
                                             .seconds = kTimes * options_.session.race_seconds}));
    if (answer.outcome == measure::Outcome::kOk) return answer;
    return MakeError(fmt::format("the whole network cannot be measured ({}): {}",
                                 measure::ToString(answer.outcome), answer.message));
  }

  std::string Device() const {
    const Target& target = *machine_.target;
    return target.IsDevice() ? std::string(target.kind().name) : std::string();
  }

  Expected<NetworkRace> Race() {
    TN_ASSIGN_OR_RETURN(const measure::Program untuned, Library("untuned", ""));
    TN_ASSIGN_OR_RETURN(const measure::Program tuned, Library("tuned", options_.log));
    TN_ASSIGN_OR_RETURN(const measure::RaceAnswer itself, Against(untuned, untuned, 0));
    TN_ASSIGN_OR_RETURN(const measure::RaceAnswer answer, Against(untuned, tuned, itself.noise));
    NetworkRace out{.untuned_seconds = answer.incumbent_seconds,
                    .ratio = std::exp(answer.log_ratio),
                    .noise = itself.noise,
                    .pairs = answer.pairs};
    out.kept = out.ratio <= kMostOfUntuned;
    return out;
  }

  // ---- Records ----

  tune::Record RecordHere() const {
    tune::Record r;
    const tune::Circumstances here = Here(machine_, far_weights_);
    r.machine = here.machine;
    r.target = here.target;
    r.team = here.team;
    r.cache = here.cache;
    return r;
  }

  Status Write(tune::Record record) const {
    TN_ASSIGN_OR_RETURN(tune::Log log, tune::Log::Open(options_.log));
    TN_RETURN_IF_ERROR(log.Begin(&record));
    record.outcome = tune::kOk;
    return log.Finish(std::move(record));
  }

  Status Write(const std::string& plan, const NetworkRace& race) const {
    tune::Record r = RecordHere();
    r.kernel = plan;
    r.algorithm = tune::kNetwork;
    r.point = "{}";
    r.leader = race.kept;
    r.seconds = race.untuned_seconds * race.ratio;
    r.predicted = race.untuned_seconds;
    r.noise = race.noise;
    r.pairs = race.pairs;
    return Write(std::move(r));
  }

  const TuneOptions& options_;
  const Machine& machine_;
  const bool far_weights_;
  Workbench& bench_;
  const std::atomic<bool>& stop_;
  std::vector<measure::Parameter> inputs_;
};

}  // namespace

plan::Cuts CutsOf(const std::string& log, const Machine& machine, bool far_weights) {
  if (log.empty() || access(log.c_str(), F_OK) != 0) return {};
  // What cannot be read is said where records are written.
  const Expected<tune::LogContents> contents = tune::ReadLog(log);
  return contents ? tune::History::Of(*contents, Here(machine, far_weights)).cuts() : plan::Cuts();
}

Status RaceNetwork(const TuneOptions& options, const Machine& machine, bool far_weights,
                   double fusion_seconds, Workbench* bench, const std::atomic<bool>& stop,
                   NetworkRaces* out) {
  return NetworkBench(options, machine, far_weights, bench, stop).Run(fusion_seconds, out);
}

}  // namespace tenon::driver

#include "driver/tune_network.h"

#include <fmt/format.h>

#include <cmath>

#include "driver/graph_pipeline.h"
#include "driver/measured_prices.h"
#include "driver/source.h"
#include "measure/elements.h"
#include "tune/log.h"
#include "tune/machine_key.h"

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

class NetworkBench {
 public:
  NetworkBench(const TuneOptions& options, const Machine& machine, bool far_weights,
               Workbench* bench)
      : options_(options), machine_(machine), far_weights_(far_weights), bench_(*bench) {}

  Expected<std::optional<NetworkRace>> Run() {
    TN_ASSIGN_OR_RETURN(const graph::Program program, ImportModel(options_.how));
    if (!program.IsPlain()) return std::optional<NetworkRace>();
    const auto inputs = InputsOf(program.parts[0]);
    if (!inputs) return std::optional<NetworkRace>();
    inputs_ = *inputs;
    TN_ASSIGN_OR_RETURN(const tune::LogContents contents, tune::ReadLog(options_.log));
    const tune::Circumstances here{tune::MachineKey(), machine_.target->ToString(),
                                   machine_.workers, tune::CacheState(far_weights_)};
    const tune::LogPrices prices(contents, here, machine_, options_.how.shape_weights);
    TN_ASSIGN_OR_RETURN(const std::string untuned, Planned(program, nullptr));
    TN_ASSIGN_OR_RETURN(const std::string tuned, Planned(program, &prices));
    if (tuned == untuned || prices.RatioOf(tuned)) return std::optional<NetworkRace>();
    TN_ASSIGN_OR_RETURN(NetworkRace race, Race());
    TN_RETURN_IF_ERROR(Write(tuned, race));
    return std::optional(race);
  }

 private:
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
                                             .team = machine_.workers,
                                             .noise = noise,
                                             .most_pairs = kPairs,
                                             .seconds = kTimes * options_.session.race_seconds}));
    if (answer.outcome == measure::Outcome::kOk) return answer;
    return MakeError(fmt::format("the whole network cannot be measured ({}): {}",
                                 measure::ToString(answer.outcome), answer.message));
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

  Status Write(const std::string& plan, const NetworkRace& race) const {
    TN_ASSIGN_OR_RETURN(tune::Log log, tune::Log::Open(options_.log));
    tune::Record r;
    r.kernel = plan;
    r.machine = tune::MachineKey();
    r.target = machine_.target->ToString();
    r.team = machine_.workers;
    r.cache = tune::CacheState(far_weights_);
    r.algorithm = tune::kNetwork;
    r.point = "{}";
    TN_RETURN_IF_ERROR(log.Begin(&r));
    r.outcome = tune::kOk;
    r.leader = race.kept;
    r.seconds = race.untuned_seconds * race.ratio;
    r.predicted = race.untuned_seconds;
    r.noise = race.noise;
    r.pairs = race.pairs;
    return log.Finish(r);
  }

  const TuneOptions& options_;
  const Machine& machine_;
  const bool far_weights_;
  Workbench& bench_;
  std::vector<measure::Parameter> inputs_;
};

}  // namespace

Expected<std::optional<NetworkRace>> RaceNetwork(const TuneOptions& options, const Machine& machine,
                                                 bool far_weights, Workbench* bench) {
  return NetworkBench(options, machine, far_weights, bench).Run();
}

}  // namespace tenon::driver

#include "tune/history.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "graph/text.h"
#include "measure/paired_test.h"
#include "plan/region.h"
#include "plan/relayout.h"
#include "plan/space.h"
#include "support/hash.h"
#include "tune/log.h"

namespace tenon::tune {

namespace {

// So that of two equal prices the leader's is the less.
constexpr double kJustMore = 1 + 1e-6;

struct Measured {
  std::vector<double> seconds;
  std::string id;
  bool leader = false;
};

bool IsDeath(const Record& r) {
  return r.outcome == "crash" || r.outcome == "timeout" ||
         (r.outcome == kStarted && !IsAlive(r.owner));
}

bool HasEpoch(const Record& r) {
  // Schedules of users' own, and of rules, are told apart by what they are.
  if (r.algorithm == kNetwork || r.algorithm == kFusion || r.algorithm.starts_with(kSketchPrefix) ||
      r.algorithm.starts_with(kTemplatePrefix))
    return true;
  const ops::Algorithm* algorithm = ops::FindAlgorithm(r.algorithm);
  return algorithm && algorithm->epoch == r.epoch;
}

// Of "{nodes: 2}"; 0: it says something else.
size_t NodesOf(std::string_view point) {
  constexpr std::string_view kBegin = "{nodes: ";
  size_t nodes = 0;
  if (!point.starts_with(kBegin)) return 0;
  const char* end = point.data() + point.size();
  const auto [rest, fault] = std::from_chars(point.data() + kBegin.size(), end, nodes);
  return fault == std::errc() && std::string_view(rest, end) == "}" ? nodes : 0;
}

// Of leaders the fastest is the best; then nothing else counts as faster.
void Settle(const std::map<std::string, Measured>& measured, KernelHistory* out) {
  double best = 0;
  for (const auto& [trace, m] : measured) {
    const double seconds = measure::Median(m.seconds);
    if (!m.leader || (!out->best.empty() && seconds >= best)) continue;
    out->best = trace;
    best = seconds;
  }
  for (const auto& [trace, m] : measured) {
    const double seconds = measure::Median(m.seconds);
    out->seconds[trace] = trace == out->best ? seconds : std::max(seconds, best * kJustMore);
    out->ids[trace] = m.id;
  }
}

}  // namespace

bool Counts(const Record& r, const Circumstances& c) {
  return (c.machine.empty() || r.machine == c.machine) && r.target == c.target &&
         r.team == c.team && (c.cache.empty() || r.cache == c.cache) && HasEpoch(r);
}

bool KernelHistory::IsBanned(const std::string& trace) const {
  const auto died = deaths.find(trace);
  return failed.contains(trace) || (died != deaths.end() && died->second >= 2);
}

History History::Of(const LogContents& contents, const Circumstances& c) {
  History out;
  std::map<std::string, std::map<std::string, Measured>> measured;
  for (const Record& r : contents.records) {
    if (!Counts(r, c)) {
      ++out.others_;
      continue;
    }
    if (r.algorithm == kNetwork) {
      if (r.outcome == kOk && r.predicted > 0)
        out.networks_[r.kernel].push_back(r.seconds / r.predicted);
      continue;
    }
    if (r.algorithm == kFusion) {
      const size_t nodes = NodesOf(r.point);
      if (r.outcome != kOk || r.predicted <= 0 || nodes == 0) continue;
      Parts& parts = out.parts_[r.kernel][nodes];
      parts.ratios.push_back(r.seconds / r.predicted);
      parts.leader |= r.leader;
      continue;
    }
    KernelHistory& kernel = out.kernels_[r.kernel];
    const std::string trace = r.Trace();
    if (IsDeath(r)) ++kernel.deaths[trace];
    if (r.outcome == kStarted) continue;
    if (!r.IsCopy()) ++kernel.trials;
    if (r.outcome == kOk) {
      Measured& m = measured[r.kernel][trace];
      m.seconds.push_back(r.seconds);
      m.leader |= r.leader;
      if (m.id.empty()) m.id = r.id;
      kernel.noise = std::max(kernel.noise, r.noise);
    } else if (!IsDeath(r)) {
      kernel.failed.insert(trace);
    }
  }
  for (const auto& [kernel, points] : measured) Settle(points, &out.kernels_[kernel]);
  out.SettleCuts();
  return out;
}

void History::SettleCuts() {
  for (const auto& [key, ways] : parts_) {
    double best = 1;
    for (const auto& [nodes, parts] : ways) {
      const double ratio = measure::Median(parts.ratios);
      if (!parts.leader || ratio >= best) continue;
      best = ratio;
      cuts_[key] = nodes;
    }
  }
}

bool History::KnowsParts(const std::string& key, size_t nodes) const {
  const auto ways = parts_.find(key);
  return ways != parts_.end() && ways->second.contains(nodes);
}

const KernelHistory* History::Find(const std::string& kernel) const {
  const auto it = kernels_.find(kernel);
  return it == kernels_.end() ? nullptr : &it->second;
}

std::optional<double> History::RatioOf(const std::string& plan) const {
  const auto it = networks_.find(plan);
  return it == networks_.end() ? std::nullopt : std::optional(measure::Median(it->second));
}

void Learn(const Task& task, const KernelHistory& known, ResidualModel* model, Transfer* transfer) {
  std::map<std::string, double> residuals;
  for (const Candidate& c : task.candidates) {
    const std::string trace = c.Trace();
    const auto it = known.seconds.find(trace);
    if (it == known.seconds.end() || c.predicted <= 0) continue;
    residuals[trace] = std::log(it->second / c.predicted);
    model->Add(c.features, c.algorithm->name, task.kernel, residuals[trace]);
  }
  if (transfer && !residuals.empty()) {
    const graph::NodeId node = plan::FindKernel(task.graph, kFunction).value();
    transfer->Add(plan::AtSizes(graph::GroupOf(task.graph, node).region, task.sizes), task.kernel,
                  std::move(residuals));
  }
}

void Learn(const Relayout& relayout, const KernelHistory& known, const Machine& machine,
           ResidualModel* model) {
  const auto seconds = known.seconds.find(Relayout::Trace());
  const double predicted = relayout.Predicted(machine);
  if (seconds != known.seconds.end() && predicted > 0)
    model->Add({}, Relayout::kOpinion, relayout.kernel, std::log(seconds->second / predicted));
}

void Learn(const LogContents& contents, const History& history, const Machine& machine,
           ResidualModel* model, Transfer* transfer) {
  for (const auto& [kernel, known] : history.kernels()) {
    const auto text = contents.kernels.find(kernel);
    if (text == contents.kernels.end() || known.seconds.empty()) continue;
    const Expected<KernelText> read = KernelText::Read(text->second);
    if (!read) continue;
    if (graph::IsRelayout(read->graph, read->graph.node(read->node))) {
      Learn(Relayout(read->graph), known, machine, model);
      continue;
    }
    const Expected<Task> task = TaskOf(read->graph, read->node, machine, read->sizes);
    // A text that is another kernel's would teach nonsense.
    if (task && task->kernel == kernel) Learn(*task, known, model, transfer);
  }
}

LogPrices::LogPrices(const LogContents& contents, const Circumstances& circumstances,
                     const Machine& machine, std::vector<plan::ShapeWeight> shapes)
    : machine_(machine),
      shapes_(std::move(shapes)),
      history_(History::Of(contents, circumstances)) {
  Circumstances any = circumstances;
  any.cache = "";
  elsewhere_ = History::Of(contents, any);
  Learn(contents, elsewhere_, machine, &model_, &transfer_);
}

const KernelHistory* LogPrices::FindKernel(const std::string& kernel) const {
  const KernelHistory* here = history_.Find(kernel);
  return here && !here->seconds.empty() ? here : elsewhere_.Find(kernel);
}

double LogPrices::Relayout(const graph::TensorType& from, const Layout& to,
                           double predicted) const {
  if (elsewhere_.kernels().empty()) return predicted;
  const std::string kernel = tune::Relayout(from, to).kernel;
  const KernelHistory* known = FindKernel(kernel);
  if (known) {
    const auto measured = known->seconds.find(tune::Relayout::Trace());
    if (measured != known->seconds.end()) return measured->second;
  }
  return predicted * std::exp(model_.Predict({}, tune::Relayout::kOpinion, kernel).mean);
}

std::optional<double> LogPrices::Find(const ops::Algorithm& algorithm, const ops::Site& site,
                                      const ops::Point& point) const {
  if (elsewhere_.kernels().empty()) return std::nullopt;
  const std::string kernel = HashText(graph::RegionKey(site.region)).ToHex();
  const KernelHistory* known = FindKernel(kernel);
  const std::string trace = std::string(algorithm.name) + " " + graph::ChoicesText(point);
  if (!known || known->seconds.empty()) {
    if (model_.size() == 0) return std::nullopt;
    const WorkDescription work = algorithm.work(site, point);
    const auto neighbour = transfer_.NearestTo(site.region);
    if (!neighbour)
      return EstimateSeconds(work, site.machine) *
             std::exp(model_.Predict(FeaturesOf(work, site.machine), algorithm.name, kernel).mean);
    const Gaussian opinion =
        model_.Predict(FeaturesOf(work, site.machine), algorithm.name, neighbour->kernel);
    return EstimateSeconds(work, site.machine) *
           std::exp(Transfer::Residual(*neighbour, trace, opinion));
  }
  const auto measured = known->seconds.find(trace);
  const bool has_team = site.machine.workers == machine_.workers;
  if (measured != known->seconds.end() && has_team) return measured->second;
  const WorkDescription work = algorithm.work(site, point);
  const double predicted = EstimateSeconds(work, site.machine);
  if (measured != known->seconds.end()) {
    const double here =
        EstimateSeconds(algorithm.work({site.region, site.anchor, machine_}, point), machine_);
    return here > 0 ? measured->second * predicted / here : measured->second;
  }
  // What failed is never worth a try.
  if (known->IsBanned(trace)) return predicted * 1e3;
  const Gaussian residual = model_.Predict(FeaturesOf(work, site.machine), algorithm.name, kernel);
  return predicted * std::exp(residual.mean + std::sqrt(residual.variance));
}

}  // namespace tenon::tune

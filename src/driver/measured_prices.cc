#include "driver/measured_prices.h"

#include <fmt/format.h>

#include <cmath>

#include "driver/workbench.h"
#include "graph/text.h"
#include "plan/records.h"
#include "plan/region.h"
#include "plan/relayout.h"
#include "plan/space.h"
#include "support/file.h"
#include "support/hash.h"
#include "tune/log.h"

namespace tenon::driver {

namespace {

// Of records that cannot be read, before the rest is a number.
constexpr size_t kMostNamed = 3;

void Warn(const CompileOptions& options, const std::string& text) {
  if (options.warn) options.warn(text);
}

void WarnOfSkipped(const CompileOptions& options, const Diagnostics& skipped) {
  for (size_t i = 0; i < std::min(skipped.size(), kMostNamed); ++i)
    Warn(options, skipped[i].loc.ToString() + " " + skipped[i].message);
  if (skipped.size() > kMostNamed) {
    Warn(options, fmt::format("and {} more records of '{}' were passed over",
                              skipped.size() - kMostNamed, options.log));
  }
}

// The record that the node's plan follows at these sizes, if there is one.
void AddRecord(const tune::LogPrices& log, const graph::Graph& g, graph::NodeId n,
               const graph::Graph& region, const plan::SizedRegion& sized,
               nlohmann::ordered_json* out) {
  const std::string kernel = HashText(graph::RegionKey(sized.region)).ToHex();
  const tune::KernelHistory* known = log.FindKernel(kernel);
  if (!known) return;
  const graph::Plan& plan = *g.node(n).plan;
  const graph::Choices choices = plan::ChoicesAt(plan, plan::SizesOf(region, sized.sizes));
  const std::string trace = fmt::format("{} {}", plan.algorithm, graph::ChoicesText(choices));
  const auto seconds = known->seconds.find(trace);
  if (seconds == known->seconds.end()) return;
  nlohmann::ordered_json record = {{"node", plan::NameOf(g, n)}, {"kernel", kernel}};
  if (!sized.name.empty()) record["sizes"] = sized.name;
  record.update({{"point", trace},
                 {"measured_us", std::round(seconds->second * 1e9) / 1e3},
                 {"best", trace == known->best},
                 {"record", known->ids.at(trace)}});
  out->push_back(std::move(record));
}

// The record of a relayout that the network was given, if there is one.
void AddRelayout(const tune::LogPrices& log, const graph::Graph& g, graph::NodeId n,
                 nlohmann::ordered_json* out) {
  const graph::Node& node = g.node(n);
  const graph::TensorType& from = g.type(node.inputs[0]);
  if (!from.StaticDims()) return;
  const std::string kernel = tune::Relayout(from, g.type(node.outputs[0]).layout).kernel;
  const tune::KernelHistory* known = log.FindKernel(kernel);
  if (!known) return;
  const std::string trace = tune::Relayout::Trace();
  const auto seconds = known->seconds.find(trace);
  if (seconds == known->seconds.end()) return;
  out->push_back({{"node", plan::NameOf(g, n)},
                  {"kernel", kernel},
                  {"point", trace},
                  {"measured_us", std::round(seconds->second * 1e9) / 1e3},
                  {"best", true},
                  {"record", known->ids.at(trace)}});
}

}  // namespace

Expected<MeasuredPrices> ReadPrices(const CompileOptions& options, const Machine& machine,
                                    bool far_weights) {
  MeasuredPrices out;
  if (!options.prices.empty() && !options.log.empty())
    return MakeError("prices come from a log or from a file of prices: expected one of them");
  if (!options.prices.empty()) {
    TN_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.prices));
    TN_ASSIGN_OR_RETURN(plan::Records records, plan::Records::Parse(text, options.prices));
    out.prices = std::make_unique<plan::Records>(std::move(records));
  }
  if (options.log.empty()) return out;
  TN_ASSIGN_OR_RETURN(const tune::LogContents contents, tune::ReadLog(options.log));
  WarnOfSkipped(options, contents.skipped);
  const tune::Circumstances here{options.any_machine ? "" : MachineKeyOf(*machine.target),
                                 machine.target->ToString(), TeamOf(machine),
                                 tune::CacheState(far_weights)};
  auto log = std::make_unique<tune::LogPrices>(contents, here, machine, options.shape_weights);
  if (const int64_t others = log->others(); others > 0) {
    Warn(options, fmt::format("{} of {} records of '{}' are of another machine, target, number of "
                              "threads or version of an algorithm, and were passed over",
                              others, contents.records.size(), options.log));
  }
  out.log = log.get();
  out.prices = std::move(log);
  return out;
}

std::string PlanKey(std::span<const graph::Graph> planned) {
  std::string text;
  for (const graph::Graph& g : planned) text += graph::Print(g);
  return HashText(text).ToHex();
}

nlohmann::ordered_json RecordsUsed(const tune::LogPrices& log,
                                   std::span<const graph::Graph> graphs) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const graph::Graph& g : graphs) {
    for (graph::NodeId n : graph::KernelNodes(g)) {
      if (!g.node(n).plan) continue;
      if (graph::IsRelayout(g, g.node(n))) {
        AddRelayout(log, g, n, &out);
        continue;
      }
      const graph::Graph region = graph::GroupOf(g, n).region;
      for (const plan::SizedRegion& sized : plan::AtWeightedSizes(region, log.Shapes()))
        AddRecord(log, g, n, region, sized, &out);
    }
  }
  return out;
}

}  // namespace tenon::driver

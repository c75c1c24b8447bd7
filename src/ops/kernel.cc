#include "ops/kernel.h"

#include <fmt/format.h>

#include "graph/named_sizes.h"
#include "ir/print.h"
#include "ops/called_function.h"
#include "ops/group.h"
#include "ops/loop_kernel.h"
#include "ops/operations.h"
#include "support/check.h"

namespace tenon::ops {

namespace {

Status CheckWants(const Group& group, const Algorithm& algorithm, const Point& point) {
  const graph::Graph& region = group.graph();
  const auto wants = WantsOf(algorithm, group.site(), point);
  if (!wants) {
    return MakeError(fmt::format(
        "the algorithm '{}' wants cells around a value that is computed here", algorithm.name));
  }
  for (const Want& want : *wants) {
    const StoredTensor* stored = group.Stored(want.value);
    for (size_t k = 0; k < region.outputs.size(); ++k) {
      if (region.outputs[k] == want.value) stored = &group.output(k);
    }
    if (!stored || want.IsMetBy(stored->desc, stored->dims)) continue;
    auto text = [&](const StorageDesc& desc) {
      const Layout layout = MakeLayout(desc, stored->dims);
      return layout ? tenon::ToString(layout) : "row-major";
    };
    return MakeError(
        fmt::format("{} does not lie as the algorithm '{}' wants it: expected {}, but got {}",
                    graph::Quoted(region.value(want.value).name), algorithm.name, text(want.desc),
                    text(stored->desc)));
  }
  return Ok();
}

// Sets the kernel's algorithm and point; errors as BuildKernel.
Status Resolve(const KernelRequest& request, const Group& group, Kernel* kernel) {
  const std::string name = request.plan ? request.plan->algorithm : "definition";
  kernel->algorithm = FindAlgorithm(name);
  if (!kernel->algorithm) return MakeError(fmt::format("there is no algorithm '{}'", name));
  const Site site = group.site();
  if (!Applies(*kernel->algorithm, site)) {
    return MakeError(fmt::format("the algorithm '{}' does not apply here", name));
  }
  kernel->space = kernel->algorithm->space(site);
  if (!request.plan) return Ok();
  kernel->seconds = request.plan->seconds;
  Expected<Point> point = kernel->space.PointOf(request.plan->AllChoices());
  if (!point) {
    return MakeError(fmt::format("the plan '{}' chooses no point of the algorithm's space: {}",
                                 name, point.errors()[0].message));
  }
  kernel->point = std::move(*point);
  return CheckWants(group, *kernel->algorithm, kernel->point);
}

}  // namespace

graph::NodeId AnchorOf(const graph::Graph& region) {
  graph::NodeId short_sum = graph::kNoNode;
  for (size_t n = region.nodes.size(); n-- > 0;) {
    const auto id = static_cast<graph::NodeId>(n);
    if (HasElementDefinition(region.nodes[n].op)) continue;
    if (!IsShortSum(region, region.nodes[n])) return id;
    if (short_sum == graph::kNoNode) short_sum = id;
  }
  return short_sum;
}

static Expected<Kernel> Build(const KernelRequest& request) {
  Group group(request);
  const graph::Graph& g = *request.region;
  Kernel plan;
  TN_RETURN_IF_ERROR(Resolve(request, group, &plan));
  double flops = 0;
  const bool called = group.CallsFunction(), loop = group.IsLoop();
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    const graph::Node& node = g.nodes[n];
    flops += OperationsOf(g, node);
    if (called || loop) continue;
    if (static_cast<graph::NodeId>(n) == group.anchor() && plan.algorithm->build) {
      group.Set(node.outputs[0], plan.algorithm->build(group, node, plan.point));
    } else {
      group.DefineNode(node);
    }
  }
  TN_ASSIGN_OR_RETURN(Kernel kernel, called ? BuildCall(request, group)
                                     : loop ? BuildLoop(request, group)
                                            : group.Finish());
  kernel.kind =
      group.anchor() == graph::kNoNode ? "elementwise" : graph::Name(g.node(group.anchor()).op);
  kernel.flops = static_cast<int64_t>(flops);
  kernel.seconds = plan.seconds;
  kernel.algorithm = plan.algorithm;
  kernel.space = std::move(plan.space);
  kernel.point = std::move(plan.point);
  return kernel;
}

// What an algorithm asks of a region may follow from what its sizes are made of: then these keep
// their formulas.
Expected<Kernel> BuildKernel(const KernelRequest& request) {
  VarMap values;
  Expected<Kernel> kernel = Diagnostics();
  if (const auto named = graph::NameSizes(*request.region)) {
    KernelRequest own = request;
    own.region = &named->region;
    kernel = Build(own);
    values = named->values;
  }
  if (!kernel) {
    kernel = Build(request);
    values.clear();
  }
  if (!kernel) return kernel;
  for (const Var& dim : kernel->func->dims) {
    const auto value = values.find(dim.get());
    kernel->sizes.push_back(value == values.end() ? Expr(dim) : value->second);
  }
  return kernel;
}

Expected<Schedule> ScheduleKernel(const Kernel& kernel, const Machine& machine) {
  Module module;
  module.Add(kernel.func);
  for (const Func& callee : kernel.callees) module.Add(callee);
  Schedule schedule(module, kernel.func->name);
  for (size_t i = 0; i < kernel.point.size(); ++i) {
    schedule.Decide(kernel.point[i].name, kernel.space.knobs()[i].domain, kernel.point[i].value);
  }
  kernel.algorithm->schedule(schedule, kernel.parts, machine, kernel.point);
  if (!schedule.ok()) return schedule.status().errors();
  return schedule;
}

}  // namespace tenon::ops

#include "ops/kernel.h"

#include <fmt/format.h>

#include "ops/algorithms.h"
#include "ops/group.h"
#include "ops/rules.h"
#include "support/check.h"

namespace tenon::ops {

static int64_t Count(const graph::Graph& g, const graph::TensorType& type) {
  int64_t n = 1;
  for (const Expr& d : type.dims) n *= TypicalSize(g, d);
  return n;
}

// Floating-point operations of one node, by its definition.
static int64_t Flops(const graph::Graph& g, const graph::Node& n) {
  int64_t out = Count(g, g.type(n.outputs[0]));
  switch (n.op) {
    case graph::OpKind::kMatMul: {
      const graph::TensorType& a = g.type(n.inputs[0]);
      bool trans = n.attrs.Get<bool>("trans_a", false);
      return 2 * out * TypicalSize(g, a.dims[a.dims.size() - (trans ? 2 : 1)]);
    }
    case graph::OpKind::kConv: {
      const graph::TensorType& w = g.type(n.inputs[1]);
      return 2 * out * (Count(g, w) / TypicalSize(g, w.dims[0]));
    }
    case graph::OpKind::kAttention: {
      int64_t keys = TypicalSize(g, g.type(n.inputs[1]).dims.rbegin()[1]);
      return 2 * keys * (Count(g, g.type(n.inputs[0])) + out);
    }
    case graph::OpKind::kMaxPool:
    case graph::OpKind::kMaxPoolIndices:
    case graph::OpKind::kAvgPool: {
      int64_t window = 1;
      for (int64_t k : n.attrs.GetInts("kernel")) window *= k;
      return out * window;
    }
    default: break;
  }
  return graph::Info(n.op).map == graph::IndexMapClass::kReduction ? Count(g, g.type(n.inputs[0]))
                                                                   : out;
}

Expected<Kernel> BuildKernel(const KernelRequest& request) {
  Group group(request);
  const graph::Graph& g = *request.region;
  std::string rule = "map", kind = "elementwise";
  Attrs attrs;
  int64_t flops = 0;
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    const graph::Node& node = g.nodes[n];
    flops += Flops(g, node);
    bool is_anchor = static_cast<int>(n) == group.anchor();
    if (is_anchor) kind = graph::Name(node.op);
    if (is_anchor && request.tuned_algorithms) {
      if (const Algorithm* algorithm = ChooseAlgorithm(group, node)) {
        group.Set(node.outputs[0], algorithm->build(group, node, &attrs));
        rule = algorithm->rule;
        continue;
      }
    }
    group.DefineNode(node);
  }
  TN_ASSIGN_OR_RETURN(Kernel kernel, group.Finish(rule, std::move(attrs)));
  kernel.kind = kind;
  kernel.flops = flops;
  return kernel;
}

Expected<Schedule> ScheduleKernel(const Func& kernel, const Target& target) {
  Module module;
  module.Add(kernel);
  Schedule schedule(module, kernel->name);
  std::string name = kernel->attrs.GetString("rule");
  const Rule* rule = FindRule(name);
  TN_CHECK(rule, "no schedule rule '{}'", name);
  rule->apply(schedule, target);
  if (!schedule.ok()) return schedule.status().errors();
  return schedule;
}

}  // namespace tenon::ops

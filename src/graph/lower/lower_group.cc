#include "graph/lower/lower_group.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/storage_desc.h"
#include "ir/print.h"
#include "ops/kernel.h"
#include "plan/region.h"

namespace tenon::graph {

// As between the kernels of a network.
static constexpr int64_t kAlign = 64;

static Diagnostics InLowering(Diagnostics errors, const std::string& what) {
  for (Diagnostic& d : errors) d.notes.push_back("while lowering " + what);
  return errors;
}

// A graph's text may say layouts that no plan gives.
static Status CheckLayouts(const Graph& region) {
  for (const std::vector<ValueId>& border : {region.inputs, region.outputs}) {
    for (ValueId v : border) {
      const TensorType& type = region.type(v);
      if (ReadLayout(type.layout, type.dims)) continue;
      return MakeError(fmt::format("{} has a layout that kernels do not know: {}",
                                   Quoted(region.value(v).name), ToString(type.layout)));
    }
  }
  return Ok();
}

Expected<Module> LowerGroup(const Graph& g, NodeId node, const Machine& machine,
                            const std::string& name) {
  const Group group = GroupOf(g, node);
  if (Status ok = CheckLayouts(group.region); !ok)
    return InLowering(std::move(ok.errors()), Describe(g, node));
  ops::KernelRequest request;
  request.name = name;
  request.region = &group.region;
  request.machine = &machine;
  request.plan = g.node(node).plan.get();
  auto align = [&](ValueId v, const std::vector<ValueId>& arguments) {
    const bool argument = std::find(arguments.begin(), arguments.end(), v) != arguments.end();
    return argument ? 0 : kAlign;
  };
  for (ValueId v : group.operands) request.input_align.push_back(align(v, g.inputs));
  for (ValueId v : g.node(node).outputs) request.output_align.push_back(align(v, g.outputs));
  Expected<ops::Kernel> kernel = ops::BuildKernel(request);
  if (!kernel) return InLowering(std::move(kernel.errors()), Describe(g, node));
  Expected<Schedule> schedule = ops::ScheduleKernel(*kernel, machine);
  if (!schedule) return InLowering(std::move(schedule.errors()), Describe(g, node));
  Module module = schedule->module();
  PrimFunc exported = *module.Find(name);
  exported.attrs.Set("exported", true);
  module.Add(PrimFunc::Make(std::move(exported)));
  return module;
}

}  // namespace tenon::graph

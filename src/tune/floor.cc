#include "tune/floor.h"

#include "graph/text.h"
#include "ops/kernel.h"
#include "plan/region.h"
#include "plan/space.h"
#include "tune/task.h"

namespace tenon::tune {

namespace {

// Multiply-adds and the like of one worker: by the fastest unit that takes such operands.
double FlopsPerSecond(DType operand, const Machine& machine) {
  double best = machine.VectorUnit(operand).FlopsPerSecond();
  for (const ComputeUnit& unit : machine.units) {
    if (unit.a == operand) best = std::max(best, unit.FlopsPerSecond());
  }
  return best;
}

double BytesPerSecond(const MemoryRate& level, double team) {
  const double all = team * level.worker_bytes_per_second;
  const double limit = level.machine_bytes_per_second;
  return limit > 0 ? std::min(all, limit) : all;
}

}  // namespace

Expected<Floor> FloorOf(const std::string& text, const Machine& machine, int64_t team,
                        bool far_weights) {
  TN_ASSIGN_OR_RETURN(const KernelText kernel_text, KernelText::Read(text));
  const graph::Group group = graph::GroupOf(kernel_text.graph, kernel_text.node);
  const graph::Graph region =
      plan::AtSizes(group.region, plan::SizesOf(group.region, kernel_text.sizes));
  ops::KernelRequest request{.name = kFunction, .region = &region, .machine = &machine};
  request.input_align.assign(region.inputs.size(), 64);
  request.output_align.assign(region.outputs.size(), 64);
  TN_ASSIGN_OR_RETURN(const ops::Kernel kernel, ops::BuildKernel(request));

  Floor floor{.kind = kernel.kind, .flops = kernel.flops, .bytes = kernel.bytes};
  const graph::ValueId operand =
      group.anchor == graph::kNoNode ? region.outputs[0] : region.node(group.anchor).inputs[0];
  // A device's launch is all of its workers'.
  const int64_t at_once = machine.target->IsDevice() ? machine.workers : team;
  const auto workers = static_cast<double>(std::max<int64_t>(1, at_once));
  const size_t level = far_weights ? machine.memory.size() - 1 : machine.LevelFor(kernel.bytes);
  floor.compute_seconds = static_cast<double>(kernel.flops) /
                          (workers * FlopsPerSecond(region.type(operand).dtype, machine));
  floor.memory_seconds =
      static_cast<double>(kernel.bytes) / BytesPerSecond(machine.memory[level], workers);
  return floor;
}

}  // namespace tenon::tune

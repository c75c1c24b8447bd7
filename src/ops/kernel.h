// From a fused group of the graph to a kernel: the group's definition as loop IR, and its schedule
// by rule.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "loop/func.h"
#include "ops/storage.h"
#include "schedule/schedule.h"
#include "support/expected.h"
#include "target/target.h"

namespace tenon::ops {

/// What is to be computed: a region (the body of a `fused` node, or one node by itself) on tensors
/// that are stored as their types say. Symbolic dims become the kernel's, as far as it mentions
/// them.
struct KernelRequest {
  std::string name;
  const graph::Graph* region;
  const Target* target;
  /// Alignment of each region input and output in bytes: 64 between kernels, the element's size for
  /// arguments.
  std::vector<int64_t> input_align, output_align;
  bool tuned_algorithms = true;  // false: definitions under the fallback rule only (-O0)
};

/// An unscheduled kernel. Its attributes name the rule that schedules it ("rule") and what the rule
/// needs to know.
struct Kernel {
  Func func;
  std::vector<graph::ValueId>
      operands;      // region inputs that became parameters, in order (scalars are built in)
  std::string kind;  // "conv", "matmul", "softmax", "elementwise", …
  // At the typical sizes of dims:
  int64_t flops = 0;
  int64_t bytes = 0;  // read and written at least
};

Expected<Kernel> BuildKernel(const KernelRequest& request);

/// Applies the rule named by the kernel's attributes. The schedule's module holds the kernel and
/// what it outlined, its trace says how.
Expected<Schedule> ScheduleKernel(const Func& kernel, const Target& target);

}  // namespace tenon::ops

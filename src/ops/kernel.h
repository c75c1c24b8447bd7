// From a planned group of the graph to a kernel: what the plan's algorithm computes as loop IR, and
// its schedule.
#pragma once

#include <string>
#include <vector>

#include "cost/machine.h"
#include "graph/graph.h"
#include "ir/visit.h"
#include "loop/func.h"
#include "ops/algorithm.h"
#include "ops/storage.h"
#include "schedule/schedule.h"
#include "support/expected.h"

namespace tenon::ops {

/// What is to be computed: a region (the body of a `fused` node, or one node by itself) on tensors
/// that are stored as their types say. Symbolic dims become the kernel's, as far as it mentions
/// them.
struct KernelRequest {
  std::string name;
  const graph::Graph* region;
  const Machine* machine;
  const graph::Plan* plan = nullptr;  // null: the definition
  /// Dims of the region that have one size wherever the kernel is launched, as numbers. Algorithms
  /// may leave out what is nothing then; loops, memory and the space are those of all sizes.
  VarMap known;
  /// Alignment of each region input and output in bytes: 64 between kernels, the element's size for
  /// arguments.
  std::vector<int64_t> input_align, output_align;
};

/// An unscheduled kernel, and what its schedule needs to know.
struct Kernel {
  Func func;
  std::vector<Expr> sizes;  // of each of its dims, over those of the region
  std::vector<graph::ValueId>
      operands;  // region inputs that became parameters, in order (scalars are built in)
  std::vector<Func> callees;  // device functions that it calls as it is
  std::string kind;           // "conv", "matmul", "softmax", "elementwise", …
  // At the typical sizes of dims:
  int64_t flops = 0;
  int64_t bytes = 0;   // read and written at least
  double seconds = 0;  // predicted, of one launch
  Parts parts;
  const Algorithm* algorithm = nullptr;
  Space space;
  Point point;
};

/// Errors: the plan names no algorithm, one that does not apply, a point outside of its space, or
/// operands that do not lie as it wants them.
Expected<Kernel> BuildKernel(const KernelRequest& request);

/// The schedule at the kernel's point. Its module holds the kernel and what it outlined, its trace
/// says how.
Expected<Schedule> ScheduleKernel(const Kernel& kernel, const Machine& machine);

/// The anchor of a region: its last operator whose elements are no expressions of its operands'
/// elements, short sums aside where there is another; kNoNode where there is none. Others before it
/// are small and computed again by those who need them (plan/small_sums.h).
graph::NodeId AnchorOf(const graph::Graph& region);

}  // namespace tenon::ops

// From a graph to loop IR: one kernel per distinct group, a host function that launches them, and a
// prepare function per weight that is computed from weights alone. The only place that knows both
// IRs.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "loop/func.h"
#include "ops/kernel.h"
#include "support/expected.h"

namespace tenon::graph {

/// One constant of the weight segment.
struct Weight {
  std::string name;
  TensorType type;
  uint64_t offset = 0, bytes = 0;  // in the segment; bytes as stored, padding included
  /// A copy of `source` (prepare empty), or what the host function `prepare` of the prepare module
  /// computes from `sources` (its buffer parameters in order, then the weight).
  Payload source;
  std::string prepare;
  std::vector<Payload> sources;
};

/// What is told about a kernel.
struct KernelInfo {
  std::string name, kind;
  int64_t flops = 0, bytes = 0;  // of one launch, at the typical sizes of dims
  int64_t launches = 0;          // in one call with typical sizes
  double seconds = 0;            // predicted, of one launch; 0: nobody planned it
};

struct LoweredNetwork {
  Module module;   // unscheduled kernels and the host function `main`
  Module prepare;  // likewise the host functions prepare_0, …
  std::vector<Weight> weights;
  uint64_t weights_bytes = 0;
  std::vector<KernelInfo> kernels;
  std::map<std::string, ops::Kernel> scheduled;  // every kernel of both modules, by name
};

struct LowerOptions {
  const Machine* machine;          // of the kernels
  const Machine* prepare_machine;  // of what computes weights: the machine that compiles
  std::string name = "main";
  bool plan_prepare = true;  // else weights are computed by definitions
};

/// The graph's nodes are `fused`, single operators or control flow, whose regions are likewise;
/// those without a plan are computed by their definition, and a plan's variants are kernels, one of
/// which a call launches. Its symbolic dims are dims of `main`,
/// with their ranges and the graph's constraints, and of the kernels that mention them. Errors name
/// the node: values that are not tensors of numbers and bools are not compiled yet.
Expected<LoweredNetwork> Lower(const Graph& g, const LowerOptions& options);

/// Several graphs as one network, which share kernels: each a host function by its graph's name,
/// instead of that of the options.
Expected<LoweredNetwork> LowerAll(std::span<const Graph> graphs, const LowerOptions& options);

}  // namespace tenon::graph

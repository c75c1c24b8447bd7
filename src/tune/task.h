// A kernel to be tuned: what it computes, by itself, and all ways to compute it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "graph/graph.h"
#include "ops/algorithm.h"
#include "plan/shape_weights.h"
#include "support/expected.h"
#include "tune/bench.h"
#include "tune/residual_model.h"

namespace tenon::tune {

/// A point of one of a task's spaces.
struct Candidate {
  const ops::Algorithm* algorithm = nullptr;
  ops::Point point;
  double predicted = 0;  // seconds, by the model of costs
  Features features{};
  size_t layout = 0;     // points with the same number want the kernel's data, its weights aside,
                         // to lie alike
  size_t structure = 0;  // points with the same number have the same schedule but for its numbers

  /// "packed_matmul {nv: 4, tile_rows: 6}".
  std::string Trace() const;
};

struct Task {
  std::string name;    // of the first node that is it
  std::string kernel;  // a hash of what it computes: operators, attributes, types
  std::string kind;    // of its anchor: "matmul"
  int64_t launches = 1;
  double weight = 1;  // of its sizes among those of its kernel, where that has open ones
  /// The kernel's text: a graph of one fused node, whose operands and results are kept from the
  /// graph's border by relayouts that change nothing, so that they are aligned as within a network.
  graph::Graph graph;
  VarMap sizes;                 // of the graph's dims, at which it is measured
  std::string open;             // what the tasks of a kernel of open sizes share; "": it has none
  std::vector<bool> weights;    // by operand: whether it is one
  std::vector<int64_t> limits;  // by operand: of integers that are places (Parameter::limit)
  std::vector<Candidate> candidates;  // by predicted time; of equal ones by trace
  size_t chosen = 0;                  // what planning takes without measurements

  /// "graph @kernel(…) {…}"; of open sizes with the line "at n=7,m=3" after it.
  std::string Text() const;
};

/// A kernel's text, read.
struct KernelText {
  graph::Graph graph;
  graph::NodeId node = graph::kNoNode;
  std::vector<int64_t> sizes;  // of the graph's dims

  static Expected<KernelText> Read(const std::string& text);
};

/// A value that is laid out anew, between a kernel that stores it one way and one that wants it
/// another. There is one way to do that; plans weigh what it takes against what layouts gain.
struct Relayout {
  Relayout(const graph::TensorType& from, const Layout& to);
  /// Of a text that was read.
  explicit Relayout(graph::Graph text);

  static const ops::Algorithm& Algorithm();  // by which it is computed
  // What it counts as where predictions are corrected: its price is no other definition's.
  static constexpr const char* kOpinion = "relayout";
  static std::string Trace();
  double Predicted(const Machine& machine) const;
  std::string Text() const;

  graph::Graph graph;  // plan/relayout.h
  std::string kernel;  // a hash of its text
  double weight = 0;   // what plans that were made have looked at it for: seconds
};
Expected<LoweredCandidate> LowerRelayout(const Relayout& relayout, const Machine& machine);
/// A copy that is laid out as callers have it, which answers are compared with.
Expected<LoweredCandidate> LowerCopy(const Relayout& relayout, const Machine& machine);

struct Tasks {
  std::vector<Task> tasks;            // in the order of the network
  std::vector<Relayout> relayouts;    // between these; those that weigh most first
  std::vector<std::string> left_out;  // kernels that cannot be measured, with the reason
};

/// The kernels of a planned graph that leave something open, equal ones once; one of open sizes
/// once for each of the sizes that count (plan/shape_weights.h). Deterministic.
Tasks TasksOf(const graph::Graph& planned, const Machine& machine,
              const std::vector<plan::ShapeWeight>& shapes = {});
/// The task of a kernel by itself: a graph with one node that becomes a kernel, with these sizes of
/// its dims. Errors say why it cannot be tuned.
Expected<Task> TaskOf(const graph::Graph& g, graph::NodeId node, const Machine& machine,
                      const std::vector<int64_t>& sizes = {});

/// `far_weights`: weights lie farther away than the machine's L2.
Expected<LoweredCandidate> LowerCandidate(const Task& task, const Candidate& candidate,
                                          const Machine& machine, bool far_weights);
/// A node of a planned graph that becomes a kernel, as the graph has it, with operands of `sizes`
/// of the graph's dims.
Expected<LoweredCandidate> LowerNode(const graph::Graph& planned, graph::NodeId node,
                                     const Machine& machine, const VarMap& sizes = {});
/// The task computed by its definition, which answers are compared with.
Expected<LoweredCandidate> LowerDefinition(const Task& task, const Machine& machine);

}  // namespace tenon::tune

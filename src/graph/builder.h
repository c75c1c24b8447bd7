// Building graphs node by node, with inference as one goes.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "graph/infer.h"

namespace tenon::graph {

/// Appends nodes to a graph that it owns. Every Add infers types and elements; a node whose
/// elements all come out as numbers is not added: its result is a constant. Errors are the type
/// rule's, located at the node's name.
class Builder {
 public:
  explicit Builder(std::string name = "main");
  /// Continues a graph that verifies.
  explicit Builder(Graph g);

  Graph& graph() { return graph_; }
  const TensorType& type(ValueId v) const { return graph_.type(v); }
  /// The graph, without what its outputs do not need.
  Graph Finish() &&;

  /// Adds a symbolic dim of that name, or finds it.
  Expr DimVar(const std::string& dim_name);
  ValueId Input(std::string value_name, TensorType type);
  ValueId Constant(std::string value_name, TensorType type, Payload payload);
  void Output(std::string output_name, ValueId v) { graph_.AddOutput(std::move(output_name), v); }
  ValueId Scalar(DType dtype, double value);

  /// Operators with one output. `name` is the node's and the value's name. An operator that would
  /// change nothing (a reshape to the same dims, a cast to the same dtype) adds no node: the answer
  /// is its input.
  Expected<ValueId> Add(OpKind op, std::vector<ValueId> inputs, std::string name = "",
                        Attrs attrs = {}, ExprAttrs exprs = {});

  /// The known elements of a value, or null.
  const Elements* Known(ValueId v) const;
  /// The known elements as numbers, or nullopt.
  std::optional<std::vector<int64_t>> KnownInts(ValueId v) const;

  /// Records what a type rule, or an importer, had to assume of the symbolic dims: as a constraint,
  /// or as the range of a dim where that says it.
  void Require(const Expr& condition);

 private:
  void Remember(ValueId v, Elements elements);

  Graph graph_;
  std::unordered_map<ValueId, Elements> known_;
  int64_t known_left_ = Limits::kKnownTotal;  // beyond it nothing more is followed or folded
};

}  // namespace tenon::graph

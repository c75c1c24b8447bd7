// Building graphs node by node, with inference as one goes.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
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
  const Graph& graph() const { return graph_; }
  const TensorType& type(ValueId v) const { return graph_.type(v); }
  /// The graph, without what its outputs do not need.
  Graph Finish() &&;

  /// The dim that is how many of something a scalar of i64 says there are: a new one, named after
  /// `dim_name`, or that of a scalar computed alike. There are 0 to `most`; without a `most` it is
  /// found before a call asks for memory, by computing what the scalar needs twice.
  Expected<Expr> DefineDim(const std::string& dim_name, ValueId count, const Expr& most = nullptr);
  /// For the builder of a region: its dims are those of the graph around it.
  void ShareDims(const Builder& outer);
  ValueId Input(std::string value_name, Type type);
  ValueId Constant(std::string value_name, TensorType type, Payload payload);
  void Output(std::string output_name, ValueId v) { graph_.AddOutput(std::move(output_name), v); }
  ValueId Scalar(DType dtype, double value);

  /// The first result of an operator. `name` is the node's and the value's name. An operator that
  /// would change nothing (a reshape to the same dims, a cast to the same dtype) adds no node: the
  /// answer is its input.
  Expected<ValueId> Add(OpKind op, std::vector<ValueId> inputs, std::string name = "",
                        Attrs attrs = {}, ExprAttrs exprs = {});
  /// The first `results` results of an operator that has as many. Such a node is always added.
  Expected<std::vector<ValueId>> AddAll(OpKind op, size_t results, std::vector<ValueId> inputs,
                                        std::string name = "", Attrs attrs = {},
                                        ExprAttrs exprs = {});
  /// A node with regions: all its results. What the regions require of symbolic dims (their
  /// constraints and the ranges of their dims) becomes the graph's.
  Expected<std::vector<ValueId>> AddRegions(OpKind op, std::vector<ValueId> inputs,
                                            std::vector<Graph> regions, std::string name = "",
                                            Attrs attrs = {}, ExprAttrs exprs = {});

  /// The known elements of a value, or null.
  const Elements* Known(ValueId v) const;
  /// The known elements as numbers, or nullopt.
  std::optional<std::vector<int64_t>> KnownInts(ValueId v) const;

  /// States the elements of a value that somebody else knows: of a region's input.
  void Assume(ValueId v, Elements elements) { Remember(v, std::move(elements)); }

  /// Whether an expression has a dim that is not known when a call begins.
  bool MentionsLate(const Expr& e) const;
  /// Records what a type rule, or an importer, had to assume of the symbolic dims: as a constraint,
  /// or as the range of a dim where that says it. Messages name the asker.
  void Require(const Expr& condition) { Require(condition, asker_); }
  /// Who asks from now on, as of a Constraint. Answers who did before.
  std::string SetAsker(std::string asker) { return std::exchange(asker_, std::move(asker)); }
  /// An error where something was required, since this was asked last, of a dim that is found while
  /// a call runs: nobody could check it.
  Status CheckRequired();

 private:
  void Require(const Expr& condition, const std::string& asker);
  /// What Add and AddAll have in common: a node that may be added, its operands' types, its own.
  struct Inferred {
    Node node;
    Types types;
    std::optional<Elements> elements;  // of the first result
    bool identity = false;             // the first result is the first input
  };
  Expected<Inferred> Infer(Node node);
  void Remember(ValueId v, Elements elements);

  Graph graph_;
  std::string asker_;
  std::unordered_set<const VarNode*> late_;  // dims that are found while a call runs
  Expr required_late_;                       // the first condition that mentions one, or null
  std::unordered_map<ValueId, Elements> known_;
  int64_t known_left_ = Limits::kKnownTotal;  // beyond it nothing more is followed or folded
};

}  // namespace tenon::graph

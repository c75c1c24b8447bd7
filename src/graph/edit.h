// Helpers for passes that edit a graph in place. They keep ids stable until Compact.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace tenon::graph {

/// users[v]: the nodes that read value v, in order, once per node. Graph outputs do not count.
std::vector<std::vector<NodeId>> Users(const Graph& g);
/// How often each value is read by nodes (once per operand) and as a graph output.
std::vector<int32_t> UseCounts(const Graph& g);

/// Whether what a node computes depends on the sizes of the graph's dims beyond what its operands
/// do: dims in its attributes or results, or in those of its regions.
bool UsesDims(const Graph& g, const Node& n);

/// The dim that a node defines (`dim`); null for any other.
Var DefinedDim(const Node& n);
/// Whether a node defines a dim that is found before a call asks for memory: one without a `most`.
bool IsFoundEarly(const Node& n);

/// Which nodes have sizes that other nodes define.
class DimUses {
 public:
  explicit DimUses(const Graph& g);
  /// The nodes that define dims which the node's attributes or results mention, or those in its
  /// regions; not itself.
  std::vector<NodeId> DefinersFor(NodeId id) const;
  /// Likewise for expressions over the graph's dims.
  std::vector<NodeId> DefinersFor(std::span<const Expr> exprs) const;
  bool empty() const { return definer_of_.empty(); }

 private:
  void Collect(std::span<const Expr> exprs, std::vector<NodeId>* out) const;

  const Graph& g_;
  std::map<const VarNode*, NodeId> definer_of_;
};

/// Makes every reader of `from`, graph outputs too, read `to`.
void ReplaceAllUses(Graph& g, ValueId from, ValueId to);

/// Appends the nodes and values of the graph that outputs depend on, in the old order; drops the
/// rest, and the dims that dropped nodes define; renumbers. Graph inputs stay, used or not. Answers
/// the new id of each old value (kNoValue where dropped).
std::vector<ValueId> Compact(Graph& g);

/// Sorts nodes so that producers come first, keeping the old order where it may (stable). False
/// where there is a cycle; the graph is then unchanged.
bool TopologicalSort(Graph& g);

/// Puts expressions for dims throughout (types, attributes, constraints) and drops these dims.
/// Types are simplified.
Graph SubstituteDims(const Graph& g, const std::map<std::string, Expr>& values);

/// The nodes as a region: a graph whose inputs are the values that they read from outside
/// (constants too), in order of first use, and whose outputs are `outputs`. `operands` gets those
/// outside values.
Graph ExtractRegion(const Graph& g, const std::vector<NodeId>& nodes,
                    const std::vector<ValueId>& outputs, std::vector<ValueId>* operands);

}  // namespace tenon::graph

// Values in another layout: reshapes to the same dims, which change only how a value lies in
// memory.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "cost/machine.h"
#include "graph/graph.h"
#include "ops/algorithm.h"
#include "plan/prices.h"

namespace tenon::graph {

/// Whether a node is a reshape to the dims that its operand has.
bool IsRelayout(const Graph& g, const Node& node);

/// A relayout by itself: the node of this name in a graph where other relayouts keep it from the
/// graph's border, so that its operand and result are aligned as within a network. Its text is what
/// records are about; they say nothing of relayouts of open sizes.
Graph RelayoutKernel(const TensorType& from, const Layout& to, const std::string& name);
/// What the model says that node takes at typical sizes, and all relayouts of values of this size.
double RelayoutSecondsOf(const Graph& g, const TensorType& type, const Machine& machine);

/// Makes relayouts in one graph, at its end; whoever asked for them sorts the nodes when done.
/// Those of constants cost nothing at run time and have no plan; others are planned.
class Relayouts {
 public:
  /// `prices`: what has been measured; null: nothing.
  Relayouts(Graph* g, const Machine& machine, const plan::Prices* prices = nullptr);

  /// A copy of the value in that layout; the same for the same question.
  ValueId Of(ValueId v, const Layout& layout);
  /// The value itself where it lies as wanted (`want.value` is its name in a region), else a copy
  /// that does, made of what the value is a copy of. `border`: cells that the copy has around it,
  /// where the want asks for some.
  ValueId Meeting(ValueId v, const ops::Want& want, const StorageDesc* border = nullptr);

  /// Seconds of a relayout at typical sizes of a value that lies so.
  double Seconds(ValueId v, const Layout& from, const Layout& to) const;
  bool IsConstant(ValueId v) const {
    return static_cast<size_t>(v) < constant_.size() && constant_[static_cast<size_t>(v)];
  }

 private:
  // What the value is a copy of, in another layout: itself where it is none.
  ValueId Origin(ValueId v) const;

  Graph* g_;
  const Machine& machine_;
  const plan::Prices* prices_;
  std::vector<bool> constant_;                                // of the values at first
  std::map<std::pair<ValueId, std::string>, ValueId> known_;  // by value and layout
};

}  // namespace tenon::graph

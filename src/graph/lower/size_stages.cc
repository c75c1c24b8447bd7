#include "graph/lower/size_stages.h"

#include <algorithm>
#include <unordered_map>

#include "graph/edit.h"

namespace tenon::graph {
namespace {

/// Which stage each value belongs to: 0 depends on arguments alone, the next on dims that it finds.
class Stages {
 public:
  explicit Stages(const Graph& g) : of_value_(g.values.size(), 0) {
    const DimUses dims(g);
    for (size_t n = 0; n < g.nodes.size(); ++n) {
      const Node& node = g.nodes[n];
      size_t stage = 0;
      for (ValueId v : node.inputs) {
        if (v != kNoValue) stage = std::max(stage, Of(v));
      }
      for (NodeId definer : dims.DefinersFor(static_cast<NodeId>(n))) {
        const Node& found = g.node(definer);
        stage = std::max(stage, Of(found.outputs[0]) + (IsFoundEarly(found) ? 1 : 0));
      }
      for (ValueId v : node.outputs) of_value_[static_cast<size_t>(v)] = stage;
    }
  }
  size_t Of(ValueId v) const { return of_value_[static_cast<size_t>(v)]; }

 private:
  std::vector<size_t> of_value_;
};

}  // namespace

std::vector<SizeStage> SplitSizeStages(Graph* g) {
  std::vector<SizeStage> stages;
  if (std::none_of(g->nodes.begin(), g->nodes.end(), IsFoundEarly)) return stages;
  const Stages stage_of(*g);
  std::vector<std::vector<std::pair<Var, ValueId>>> counts;
  for (const Node& node : g->nodes) {
    if (!IsFoundEarly(node)) continue;
    const size_t stage = stage_of.Of(node.outputs[0]);
    if (counts.size() <= stage) counts.resize(stage + 1);
    counts[stage].emplace_back(DefinedDim(node), node.inputs[0]);
  }
  // The dims stay, and nobody in here defines them any more.
  for (size_t n = 0; n < g->nodes.size(); ++n) {
    if (IsFoundEarly(g->nodes[n]))
      ReplaceAllUses(*g, g->nodes[n].outputs[0], g->nodes[n].inputs[0]);
  }
  std::erase_if(g->nodes, IsFoundEarly);
  for (Value& v : g->values) v.producer = kNoNode;
  for (size_t n = 0; n < g->nodes.size(); ++n) {
    for (ValueId v : g->nodes[n].outputs) g->value(v).producer = static_cast<NodeId>(n);
  }
  for (const auto& list : counts) {
    SizeStage stage{*g, {}};
    stage.graph.outputs.clear();
    stage.graph.output_names.clear();
    stage.graph.constraints.clear();
    for (const auto& [dim, count] : list) {
      stage.found.push_back(dim);
      stage.graph.AddOutput(dim->name, count);
    }
    Compact(stage.graph);
    stages.push_back(std::move(stage));
  }
  // The value of an erased node has no producer, and goes: nothing reads it.
  Compact(*g);
  return stages;
}

}  // namespace tenon::graph

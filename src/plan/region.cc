#include "plan/region.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/edit.h"
#include "graph/pass/constants.h"
#include "graph/text.h"
#include "ops/kernel.h"

namespace tenon::graph {

Graph RegionOf(const Graph& g, NodeId id, std::vector<ValueId>* operands) {
  const Node& node = g.node(id);
  if (node.op == OpKind::kFused) {
    *operands = node.inputs;
    return *node.regions.at(0);
  }
  Graph region = ExtractRegion(g, {id}, node.outputs, operands);
  EmbedScalars(g, &region, operands);
  return region;
}

void EmbedScalars(const Graph& g, Graph* region, std::vector<ValueId>* operands) {
  for (size_t i = operands->size(); i-- > 0;) {
    const Value& v = g.value((*operands)[i]);
    if (!v.IsConstant() || v.payload.bytes().empty()) continue;
    auto dims = v.type.tensor().StaticDims();
    if (!dims) continue;
    if (!std::all_of(dims->begin(), dims->end(), [](int64_t d) { return d == 1; })) continue;
    region->value(region->inputs[i]).payload = v.payload;
    region->inputs.erase(region->inputs.begin() + static_cast<long>(i));
    operands->erase(operands->begin() + static_cast<long>(i));
  }
}

ValueId Group::OuterOf(const Graph& g, ValueId inner) const {
  for (size_t i = 0; i < region.inputs.size(); ++i) {
    if (region.inputs[i] == inner) return operands[i];
  }
  for (size_t k = 0; k < region.outputs.size(); ++k) {
    if (region.outputs[k] == inner) return g.node(node).outputs[k];
  }
  return kNoValue;
}

Group GroupOf(const Graph& g, NodeId id) {
  Group group;
  group.node = id;
  group.region = RegionOf(g, id, &group.operands);
  group.anchor = ops::AnchorOf(group.region);
  return group;
}

bool CallsFunction(const Node& node) {
  if (node.op != OpKind::kFused) return node.op == OpKind::kCall;
  const std::vector<Node>& nodes = node.regions[0]->nodes;
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& n) { return CallsFunction(n); });
}

std::vector<NodeId> KernelNodes(const Graph& g) {
  const std::vector<bool> constant = ConstantValues(g);
  auto tensors = [&](const std::vector<ValueId>& list) {
    return std::all_of(list.begin(), list.end(),
                       [&](ValueId v) { return v == kNoValue || g.IsTensor(v); });
  };
  std::vector<NodeId> out;
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    const Node& node = g.nodes[n];
    if (RunsOnHost(node.op) || !tensors(node.inputs) || !tensors(node.outputs)) continue;
    const bool known = std::all_of(node.outputs.begin(), node.outputs.end(),
                                   [&](ValueId v) { return constant[static_cast<size_t>(v)]; });
    if (!known) out.push_back(static_cast<NodeId>(n));
  }
  return out;
}

std::string RegionKey(const Graph& region) {
  const std::vector<int64_t> numbers = TextNumbers(region);
  auto uses = [&](const std::vector<ValueId>& values) {
    std::string text;
    for (ValueId v : values)
      text += fmt::format("{} ", v == kNoValue ? -1 : numbers[static_cast<size_t>(v)]);
    return text;
  };
  auto type = [&](ValueId v) {
    TensorType plain = region.type(v);
    plain.layout = nullptr;
    return plain.ToString() + ";";
  };
  std::string key;
  for (const Dim& d : region.dims) {
    key += fmt::format("{}: {}..={} step {};", d.var->name, d.min, d.max, d.step);
  }
  for (ValueId v : region.inputs) key += type(v);
  for (const Node& n : region.nodes) {
    key += fmt::format("{}{}{}:", Name(n.op), n.attrs.ToString(), uses(n.inputs));
    for (ValueId v : n.outputs) key += type(v);
  }
  return key + uses(region.outputs);
}

// A region's border has the types of the values outside.
static void UpdateRegion(const Graph& g, Node* node) {
  auto region = std::make_shared<Graph>(*node->regions.at(0));
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    region->value(region->inputs[i]).type.tensor() = g.type(node->inputs[i]);
  }
  for (size_t k = 0; k < node->outputs.size(); ++k) {
    region->value(region->outputs[k]).type.tensor().layout = g.type(node->outputs[k]).layout;
  }
  node->regions = {region};
}

void ApplyPlan(Graph* g, const Group& group, const std::vector<ValueId>& operands, Plan plan) {
  Node& node = g->node(group.node);
  node.plan = std::make_shared<const Plan>(std::move(plan));
  if (node.op == OpKind::kFused) {
    node.inputs = operands;
    UpdateRegion(*g, &node);
    return;
  }
  for (ValueId& v : node.inputs) {
    const auto at = std::find(group.operands.begin(), group.operands.end(), v);
    if (at != group.operands.end()) {
      v = operands[static_cast<size_t>(at - group.operands.begin())];
    }
  }
}

}  // namespace tenon::graph

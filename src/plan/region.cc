#include "plan/region.h"

#include <algorithm>

#include "graph/edit.h"

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

}  // namespace tenon::graph

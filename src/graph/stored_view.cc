#include "graph/stored_view.h"

namespace tenon::graph {

StorageDesc OrderFor(const Node& transpose) {
  StorageDesc desc;
  for (int64_t axis : transpose.attrs.GetInts("perm")) desc.order.push_back(static_cast<int>(axis));
  return desc;
}

bool IsTransposeTo(const Node& transpose, const std::vector<int>& order) {
  const std::vector<int64_t> perm = transpose.attrs.GetInts("perm");
  if (order.size() != perm.size()) return false;
  for (size_t i = 0; i < order.size(); ++i) {
    if (perm[static_cast<size_t>(order[i])] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

bool IsStoredView(const Graph& g, const Node& node) {
  if (node.op != OpKind::kReshape && node.op != OpKind::kTranspose) return false;
  return IsStoredView(node, g.type(node.inputs[0]), g.type(node.outputs[0]));
}

bool IsStoredView(const Node& node, const TensorType& from, const TensorType& to) {
  if (to.layout) {
    const auto stored = ReadLayout(to.layout, to.dims);
    return node.op == OpKind::kTranspose && !from.layout && stored &&
           *stored == StorageDesc{.order = stored->order} && IsTransposeTo(node, stored->order);
  }
  if (node.op == OpKind::kReshape) return !from.layout;
  const auto stored = from.layout ? ReadLayout(from.layout, from.dims) : StorageDesc();
  return stored && *stored == OrderFor(node);
}

}  // namespace tenon::graph

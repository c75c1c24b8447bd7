#include "graph/stored_view.h"

namespace tenon::graph {

StorageDesc OrderFor(const Node& transpose) {
  StorageDesc desc;
  for (int64_t axis : transpose.attrs.GetInts("perm")) desc.order.push_back(static_cast<int>(axis));
  return desc;
}

bool IsStoredView(const Graph& g, const Node& node) {
  if (node.op != OpKind::kReshape && node.op != OpKind::kTranspose) return false;
  const TensorType &from = g.type(node.inputs[0]), &to = g.type(node.outputs[0]);
  if (to.layout) return false;
  if (node.op == OpKind::kReshape) return !from.layout;
  const auto stored = from.layout ? ReadLayout(from.layout, from.dims) : StorageDesc();
  return stored && *stored == OrderFor(node);
}

}  // namespace tenon::graph

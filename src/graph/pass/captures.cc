#include "graph/pass/captures.h"

#include <algorithm>

#include "graph/edit.h"

namespace tenon::graph {

size_t OwnInputs(const Node& n) {
  if (n.op == OpKind::kIf) return 1;
  return static_cast<size_t>(n.attrs.GetInt("carried")) + (n.op == OpKind::kWhile ? 1 : 0);
}

ValueId CapturedInput(const Node& n, const Graph& region, size_t k) {
  return region.inputs[region.inputs.size() - (n.inputs.size() - OwnInputs(n)) + k];
}

void DropUnreadCaptures(Node& n) {
  const size_t captured = n.inputs.size() - OwnInputs(n);
  std::vector<bool> drop(captured, true);
  for (const std::shared_ptr<const Graph>& region : n.regions) {
    const std::vector<int32_t> uses = UseCounts(*region);
    for (size_t k = 0; k < captured; ++k)
      drop[k] = drop[k] && uses[static_cast<size_t>(CapturedInput(n, *region, k))] == 0;
  }
  if (std::find(drop.begin(), drop.end(), true) == drop.end()) return;
  auto keep = [&](std::vector<ValueId>& list) {
    const size_t first = list.size() - captured;
    size_t to = first;
    for (size_t k = 0; k < captured; ++k) {
      if (!drop[k]) list[to++] = list[first + k];
    }
    list.resize(to);
  };
  for (std::shared_ptr<const Graph>& region : n.regions) {
    Graph smaller = *region;
    keep(smaller.inputs);
    Compact(smaller);
    region = std::make_shared<const Graph>(std::move(smaller));
  }
  keep(n.inputs);
}

}  // namespace tenon::graph

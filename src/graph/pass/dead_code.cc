#include "graph/pass/dead_code.h"

#include <algorithm>

#include "graph/edit.h"

namespace tenon::graph {

namespace {

// How many of the node's inputs are its own; those captured follow.
size_t OwnInputs(const Node& n) {
  if (n.op == OpKind::kIf) return 1;
  return static_cast<size_t>(n.attrs.GetInt("carried")) + (n.op == OpKind::kWhile ? 1 : 0);
}

// Captured values that no region reads are not captured.
void DropCaptures(Node& n) {
  std::vector<std::vector<int32_t>> uses;
  for (const std::shared_ptr<const Graph>& region : n.regions) uses.push_back(UseCounts(*region));
  const size_t own = OwnInputs(n), captured = n.inputs.size() - own;
  auto input = [&](size_t region, size_t k) {
    const std::vector<ValueId>& all = n.regions[region]->inputs;
    return all[all.size() - captured + k];
  };
  std::vector<bool> drop(captured, true);
  for (size_t k = 0; k < captured; ++k) {
    for (size_t r = 0; r < n.regions.size(); ++r)
      drop[k] = drop[k] && uses[r][static_cast<size_t>(input(r, k))] == 0;
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

}  // namespace

Graph EliminateDeadCode(const Graph& g, const GraphPassContext& context) {
  Graph out = g;
  for (Node& n : out.nodes) {
    if (IsControl(n.op)) DropCaptures(n);
  }
  Compact(out);
  return out;
}

}  // namespace tenon::graph

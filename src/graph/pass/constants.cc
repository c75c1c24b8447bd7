#include "graph/pass/constants.h"

#include <algorithm>

#include "graph/edit.h"

namespace tenon::graph {

std::vector<bool> ConstantValues(const Graph& g) {
  std::vector<bool> constant(g.values.size());
  for (size_t v = 0; v < g.values.size(); ++v) constant[v] = g.values[v].IsConstant();
  for (const Node& n : g.nodes) {
    const bool all = !n.inputs.empty() && !IsControl(n.op) && !UsesDims(g, n) &&
                     std::all_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
                       return v == kNoValue || constant[static_cast<size_t>(v)];
                     });
    for (ValueId v : n.outputs) constant[static_cast<size_t>(v)] = all;
  }
  return constant;
}

}  // namespace tenon::graph

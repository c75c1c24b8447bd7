#include "graph/lower/prepare_split.h"

#include <algorithm>
#include <unordered_set>

#include "graph/pass/constants.h"

namespace tenon::graph {

PrepareSplit::PrepareSplit(const Graph& g) : g_(g), constant_(ConstantValues(g)) {}

std::vector<NodeId> PrepareSplit::Slice(ValueId v) const {
  std::vector<NodeId> nodes;
  std::unordered_set<NodeId> seen;
  std::vector<ValueId> stack = {v};
  while (!stack.empty()) {
    const NodeId p = g_.value(stack.back()).producer;
    stack.pop_back();
    if (p == kNoNode || !seen.insert(p).second) continue;
    nodes.push_back(p);
    for (ValueId in : g_.node(p).inputs) {
      if (in != kNoValue) stack.push_back(in);
    }
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

}  // namespace tenon::graph

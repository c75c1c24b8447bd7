#include "graph/pass/dead_code.h"

#include "graph/edit.h"

namespace tenon::graph {

Graph EliminateDeadCode(const Graph& g, const GraphPassContext& context) {
  Graph out = g;
  Compact(out);
  return out;
}

}  // namespace tenon::graph

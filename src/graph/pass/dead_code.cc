#include "graph/pass/dead_code.h"

#include "graph/edit.h"
#include "graph/pass/captures.h"

namespace tenon::graph {

Graph EliminateDeadCode(const Graph& g, const GraphPassContext& context) {
  Graph out = g;
  for (Node& n : out.nodes) {
    if (IsControl(n.op)) DropUnreadCaptures(n);
  }
  Compact(out);
  return out;
}

}  // namespace tenon::graph

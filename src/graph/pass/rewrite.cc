#include "graph/pass/rewrite.h"

#include "graph/edit.h"

namespace tenon::graph {

namespace {

// New nodes go right before the node that they were made for, so that the order stays what the
// model's author chose: made[n] to made[n - 1] are those of node n.
void PutInPlace(Graph& g, const std::vector<size_t>& made) {
  std::vector<Node> nodes;
  const size_t old = made.size();
  for (size_t n = 0; n < old; ++n) {
    const size_t end = n == 0 ? g.nodes.size() : made[n - 1];
    for (size_t i = made[n]; i < end; ++i) nodes.push_back(std::move(g.nodes[i]));
    nodes.push_back(std::move(g.nodes[n]));
  }
  g.nodes = std::move(nodes);
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    for (ValueId v : g.nodes[n].outputs) g.value(v).producer = static_cast<NodeId>(n);
  }
}

}  // namespace

Graph Rewrite(const Graph& g, const RewriteRule& rule) {
  Builder b(g);
  std::vector<ValueId> now(g.values.size());
  for (size_t v = 0; v < now.size(); ++v) now[v] = static_cast<ValueId>(v);
  std::vector<size_t> made(g.nodes.size());
  for (size_t n = g.nodes.size(); n-- > 0;) {
    made[n] = b.graph().nodes.size();
    if (g.nodes[n].outputs.size() != 1) continue;
    const ValueId old = g.nodes[n].outputs[0];
    Expected<ValueId> value = rule(b, static_cast<NodeId>(n));
    if (value && *value != kNoValue && b.graph().value(*value).type == g.value(old).type)
      now[static_cast<size_t>(old)] = *value;
  }
  // A replacement may read, or be, a value that was replaced after it.
  auto resolve = [&](ValueId& v) {
    if (v == kNoValue || static_cast<size_t>(v) >= now.size()) return;
    ValueId end = v;
    while (static_cast<size_t>(end) < now.size() && now[static_cast<size_t>(end)] != end)
      end = now[static_cast<size_t>(end)];
    now[static_cast<size_t>(v)] = end;
    v = end;
  };
  Graph out = std::move(b.graph());
  for (Node& n : out.nodes) {
    for (ValueId& v : n.inputs) resolve(v);
  }
  for (ValueId& v : out.outputs) resolve(v);
  PutInPlace(out, made);
  Compact(out);
  return out;
}

}  // namespace tenon::graph

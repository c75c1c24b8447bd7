#include "graph/pass/common_subexpressions.h"

#include <fmt/format.h>

#include <unordered_map>

#include "graph/edit.h"
#include "ir/print.h"

namespace tenon::graph {

namespace {

// Constants above this are compared by their place in the file, not by content.
constexpr size_t kSmall = 4096;

std::string ConstantKey(const Value& v) {
  std::string key = v.type.ToString();
  std::span<const std::byte> bytes = v.payload.bytes();
  if (bytes.size() > kSmall)
    return key + fmt::format("@{}", static_cast<const void*>(bytes.data()));
  return key + "=" + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string NodeKey(const Graph& g, const Node& n) {
  std::string key = fmt::format("{}|{}|", Name(n.op), n.attrs.ToString());
  for (ValueId v : n.inputs) key += fmt::format("{},", v);
  for (const auto& [name, exprs] : n.exprs) {
    key += "|" + name;
    for (const Expr& e : exprs) key += "," + ToString(e);
  }
  for (ValueId v : n.outputs) key += "|" + g.type(v).ToString();
  return key;
}

}  // namespace

Graph EliminateCommonSubexpressions(const Graph& g, const GraphPassContext& context) {
  Graph out = g;
  std::vector<ValueId> same(out.values.size());
  std::unordered_map<std::string, ValueId> constants;
  for (size_t v = 0; v < out.values.size(); ++v) {
    same[v] = static_cast<ValueId>(v);
    if (out.values[v].IsConstant())
      same[v] = constants.emplace(ConstantKey(out.values[v]), same[v]).first->second;
  }
  std::unordered_map<std::string, NodeId> nodes;
  for (size_t n = 0; n < out.nodes.size(); ++n) {
    Node& node = out.nodes[n];
    for (ValueId& v : node.inputs) {
      if (v != kNoValue) v = same[static_cast<size_t>(v)];
    }
    if (!node.regions.empty()) continue;
    auto [it, fresh] = nodes.emplace(NodeKey(out, node), static_cast<NodeId>(n));
    if (fresh) continue;
    const Node& first = out.node(it->second);
    for (size_t k = 0; k < node.outputs.size(); ++k)
      same[static_cast<size_t>(node.outputs[k])] = first.outputs[k];
  }
  for (ValueId& v : out.outputs) v = same[static_cast<size_t>(v)];
  Compact(out);
  return out;
}

}  // namespace tenon::graph

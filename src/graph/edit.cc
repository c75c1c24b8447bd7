#include "graph/edit.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "graph/dims.h"
#include "ir/visit.h"

namespace tenon::graph {

std::vector<std::vector<NodeId>> Users(const Graph& g) {
  std::vector<std::vector<NodeId>> users(g.values.size());
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    for (ValueId v : g.nodes[n].inputs) {
      if (v == kNoValue) continue;
      std::vector<NodeId>& list = users[static_cast<size_t>(v)];
      if (list.empty() || list.back() != static_cast<NodeId>(n))
        list.push_back(static_cast<NodeId>(n));
    }
  }
  return users;
}

std::vector<int32_t> UseCounts(const Graph& g) {
  std::vector<int32_t> counts(g.values.size(), 0);
  for (const Node& n : g.nodes) {
    for (ValueId v : n.inputs) {
      if (v != kNoValue) ++counts[static_cast<size_t>(v)];
    }
  }
  for (ValueId v : g.outputs) ++counts[static_cast<size_t>(v)];
  return counts;
}

bool UsesDims(const Graph& g, const Node& n) {
  auto symbolic = [](const std::vector<Expr>& list) {
    return !std::all_of(list.begin(), list.end(),
                        [](const Expr& e) { return AsInt(e).has_value(); });
  };
  for (const auto& [name, list] : n.exprs) {
    if (symbolic(list)) return true;
  }
  for (ValueId v : n.outputs) {
    if (symbolic(g.type(v).dims)) return true;
  }
  return std::any_of(n.regions.begin(), n.regions.end(), [](const auto& region) {
    return std::any_of(region->nodes.begin(), region->nodes.end(),
                       [&](const Node& inner) { return UsesDims(*region, inner); });
  });
}

Var DefinedDim(const Node& n) {
  return n.op == OpKind::kDim ? Cast<VarNode>(n.exprs.at("size").at(0)) : nullptr;
}

bool IsFoundEarly(const Node& n) { return n.op == OpKind::kDim && n.exprs.at("most").empty(); }

DimUses::DimUses(const Graph& g) : g_(g) {
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    if (const Var dim = DefinedDim(g.nodes[n]))
      definer_of_.emplace(dim.get(), static_cast<NodeId>(n));
  }
}

void DimUses::Collect(std::span<const Expr> exprs, std::vector<NodeId>* out) const {
  for (const Expr& e : exprs) {
    PreOrder(e, [&](const NodeRef& n) {
      const auto it = definer_of_.find(As<VarNode>(n));
      if (it != definer_of_.end() && std::find(out->begin(), out->end(), it->second) == out->end())
        out->push_back(it->second);
      return true;
    });
  }
}

std::vector<NodeId> DimUses::DefinersFor(std::span<const Expr> exprs) const {
  std::vector<NodeId> out;
  if (!definer_of_.empty()) Collect(exprs, &out);
  return out;
}

std::vector<NodeId> DimUses::DefinersFor(NodeId id) const {
  std::vector<NodeId> out;
  if (definer_of_.empty()) return out;
  std::function<void(const Graph&, const Node&)> visit = [&](const Graph& g, const Node& n) {
    for (const auto& [name, list] : n.exprs) Collect(list, &out);
    for (ValueId v : n.outputs) Collect(g.value(v).type.leaf().dims, &out);
    for (const auto& region : n.regions) {
      for (const Node& inner : region->nodes) visit(*region, inner);
    }
  };
  visit(g_, g_.node(id));
  std::erase(out, id);
  return out;
}

void ReplaceAllUses(Graph& g, ValueId from, ValueId to) {
  for (Node& n : g.nodes) std::replace(n.inputs.begin(), n.inputs.end(), from, to);
  std::replace(g.outputs.begin(), g.outputs.end(), from, to);
}

namespace {

// Which values and nodes the outputs depend on, by their elements or their sizes, and what the
// constraints need to be checked. Inputs count as needed.
struct Live {
  std::vector<bool> values, nodes;
};

Live FindLive(const Graph& g) {
  Live live{std::vector<bool>(g.values.size(), false), std::vector<bool>(g.nodes.size(), false)};
  const DimUses dims(g);
  std::vector<ValueId> stack = g.outputs;
  for (ValueId v : g.inputs) live.values[static_cast<size_t>(v)] = true;
  for (NodeId definer : dims.DefinersFor(Conditions(g)))
    stack.push_back(g.node(definer).outputs[0]);
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    live.values[static_cast<size_t>(v)] = true;
    const NodeId n = g.value(v).producer;
    if (n == kNoNode || live.nodes[static_cast<size_t>(n)]) continue;
    live.nodes[static_cast<size_t>(n)] = true;
    // All outputs of a needed node stay: they are its signature.
    for (ValueId o : g.node(n).outputs) live.values[static_cast<size_t>(o)] = true;
    for (ValueId i : g.node(n).inputs) {
      if (i != kNoValue) stack.push_back(i);
    }
    for (NodeId definer : dims.DefinersFor(n)) stack.push_back(g.node(definer).outputs[0]);
  }
  return live;
}

}  // namespace

std::vector<ValueId> Compact(Graph& g) {
  const Live live = FindLive(g);
  std::vector<ValueId> new_value(g.values.size(), kNoValue);
  std::vector<NodeId> new_node(g.nodes.size(), kNoNode);
  std::vector<Value> values;
  for (size_t i = 0; i < g.values.size(); ++i) {
    if (!live.values[i]) continue;
    new_value[i] = static_cast<ValueId>(values.size());
    values.push_back(std::move(g.values[i]));
  }
  auto rename = [&](std::vector<ValueId>& list) {
    for (ValueId& v : list) {
      if (v != kNoValue) v = new_value[static_cast<size_t>(v)];
    }
  };
  std::vector<Node> nodes;
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    if (!live.nodes[i]) {
      const Var dim = DefinedDim(g.nodes[i]);
      if (dim) std::erase_if(g.dims, [&](const Dim& d) { return d.var == dim; });
      continue;
    }
    new_node[i] = static_cast<NodeId>(nodes.size());
    nodes.push_back(std::move(g.nodes[i]));
    rename(nodes.back().inputs);
    rename(nodes.back().outputs);
  }
  for (Value& v : values) {
    if (v.producer != kNoNode) v.producer = new_node[static_cast<size_t>(v.producer)];
  }
  g.values = std::move(values);
  g.nodes = std::move(nodes);
  rename(g.inputs);
  rename(g.outputs);
  return new_value;
}

bool TopologicalSort(Graph& g) {
  // Kahn's algorithm over a heap of ready nodes keyed by their old position, so that the order
  // changes only where it must.
  std::vector<int32_t> waiting(g.nodes.size(), 0);
  std::vector<std::vector<NodeId>> users = Users(g);
  if (const DimUses dims(g); !dims.empty()) {
    for (size_t n = 0; n < g.nodes.size(); ++n) {
      for (NodeId definer : dims.DefinersFor(static_cast<NodeId>(n)))
        users[static_cast<size_t>(g.node(definer).outputs[0])].push_back(static_cast<NodeId>(n));
    }
  }
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    for (ValueId o : g.nodes[n].outputs) {
      for (NodeId u : users[static_cast<size_t>(o)]) ++waiting[static_cast<size_t>(u)];
    }
  }
  std::vector<NodeId> ready, order;
  const auto later = std::greater<NodeId>();
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    if (waiting[n] == 0) ready.push_back(static_cast<NodeId>(n));
  }
  std::make_heap(ready.begin(), ready.end(), later);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), later);
    const NodeId n = ready.back();
    ready.pop_back();
    order.push_back(n);
    for (ValueId o : g.node(n).outputs) {
      for (NodeId u : users[static_cast<size_t>(o)]) {
        if (--waiting[static_cast<size_t>(u)] > 0) continue;
        ready.push_back(u);
        std::push_heap(ready.begin(), ready.end(), later);
      }
    }
  }
  if (order.size() != g.nodes.size()) return false;
  std::vector<Node> nodes;
  for (NodeId n : order) {
    for (ValueId o : g.node(n).outputs) g.value(o).producer = static_cast<NodeId>(nodes.size());
    nodes.push_back(std::move(g.node(n)));
  }
  g.nodes = std::move(nodes);
  return true;
}

namespace {

void SubstituteAll(std::vector<Expr>* exprs, const VarMap& map) {
  for (Expr& e : *exprs) e = SimplifyDim(Substitute(e, map));
}

void SubstituteIn(Graph& g, const VarMap& map) {
  for (Value& v : g.values) {
    TensorType leaf = v.type.leaf();
    SubstituteAll(&leaf.dims, map);
    if (leaf.layout) leaf.layout = Substitute(leaf.layout, map);
    v.type = v.type.WithLeaf(std::move(leaf));
  }
  for (Node& n : g.nodes) {
    for (auto& [name, list] : n.exprs) SubstituteAll(&list, map);
    for (std::shared_ptr<const Graph>& region : n.regions) {
      Graph copy = *region;  // regions nest no deeper than Limits::kRegionDepth
      std::erase_if(copy.dims, [&](const Dim& d) { return map.contains(d.var.get()); });
      SubstituteIn(copy, map);
      region = std::make_shared<const Graph>(std::move(copy));
    }
  }
  for (Constraint& c : g.constraints) c.holds = SimplifyDim(Substitute(c.holds, map));
  std::erase_if(g.constraints,
                [](const Constraint& c) { return AsInt(c.holds) && *AsInt(c.holds); });
}

}  // namespace

Graph SubstituteDims(const Graph& g, const std::map<std::string, Expr>& values) {
  Graph out = g;
  VarMap map;
  for (const Dim& d : g.dims) {
    if (auto it = values.find(d.var->name); it != values.end())
      map.emplace(d.var.get(), it->second);
  }
  std::erase_if(out.dims, [&](const Dim& d) { return map.contains(d.var.get()); });
  SubstituteIn(out, map);
  return out;
}

Graph ExtractRegion(const Graph& g, const std::vector<NodeId>& nodes,
                    const std::vector<ValueId>& outputs, std::vector<ValueId>* operands) {
  Graph region;
  region.dims = g.dims;
  std::unordered_map<ValueId, ValueId> inside;
  operands->clear();
  for (NodeId id : nodes) {
    Node copy = g.node(id);
    for (ValueId& v : copy.inputs) {
      if (v == kNoValue) continue;
      auto [it, is_new] = inside.try_emplace(v, kNoValue);
      if (is_new) {
        it->second = region.AddInput(g.value(v).name, g.value(v).type);
        operands->push_back(v);
      }
      v = it->second;
    }
    Types types;
    for (ValueId v : copy.outputs) types.push_back(g.value(v).type);
    const std::vector<ValueId> old_outputs = copy.outputs;
    const NodeId made = region.AddNode(std::move(copy), std::move(types));
    for (size_t i = 0; i < old_outputs.size(); ++i)
      inside[old_outputs[i]] = region.node(made).outputs[i];
  }
  for (ValueId v : outputs) region.AddOutput(g.value(v).name, inside.at(v));
  return region;
}

}  // namespace tenon::graph

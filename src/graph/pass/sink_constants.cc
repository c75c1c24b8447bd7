#include "graph/pass/sink_constants.h"

#include <map>
#include <optional>
#include <set>

#include "graph/edit.h"
#include "graph/pass/captures.h"
#include "graph/pass/constants.h"
#include "support/check.h"

namespace tenon::graph {

namespace {

/// Copies values of one graph, with all that they are computed from, to another: each once.
class Copier {
 public:
  Copier(const Graph& from, Graph* to) : from_(from), to_(*to) {}

  /// What stands for the value in the other graph.
  ValueId Copy(ValueId v) {
    for (NodeId id : Missing(v)) CopyNode(from_.node(id));
    return Copied(v);
  }

 private:
  // The nodes that a value is computed from and that have no copy yet, in order.
  std::set<NodeId> Missing(ValueId v) const {
    std::set<NodeId> missing;
    for (std::vector<ValueId> open = {v}; !open.empty();) {
      const ValueId next = open.back();
      open.pop_back();
      if (next == kNoValue || copies_.count(next) > 0) continue;
      const NodeId id = from_.value(next).producer;
      if (id == kNoNode || !missing.insert(id).second) continue;
      const std::vector<ValueId>& inputs = from_.node(id).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
    return missing;
  }

  // A constant, or a result of a node that has been copied.
  ValueId Copied(ValueId v) {
    if (v == kNoValue) return v;
    if (auto at = copies_.find(v); at != copies_.end()) return at->second;
    const Value& value = from_.value(v);
    return copies_[v] = to_.AddConstant(value.name, value.type.tensor(), value.payload);
  }

  void CopyNode(const Node& n) {
    Node copy = n;
    for (ValueId& v : copy.inputs) v = Copied(v);
    Types types;
    for (ValueId v : n.outputs) types.push_back(from_.value(v).type);
    const NodeId id = to_.AddNode(std::move(copy), std::move(types));
    for (size_t k = 0; k < n.outputs.size(); ++k) {
      const ValueId result = to_.node(id).outputs[k];
      to_.value(result).name = from_.value(n.outputs[k]).name;
      copies_[n.outputs[k]] = result;
    }
  }

  const Graph& from_;
  Graph& to_;
  std::map<ValueId, ValueId> copies_;
};

// The region with what it captures of constants computed inside; null where it captures none.
std::shared_ptr<const Graph> Sunk(const Graph& g, const std::vector<bool>& constant, const Node& n,
                                  const Graph& region, const GraphPassContext& context) {
  const size_t own = OwnInputs(n);
  std::optional<Graph> out;
  std::optional<Copier> copier;
  const std::vector<int32_t> uses = UseCounts(region);
  for (size_t k = own; k < n.inputs.size(); ++k) {
    const ValueId inside = CapturedInput(n, region, k - own);
    if (!constant[static_cast<size_t>(n.inputs[k])] || uses[static_cast<size_t>(inside)] == 0) {
      continue;
    }
    if (!out) copier.emplace(g, &out.emplace(region));
    ReplaceAllUses(*out, inside, copier->Copy(n.inputs[k]));
  }
  if (!out) return nullptr;
  const bool sorted = TopologicalSort(*out);
  TN_CHECK(sorted, "a region with what it captures of constants has a cycle");
  // What regions inside capture of these is constant now.
  return std::make_shared<const Graph>(RunWithRegions(*out, context, SinkConstants));
}

}  // namespace

Graph SinkConstants(const Graph& g, const GraphPassContext& context) {
  Graph out = g;
  std::optional<std::vector<bool>> constant;
  for (Node& n : out.nodes) {
    if (!IsControl(n.op) || n.inputs.size() == OwnInputs(n)) continue;
    if (!constant) constant = ConstantValues(g);
    for (std::shared_ptr<const Graph>& region : n.regions) {
      if (auto sunk = Sunk(g, *constant, n, *region, context)) region = std::move(sunk);
    }
    DropUnreadCaptures(n);
  }
  if (constant) Compact(out);
  return out;
}

}  // namespace tenon::graph

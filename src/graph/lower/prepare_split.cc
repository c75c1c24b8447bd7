#include "graph/lower/prepare_split.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "graph/edit.h"
#include "support/check.h"

namespace tenon::graph {

namespace {

constexpr int64_t kMany = std::numeric_limits<int64_t>::max();

int64_t Plus(int64_t a, int64_t b) { return a > kMany - b ? kMany : a + b; }
int64_t Times(int64_t a, int64_t b) { return b != 0 && a > kMany / b ? kMany : a * b; }

int64_t Elements(const TensorType& type, size_t first_dim = 0) {
  auto dims = type.StaticDims();
  if (!dims) return kMany;
  int64_t count = 1;
  for (size_t i = first_dim; i < dims->size(); ++i) count = Times(count, (*dims)[i]);
  return count;
}

int64_t Bytes(const TensorType& type) {
  return Times(Elements(type), (type.dtype.StorageBits() + 7) / 8);
}

// Operations per element of the result, beyond those that reading every operand once accounts for.
int64_t WorkPerElement(const Graph& g, const Node& n) {
  auto dim = [&](size_t input, int from_end) {
    auto dims = g.type(n.inputs[input]).StaticDims();
    return dims ? (*dims)[dims->size() - static_cast<size_t>(from_end)] : kMany;
  };
  switch (Info(n.op).map) {
    case IndexMapClass::kContraction:
      if (n.op == OpKind::kMatMul) return dim(0, n.attrs.Get<bool>("trans_a", false) ? 2 : 1);
      if (n.op == OpKind::kAttention) return Times(2, dim(1, 2));
      return Elements(g.type(n.inputs[1]), 1);
    case IndexMapClass::kWindow: {
      constexpr int64_t kTaps = 16;  // of a cubic resize on two axes
      if (n.op == OpKind::kResize) return kTaps;
      int64_t window = 1;
      for (int64_t k : n.attrs.GetInts("kernel")) window = Times(window, k);
      return window;
    }
    case IndexMapClass::kElementwise:
    case IndexMapClass::kBroadcast:
    case IndexMapClass::kInjective:
    case IndexMapClass::kReduction:
    case IndexMapClass::kOpaque: return 1;
  }
  TN_UNREACHABLE();
}

// An estimate from above of a node's operations.
int64_t Work(const Graph& g, const Node& n) {
  int64_t work = 0;
  for (const auto& region : n.regions) {
    for (const Node& inner : region->nodes) work = Plus(work, Work(*region, inner));
  }
  if (!n.regions.empty()) return work;
  for (ValueId v : n.inputs) {
    if (v != kNoValue) work = Plus(work, Elements(g.type(v)));
  }
  for (ValueId v : n.outputs) work = Plus(work, Times(Elements(g.type(v)), WorkPerElement(g, n)));
  return work;
}

// What it takes to compute a value from constants. Where parts are shared they count twice.
struct Cost {
  int64_t work = 0, nodes = 0, source_bytes = 0;

  void Add(const Cost& other) {
    work = Plus(work, other.work);
    nodes = Plus(nodes, other.nodes);
    source_bytes = Plus(source_bytes, other.source_bytes);
  }
};

bool MayGrowTo(int64_t bytes, int64_t source_bytes) {
  return bytes <= std::max(PrepareLimits::kBytes, Times(PrepareLimits::kGrowth, source_bytes));
}

}  // namespace

PrepareSplit::PrepareSplit(const Graph& g) : g_(g), constant_(g.values.size()) {
  std::vector<Cost> costs(g.values.size());
  for (size_t v = 0; v < g.values.size(); ++v) {
    constant_[v] = g.values[v].IsConstant();
    if (constant_[v]) costs[v].source_bytes = Bytes(g.values[v].type.tensor());
  }
  std::vector<bool> read(g.values.size());  // by what is not prepared
  for (ValueId v : g.outputs) read[static_cast<size_t>(v)] = true;
  for (const Node& n : g.nodes) {
    Cost cost{Work(g, n), 1, 0};
    bool prepared = !IsControl(n.op) && !UsesDims(g, n);  // control flow runs with the network
    for (ValueId v : n.inputs) {
      if (v == kNoValue) continue;
      prepared &= constant_[static_cast<size_t>(v)];
      cost.Add(costs[static_cast<size_t>(v)]);
    }
    prepared &= cost.work <= PrepareLimits::kWork && cost.nodes <= PrepareLimits::kNodes;
    for (ValueId v : n.outputs) prepared &= MayGrowTo(Bytes(g.type(v)), cost.source_bytes);
    for (ValueId v : n.outputs) {
      constant_[static_cast<size_t>(v)] = prepared;
      if (prepared) costs[static_cast<size_t>(v)] = cost;
    }
    for (ValueId v : n.inputs) {
      if (!prepared && v != kNoValue) read[static_cast<size_t>(v)] = true;
    }
  }
  Cost total;
  int64_t bytes = 0, sources = 0;
  for (size_t v = 0; v < g.values.size(); ++v) {
    if (g.values[v].IsConstant()) sources = Plus(sources, costs[v].source_bytes);
    if (!read[v] || !constant_[v] || g.values[v].IsConstant()) continue;
    total.Add(costs[v]);
    bytes = Plus(bytes, Bytes(g.values[v].type.tensor()));
  }
  if (total.work <= PrepareLimits::kWork && total.nodes <= PrepareLimits::kNodes &&
      MayGrowTo(bytes, sources))
    return;
  // Each value is within bounds but all together are not: nothing is computed ahead.
  for (size_t v = 0; v < g.values.size(); ++v) constant_[v] = g.values[v].IsConstant();
}

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

// What depends on constants alone, as far as a compilation takes it upon itself.
//
// Each node has a cost: operations, nodes and bytes, with all that it is computed from. What is
// within bounds is constant, and so may be what reads it. Where each value is within bounds but all
// of them are not, the bounds of each are halved until they are: what takes the most runs with the
// network, and small things are still computed ahead.

#include "graph/pass/constants.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "graph/edit.h"
#include "support/check.h"

namespace tenon::graph {

namespace {

constexpr int64_t kMany = std::numeric_limits<int64_t>::max();

int64_t Plus(int64_t a, int64_t b) { return a > kMany - b ? kMany : a + b; }
int64_t Times(int64_t a, int64_t b) { return b != 0 && a > kMany / b ? kMany : a * b; }

int64_t CountOf(const TensorType& type, size_t first_dim = 0) {
  auto dims = type.StaticDims();
  if (!dims) return kMany;
  int64_t count = 1;
  for (size_t i = first_dim; i < dims->size(); ++i) count = Times(count, (*dims)[i]);
  return count;
}

// Sequences and optionals are never computed ahead.
int64_t CountOf(const Graph& g, ValueId v) { return g.IsTensor(v) ? CountOf(g.type(v)) : kMany; }

int64_t Bytes(const Graph& g, ValueId v) {
  return g.IsTensor(v) ? Times(CountOf(g, v), (g.type(v).dtype.StorageBits() + 7) / 8) : kMany;
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
      if (n.op == OpKind::kBlockMatMul) return Times(4, dim(0, 1));
      if (n.op == OpKind::kSplitMatMul) return Times(3, dim(0, 1));
      if (n.op == OpKind::kAttention) return Times(2, dim(1, 2));
      return CountOf(g.type(n.inputs[1]), 1);
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
    if (v != kNoValue) work = Plus(work, CountOf(g, v));
  }
  for (ValueId v : n.outputs) work = Plus(work, Times(CountOf(g, v), WorkPerElement(g, n)));
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

/// What may be spent: a share of the limits.
struct Bounds {
  int64_t share;  // one in so many

  bool Hold(const Cost& cost, int64_t bytes) const {
    using Limits = PrepareLimits;
    const auto most = [&](int64_t at_least, int64_t per_byte) {
      return std::max(at_least, Times(per_byte, cost.source_bytes)) / share;
    };
    return cost.work <= most(Limits::kWork, Limits::kWorkPerByte) &&
           cost.nodes <= Limits::kNodes / share && bytes <= most(Limits::kBytes, Limits::kGrowth);
  }
};

// By value, with one `share`-th of the limits for each; none where all together are beyond them.
std::optional<std::vector<bool>> Split(const Graph& g, int64_t share) {
  std::vector<bool> constant(g.values.size());
  std::vector<Cost> costs(g.values.size());
  for (size_t v = 0; v < g.values.size(); ++v) {
    constant[v] = g.values[v].IsConstant();
    if (constant[v]) costs[v].source_bytes = Bytes(g, static_cast<ValueId>(v));
  }
  std::vector<bool> read(g.values.size());  // by what is not prepared
  for (ValueId v : g.outputs) read[static_cast<size_t>(v)] = true;
  for (const Node& n : g.nodes) {
    Cost cost{Work(g, n), 1, 0};
    // Control flow runs with the network, and so does what may call C.
    bool prepared = !IsControl(n.op) && n.op != OpKind::kCall && !UsesDims(g, n);
    for (ValueId v : n.inputs) {
      if (v == kNoValue) continue;
      prepared &= constant[static_cast<size_t>(v)];
      cost.Add(costs[static_cast<size_t>(v)]);
    }
    for (ValueId v : n.outputs) prepared &= Bounds{share}.Hold(cost, Bytes(g, v));
    for (ValueId v : n.outputs) {
      constant[static_cast<size_t>(v)] = prepared;
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
    if (!read[v] || !constant[v] || g.values[v].IsConstant()) continue;
    total.Add(costs[v]);
    bytes = Plus(bytes, Bytes(g, static_cast<ValueId>(v)));
  }
  total.source_bytes = sources;
  return Bounds{1}.Hold(total, bytes) ? std::optional(constant) : std::nullopt;
}

}  // namespace

std::vector<bool> ConstantValues(const Graph& g) {
  std::optional<std::vector<bool>> constant;
  for (int64_t share = 1; !constant; share *= 2) constant = Split(g, share);
  return *std::move(constant);
}

}  // namespace tenon::graph

#include "graph/pass/prove_requirements.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "cost/machine.h"
#include "graph/dims.h"
#include "graph/edit.h"

namespace tenon::graph {

namespace {

// Beyond it nothing is claimed, so that sums and products of bounds stay exact.
constexpr int64_t kMost = int64_t{1} << 30;

std::optional<Interval> Within(int64_t min, int64_t max) {
  if (min < -kMost || max > kMost) return std::nullopt;
  return Interval{min, max};
}

template <class T>
std::optional<Interval> OfElements(std::span<const std::byte> bytes) {
  const size_t count = bytes.size() / sizeof(T);
  if (count == 0) return std::nullopt;
  T least = 0, most = 0;
  for (size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
    least = i == 0 ? element : std::min(least, element);
    most = i == 0 ? element : std::max(most, element);
  }
  return Within(least, most);
}

/// The intervals that elements of integer values lie in, for every call; of the rest nothing is
/// known. Linear in the graph and its integer constants.
class ElementIntervals {
 public:
  explicit ElementIntervals(const Graph& g) : g_(g), known_(g.values.size()) {
    for (const Dim& dim : g.dims) sizes_.BindInterval(dim.var, {dim.min, dim.max});
    for (size_t v = 0; v < g.values.size(); ++v) {
      const Value& value = g.values[v];
      if (value.IsConstant() && value.type.IsTensor()) known_[v] = OfConstant(value);
    }
    for (const Node& n : g.nodes) {
      if (n.outputs.size() == 1) known_[static_cast<size_t>(n.outputs[0])] = OfNode(n);
    }
  }

  const std::optional<Interval>& Of(ValueId v) const { return known_[static_cast<size_t>(v)]; }

  /// Of an expression over dims: those of the graph by their ranges, a region's by what they are.
  Interval OfSize(const Expr& e) {
    const Interval general = DimRange(e), here = sizes_.ConstBounds(e);
    return {std::max(general.min, here.min), std::min(general.max, here.max)};
  }

  bool Holds(const Node& require) {
    const std::optional<Interval>& there = Of(require.inputs[0]);
    return there && IsOfElements(require.inputs[1], require.inputs[0]) &&
           OfSize(require.exprs.at("least")[0]).max <= there->min &&
           there->max < OfSize(require.exprs.at("end")[0]).min;
  }

 private:
  static std::optional<Interval> OfConstant(const Value& value) {
    const DType type = value.type.tensor().dtype;
    if (type == DType::Int(64)) return OfElements<int64_t>(value.payload.bytes());
    if (type == DType::Int(32)) return OfElements<int32_t>(value.payload.bytes());
    return std::nullopt;
  }

  // Whether a scalar is the largest of what are elements of `x`, moved by a number: a check may as
  // well be of what is made of `x` in another way.
  bool IsOfElements(ValueId worst, ValueId x) const {
    while (worst != x) {
      if (g_.value(worst).producer == kNoNode) return false;
      const Node& n = g_.node(g_.value(worst).producer);
      const bool passes = n.op == OpKind::kCast || n.op == OpKind::kReshape ||
                          n.op == OpKind::kSlice || n.op == OpKind::kSub ||
                          (n.op == OpKind::kReduce && n.attrs.GetString("kind") == "max");
      if (!passes) return false;
      worst = n.inputs[0];
    }
    return true;
  }

  // What holds the elements of all operands.
  std::optional<Interval> Union(std::span<const ValueId> operands) const {
    std::optional<Interval> all;
    for (ValueId v : operands) {
      const std::optional<Interval> one = v == kNoValue ? std::nullopt : Of(v);
      if (!one) return std::nullopt;
      all = all ? Interval{std::min(all->min, one->min), std::max(all->max, one->max)} : *one;
    }
    return all;
  }

  std::optional<Interval> OfRange(const Node& n) {
    const std::optional<Interval> start = Of(n.inputs[0]), delta = Of(n.inputs[1]);
    const Interval size = OfSize(n.exprs.at("size")[0]);
    if (!start || !delta || size.max > kMost) return std::nullopt;
    const int64_t steps = std::max<int64_t>(size.max - 1, 0);
    return Within(start->min + std::min<int64_t>(delta->min * steps, 0),
                  start->max + std::max<int64_t>(delta->max * steps, 0));
  }

  std::optional<Interval> OfBinary(const Node& n) const {
    const std::optional<Interval> a = Of(n.inputs[0]), b = Of(n.inputs[1]);
    if (!a || !b) return std::nullopt;
    switch (n.op) {
      case OpKind::kAdd: return Within(a->min + b->min, a->max + b->max);
      case OpKind::kSub: return Within(a->min - b->max, a->max - b->min);
      case OpKind::kMin: return Within(std::min(a->min, b->min), std::min(a->max, b->max));
      case OpKind::kMax: return Within(std::max(a->min, b->min), std::max(a->max, b->max));
      default: break;
    }
    const auto corners = {a->min * b->min, a->min * b->max, a->max * b->min, a->max * b->max};
    return Within(std::min(corners), std::max(corners));
  }

  std::optional<Interval> OfNode(const Node& n) {
    const Type& result = g_.value(n.outputs[0]).type;
    if (!result.IsTensor() || !result.tensor().dtype.IsInt() || result.tensor().dtype.bits < 32)
      return std::nullopt;
    switch (n.op) {
      case OpKind::kCast:
      case OpKind::kReshape:
      case OpKind::kTranspose:
      case OpKind::kSlice:
      case OpKind::kExpand:
      case OpKind::kConcat: return Union(n.inputs);
      case OpKind::kGather:
      case OpKind::kGatherElements:
      case OpKind::kGatherNd: return Union(std::span(n.inputs).first(1));
      case OpKind::kWhere: return Union(std::span(n.inputs).subspan(1));
      case OpKind::kRange: return OfRange(n);
      case OpKind::kAdd:
      case OpKind::kSub:
      case OpKind::kMul:
      case OpKind::kMin:
      case OpKind::kMax: return OfBinary(n);
      default: return std::nullopt;
    }
  }

  const Graph& g_;
  Analyzer sizes_;
  std::vector<std::optional<Interval>> known_;
};

}  // namespace

Graph ProveRequirements(const Graph& g, const GraphPassContext& context) {
  const auto is_check = [](const Node& n) { return n.op == OpKind::kRequire; };
  if (std::none_of(g.nodes.begin(), g.nodes.end(), is_check)) return g;
  ElementIntervals intervals(g);
  const bool unchecked = context.machine->target->IsDevice();
  Graph out = g;
  for (const Node& n : g.nodes) {
    if (is_check(n) && (unchecked || intervals.Holds(n)))
      ReplaceAllUses(out, n.outputs[0], n.inputs[0]);
  }
  Compact(out);
  return out;
}

}  // namespace tenon::graph

#include "graph/pass/split_taps.h"

#include <algorithm>
#include <optional>

#include "graph/pass/constants.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

using Ints = std::vector<int64_t>;

// What the kernel of one more tap has to save to be worth its launch and its sum.
constexpr double kSavedFlopsPerTap = 1e6;
constexpr int64_t kMostTaps = 32;

/// The outputs that one tap contributes to along each spatial axis, and where it reads x for them.
struct Window {
  Ints tap, out_begin, x_begin, sizes;

  int64_t Outputs() const {
    int64_t count = 1;
    for (int64_t size : sizes) count *= size;
    return count;
  }
};

/// A convolution that may be split, in numbers.
struct Shape {
  Ints x, w, out, dilations, pads;
  size_t axes() const { return x.size() - 2; }

  Window Of(int64_t flat_tap) const {
    Window window;
    Ints tap(axes());
    for (size_t i = axes(); i-- > 0; flat_tap /= w[i + 2]) tap[i] = flat_tap % w[i + 2];
    for (size_t i = 0; i < axes(); ++i) {
      const int64_t shift = tap[i] * dilations[i] - pads[i];  // output o reads x at o + shift
      const int64_t begin = std::max<int64_t>(0, -shift);
      const int64_t end = std::min(out[i + 2], x[i + 2] - shift);
      window.out_begin.push_back(begin);
      window.x_begin.push_back(begin + shift);
      window.sizes.push_back(std::max<int64_t>(0, end - begin));
    }
    window.tap = std::move(tap);
    return window;
  }
};

std::optional<Shape> ShapeOf(const Graph& g, const Node& conv) {
  const DType type = g.type(conv.inputs[0]).dtype;
  const auto x = g.type(conv.inputs[0]).StaticDims(), w = g.type(conv.inputs[1]).StaticDims();
  const auto out = g.type(conv.outputs[0]).StaticDims();
  if (!x || !w || !out || !(type == DType::Float(32) || type == DType::Float(64)) ||
      conv.attrs.GetInt("group", 1) != 1)
    return std::nullopt;
  Shape shape{*x, *w, *out, conv.attrs.Get<Ints>("dilations", {}),
              conv.attrs.Get<Ints>("pads", {})};
  const Ints strides = conv.attrs.Get<Ints>("strides", {});
  if (shape.dilations.size() != shape.axes() || shape.pads.size() != 2 * shape.axes() ||
      std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s != 1; }))
    return std::nullopt;
  return shape;
}

// Those of the taps that meet x, the one that meets it for all outputs first; empty where splitting
// does not pay.
std::vector<Window> WindowsOf(const Shape& shape) {
  int64_t taps = 1, outputs = 1;
  for (size_t i = 0; i < shape.axes(); ++i) {
    taps *= shape.w[i + 2];
    outputs *= shape.out[i + 2];
  }
  if (taps < 2 || taps > kMostTaps) return {};
  std::vector<Window> windows;
  int64_t useful = 0;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Window window = shape.Of(tap);
    useful += window.Outputs();
    if (window.Outputs() > 0) windows.push_back(std::move(window));
  }
  std::stable_sort(windows.begin(), windows.end(),
                   [](const Window& a, const Window& b) { return a.Outputs() > b.Outputs(); });
  const bool whole = !windows.empty() && windows[0].Outputs() == outputs;
  const double saved = 2.0 * static_cast<double>(shape.x[0] * shape.w[0] * shape.w[1]) *
                       static_cast<double>(taps * outputs - useful);
  const bool pays = 2 * useful <= taps * outputs &&
                    saved >= kSavedFlopsPerTap * static_cast<double>(windows.size());
  return whole && pays ? windows : std::vector<Window>();
}

Expected<ValueId> Part(Builder& b, ValueId v, const Ints& starts, const Ints& sizes,
                       const std::string& name) {
  ExprAttrs box;
  for (size_t i = 0; i < sizes.size(); ++i) {
    box["starts"].push_back(IndexConst(starts[i]));
    box["sizes"].push_back(IndexConst(sizes[i]));
  }
  Attrs steps;
  steps.Set("steps", Ints(sizes.size(), 1));
  return b.Add(OpKind::kSlice, {v}, name, steps, box);
}

// What one tap contributes, in its window.
Expected<ValueId> Contribution(Builder& b, const Node& conv, const Shape& shape,
                               const Window& window, bool with_bias, const std::string& name) {
  Ints w_starts = {0, 0}, w_sizes = {shape.w[0], shape.w[1]};
  Ints x_starts = {0, 0}, x_sizes = {shape.x[0], shape.x[1]};
  for (size_t i = 0; i < shape.axes(); ++i) {
    w_starts.push_back(window.tap[i]);
    w_sizes.push_back(1);
    x_starts.push_back(window.x_begin[i]);
    x_sizes.push_back(window.sizes[i]);
  }
  TN_ASSIGN_OR_RETURN(const ValueId w, Part(b, conv.inputs[1], w_starts, w_sizes, name + ".w"));
  TN_ASSIGN_OR_RETURN(const ValueId x, Part(b, conv.inputs[0], x_starts, x_sizes, name + ".x"));
  std::vector<ValueId> inputs = {x, w};
  if (with_bias && conv.inputs.size() > 2) inputs.push_back(conv.inputs[2]);
  return b.Add(OpKind::kConv, inputs, name);
}

// The same among zeros, of the size of the result.
Expected<ValueId> Placed(Builder& b, ValueId part, const Shape& shape, const Window& window,
                         const std::string& name) {
  Ints pads = {0, 0}, after = {0, 0};
  for (size_t i = 0; i < shape.axes(); ++i) {
    pads.push_back(window.out_begin[i]);
    after.push_back(shape.out[i + 2] - window.out_begin[i] - window.sizes[i]);
  }
  pads.insert(pads.end(), after.begin(), after.end());
  return b.Add(OpKind::kPad, {part}, name, {}, {{"pads", ToElements(pads)}});
}

Expected<ValueId> Split(Builder& b, const Node& conv) {
  const std::optional<Shape> shape = ShapeOf(b.graph(), conv);
  if (!shape) return kNoValue;
  const std::vector<Window> windows = WindowsOf(*shape);
  if (windows.empty()) return kNoValue;
  ValueId sum = kNoValue;
  for (size_t k = 0; k < windows.size(); ++k) {
    const std::string name = conv.name + ".tap" + std::to_string(k);
    TN_ASSIGN_OR_RETURN(ValueId part, Contribution(b, conv, *shape, windows[k], k == 0, name));
    if (k > 0) {
      TN_ASSIGN_OR_RETURN(part, Placed(b, part, *shape, windows[k], name + ".at"));
      TN_ASSIGN_OR_RETURN(part, b.Add(OpKind::kAdd, {sum, part}, conv.name));
    }
    sum = part;
  }
  return sum;
}

}  // namespace

Graph SplitTaps(const Graph& g, const GraphPassContext&) {
  const std::vector<bool> constant = ConstantValues(g);
  return Rewrite(g, [&](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node n = b.graph().node(id);
    const bool candidate = n.op == OpKind::kConv && constant[static_cast<size_t>(n.inputs[1])] &&
                           n.attrs.GetFloat("pad_value", 0) == 0;
    return candidate ? Split(b, n) : kNoValue;
  });
}

}  // namespace tenon::graph

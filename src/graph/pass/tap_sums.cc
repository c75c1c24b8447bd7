#include "graph/pass/tap_sums.h"

#include <algorithm>
#include <optional>

#include "graph/pass/constants.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kFewTaps = 4;

/// The convolution in numbers: images, channels, places of the image, taps, places of the result.
struct TapShape {
  int64_t n = 0, c = 0, t = 0, taps = 0, places = 0, dilation = 1, before = 0, after = 0;
  bool turned = false;  // the image is a turned one

  Ints Box(int64_t along) const { return turned ? Ints{n, along, c} : Ints{n, c, along}; }
  Ints Along(int64_t before_it) const {
    return turned ? Ints{0, before_it, 0} : Ints{0, 0, before_it};
  }
};

bool IsTurn(const Graph& g, ValueId v) {
  const NodeId made = g.value(v).producer;
  if (made == kNoNode || g.node(made).op != OpKind::kTranspose) return false;
  return g.node(made).attrs.Get<Ints>("perm", {}) == Ints{0, 2, 1};
}

std::optional<TapShape> TapShapeOf(const Graph& g, const Node& conv) {
  const auto x = g.type(conv.inputs[0]).StaticDims(), w = g.type(conv.inputs[1]).StaticDims();
  const auto out = g.type(conv.outputs[0]).StaticDims();
  if (!x || !w || !out || x->size() != 3 || g.type(conv.inputs[0]).dtype != DType::Float(32))
    return std::nullopt;
  TapShape s{(*x)[0], (*x)[1], (*x)[2], (*w)[2], (*out)[2]};
  const bool single = conv.attrs.GetInt("group", 1) == s.c && (*w)[0] == s.c && (*w)[1] == 1;
  const Ints strides = conv.attrs.Get<Ints>("strides", {1});
  const Ints dilations = conv.attrs.Get<Ints>("dilations", {1});
  const Ints pads = conv.attrs.Get<Ints>("pads", {0, 0});
  if (!single || s.taps < 1 || s.taps > kFewTaps || strides != Ints{1} || pads.size() != 2 ||
      dilations.size() != 1 || conv.attrs.GetFloat("pad_value", 0) != 0) {
    return std::nullopt;
  }
  s.dilation = dilations[0];
  s.before = pads[0];
  s.after = pads[1];
  s.turned = IsTurn(g, conv.inputs[0]);
  const bool has_all = s.n > 0 && s.c > 0 && s.places > 0 && s.before >= 0 && s.after >= 0;
  return has_all ? std::optional(s) : std::nullopt;
}

Expected<ValueId> BoxOf(Builder& b, ValueId v, const Ints& starts, const Ints& sizes,
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

Expected<ValueId> Turned(Builder& b, ValueId v, const std::string& name) {
  Attrs attrs;
  attrs.Set("perm", Ints{0, 2, 1});
  return b.Add(OpKind::kTranspose, {v}, name, attrs);
}

// The weights of one tap, one for each channel.
Expected<ValueId> WeightsOf(Builder& b, ValueId w, const TapShape& s, int64_t tap,
                            const std::string& name) {
  TN_ASSIGN_OR_RETURN(const ValueId part, BoxOf(b, w, {0, 0, tap}, {s.c, 1, 1}, name + ".w"));
  ExprAttrs shape;
  shape["shape"] = {IndexConst(s.c)};
  if (!s.turned) shape["shape"].push_back(IndexConst(1));
  return b.Add(OpKind::kReshape, {part}, name, {}, shape);
}

Expected<ValueId> SumOfTaps(Builder& b, const Node& conv, const TapShape& s) {
  ValueId x = conv.inputs[0];
  if (s.turned) {
    TN_ASSIGN_OR_RETURN(x, Turned(b, x, conv.name + ".turned"));
  }
  if (s.before + s.after > 0) {
    Ints pads = s.Along(s.before);
    for (int64_t after : s.Along(s.after)) pads.push_back(after);
    TN_ASSIGN_OR_RETURN(
        x, b.Add(OpKind::kPad, {x}, conv.name + ".padded", {}, {{"pads", ToElements(pads)}}));
  }
  ValueId sum = kNoValue;
  for (int64_t k = 0; k < s.taps; ++k) {
    const std::string name = conv.name + ".tap" + std::to_string(k);
    TN_ASSIGN_OR_RETURN(const ValueId w, WeightsOf(b, conv.inputs[1], s, k, name + ".each"));
    TN_ASSIGN_OR_RETURN(const ValueId part,
                        BoxOf(b, x, s.Along(k * s.dilation), s.Box(s.places), name + ".x"));
    TN_ASSIGN_OR_RETURN(const ValueId product, b.Add(OpKind::kMul, {part, w}, name));
    if (k == 0) {
      sum = product;
      continue;
    }
    TN_ASSIGN_OR_RETURN(sum, b.Add(OpKind::kAdd, {sum, product}, name + ".sum"));
  }
  if (conv.inputs.size() > 2 && conv.inputs[2] != kNoValue) {
    ValueId bias = conv.inputs[2];
    if (!s.turned) {
      ExprAttrs shape;
      shape["shape"] = {IndexConst(s.c), IndexConst(1)};
      TN_ASSIGN_OR_RETURN(bias, b.Add(OpKind::kReshape, {bias}, conv.name + ".bias", {}, shape));
    }
    TN_ASSIGN_OR_RETURN(sum, b.Add(OpKind::kAdd, {sum, bias}, conv.name + ".biased"));
  }
  if (!s.turned) return sum;
  return Turned(b, sum, conv.name);
}

}  // namespace

Graph TapSums(const Graph& g, const GraphPassContext& context) {
  if (context.machine->warp == 0) return g;
  const std::vector<bool> constant = ConstantValues(g);
  return Rewrite(g, [&](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node n = b.graph().node(id);
    if (n.op != OpKind::kConv || !constant[static_cast<size_t>(n.inputs[1])]) return kNoValue;
    const std::optional<TapShape> shape = TapShapeOf(b.graph(), n);
    return shape ? SumOfTaps(b, n, *shape) : kNoValue;
  });
}

}  // namespace tenon::graph

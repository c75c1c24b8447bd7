#include "graph/pass/crop_conv.h"

#include "graph/conv_axis.h"
#include "graph/edit.h"
#include "graph/pass/constants.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

struct Axis : ConvAxis {
  int64_t taps = 0, end = 0;  // end: padding behind the map

  // Cuts taps off both ends; how many at the front.
  int64_t Crop() {
    int64_t front = 0;
    while (taps > 1 && begin >= dilation && !Meets(0)) {
      ++front;
      --taps;
      begin -= dilation;
    }
    while (taps > 1 && end >= dilation && !Meets(taps - 1)) {
      --taps;
      end -= dilation;
    }
    return front;
  }
};

Expected<ValueId> Crop(Builder& b, Node conv) {
  const Graph& g = b.graph();
  auto x = g.type(conv.inputs[0]).StaticDims(), w = g.type(conv.inputs[1]).StaticDims();
  auto out = g.type(conv.outputs[0]).StaticDims();
  if (!x || !w || !out) return kNoValue;
  auto strides = conv.attrs.Get<std::vector<int64_t>>("strides", {});
  auto dilations = conv.attrs.Get<std::vector<int64_t>>("dilations", {});
  auto pads = conv.attrs.Get<std::vector<int64_t>>("pads", {});
  const size_t n = x->size() - 2;
  if (strides.size() != n || dilations.size() != n || pads.size() != 2 * n) return kNoValue;
  std::vector<int64_t> starts(w->size(), 0), sizes = *w;
  for (size_t i = 0; i < n; ++i) {
    Axis axis{{.size = (*x)[i + 2],
               .outputs = (*out)[i + 2],
               .stride = strides[i],
               .dilation = dilations[i],
               .begin = pads[i]},
              (*w)[i + 2],
              pads[n + i]};
    starts[i + 2] = axis.Crop();
    sizes[i + 2] = axis.taps;
    pads[i] = axis.begin;
    pads[n + i] = axis.end;
  }
  if (sizes == *w) return kNoValue;
  ExprAttrs box;
  for (size_t i = 0; i < sizes.size(); ++i) {
    box["starts"].push_back(IndexConst(starts[i]));
    box["sizes"].push_back(IndexConst(sizes[i]));
  }
  Attrs steps;
  steps.Set("steps", std::vector<int64_t>(sizes.size(), 1));
  TN_ASSIGN_OR_RETURN(conv.inputs[1],
                      b.Add(OpKind::kSlice, {conv.inputs[1]}, conv.name + ".cropped", steps, box));
  conv.attrs.Set("pads", pads);
  return b.Add(OpKind::kConv, conv.inputs, conv.name, conv.attrs);
}

}  // namespace

Graph CropConv(const Graph& g, const GraphPassContext&) {
  const std::vector<bool> constant = ConstantValues(g);
  return Rewrite(g, [&](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node& n = b.graph().node(id);
    bool candidate = n.op == OpKind::kConv && constant[static_cast<size_t>(n.inputs[1])] &&
                     n.attrs.GetFloat("pad_value", 0) == 0;
    return candidate ? Crop(b, n) : kNoValue;
  });
}

}  // namespace tenon::graph

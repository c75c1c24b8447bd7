#include "graph/pass/whole_channels.h"

#include "graph/pass/constants.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

const DType kPlain32 = DType::Float(32);
constexpr int64_t kPiece = 8;  // of 16 bits each
// Of an element of a window that is computed by itself.
constexpr double kOperations = 10;

// With zeros behind the channels, which are axis 1 of images and weights.
Expected<ValueId> Filled(Builder& b, ValueId v, int64_t channels, const std::string& name) {
  const auto rank = static_cast<size_t>(b.type(v).rank());
  std::vector<int64_t> pads(2 * rank);
  pads[rank + 1] = kPiece - channels;
  return b.Add(OpKind::kPad, {v}, name, {}, {{"pads", ToElements(pads)}});
}

// Of a convolution with too few; 0: it has enough, or must stay.
int64_t FewChannels(const Graph& g, const Node& conv, const Machine& machine) {
  const auto w = g.type(conv.inputs[1]).StaticDims(), y = g.type(conv.outputs[0]).StaticDims();
  if (!w || !y || w->size() < 3 || g.type(conv.inputs[0]).dtype != kPlain32) return 0;
  const int64_t channels = (*w)[1];
  double elements = static_cast<double>((*y)[0] * channels);  // of all windows
  for (size_t i = 2; i < w->size(); ++i) elements *= static_cast<double>((*y)[i] * (*w)[i]);
  const double a_second = machine.cycles_per_second *
                          static_cast<double>(machine.workers * machine.VectorUnit(kPlain32).n);
  if (elements * kOperations < machine.launch_seconds * a_second) return 0;
  const bool one_group = conv.attrs.GetInt("group", 1) == 1;
  const bool many_maps = (*w)[0] >= kPiece;
  return one_group && many_maps && channels > 0 && channels < kPiece ? channels : 0;
}

bool HasMatrixUnits(const Machine& machine) {
  const DType f16 = DType::Float(16), bf16 = DType::BFloat16();
  return machine.warp > 0 &&
         (machine.MatrixUnit(f16, f16, kPlain32) || machine.MatrixUnit(bf16, bf16, kPlain32));
}

}  // namespace

Graph WholeChannels(const Graph& g, const GraphPassContext& context) {
  if (!HasMatrixUnits(*context.machine)) return g;
  const std::vector<bool> constant = ConstantValues(g);
  return Rewrite(g, [&](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node n = b.graph().node(id);
    if (n.op != OpKind::kConv || !constant[static_cast<size_t>(n.inputs[1])]) return kNoValue;
    const int64_t channels = FewChannels(b.graph(), n, *context.machine);
    if (channels == 0) return kNoValue;
    std::vector<ValueId> inputs = n.inputs;
    TN_ASSIGN_OR_RETURN(inputs[0], Filled(b, inputs[0], channels, n.name + ".x"));
    TN_ASSIGN_OR_RETURN(inputs[1], Filled(b, inputs[1], channels, n.name + ".w"));
    return b.Add(OpKind::kConv, inputs, n.name, n.attrs);
  });
}

}  // namespace tenon::graph

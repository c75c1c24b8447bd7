#include "plan/winograd.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>

#include "graph/pass/constants.h"
#include "graph/pass/rewrite.h"
#include "ops/algorithm.h"
#include "ops/winograd.h"
#include "plan/prices.h"
#include "plan/region.h"

namespace tenon::graph {

namespace {

using Ints = std::vector<int64_t>;
const DType kF32 = DType::Float(32);

bool IsCandidate(const Graph& g, const Node& n, const std::vector<bool>& constant) {
  if (n.op != OpKind::kConv || !constant[static_cast<size_t>(n.inputs[1])]) return false;
  const TensorType &x = g.type(n.inputs[0]), &w = g.type(n.inputs[1]);
  const auto taps = w.StaticDims();
  const auto all_are = [&](const char* name, int64_t value) {
    const Ints list = n.attrs.GetInts(name);
    return std::all_of(list.begin(), list.end(), [&](int64_t k) { return k == value; });
  };
  return x.rank() == 4 && x.dtype == kF32 && w.dtype == x.dtype && taps && (*taps)[2] == 3 &&
         (*taps)[3] == 3 && n.attrs.GetInt("group", 1) == 1 && all_are("strides", 1) &&
         all_are("dilations", 1) && n.attrs.GetFloat("pad_value", 0) == 0;
}

// Each 3 x 3 taps as G·w·Gt: a row of nine times a matrix.
Expected<ValueId> Weights(Builder& b, const Node& conv, int64_t tile) {
  const Ints w = *b.graph().type(conv.inputs[1]).StaticDims();
  const int64_t points = tile + 2;
  const auto g = ops::WinogradWeights(tile);
  std::vector<double> matrix;
  for (size_t p = 0; p < 3; ++p) {
    for (size_t q = 0; q < 3; ++q) {
      for (const auto& row : g) {
        for (const auto& column : g) matrix.push_back(row[p] * column[q]);
      }
    }
  }
  const TensorType type{kF32, {IndexConst(9), IndexConst(points * points)}};
  const ValueId transform =
      b.Constant(conv.name + ".points", type, MakePayload(kF32, std::span<const double>(matrix)));
  const auto shaped = [&](ValueId v, const Ints& dims) {
    ExprAttrs shape;
    for (int64_t d : dims) shape["shape"].push_back(IndexConst(d));
    return b.Add(OpKind::kReshape, {v}, conv.name + ".w", {}, shape);
  };
  TN_ASSIGN_OR_RETURN(const ValueId rows, shaped(conv.inputs[1], {w[0] * w[1], 9}));
  TN_ASSIGN_OR_RETURN(const ValueId u, b.Add(OpKind::kMatMul, {rows, transform}, conv.name + ".u"));
  return shaped(u, {w[0], w[1], points, points});
}

Expected<ValueId> Transformed(Builder& b, const Node& conv, int64_t tile) {
  TN_ASSIGN_OR_RETURN(const ValueId u, Weights(b, conv, tile));
  std::vector<ValueId> inputs = conv.inputs;
  inputs[1] = u;
  Attrs attrs;
  attrs.Set("pads", conv.attrs.GetInts("pads"));
  return b.Add(OpKind::kWinogradConv, inputs, conv.name, attrs);
}

// A graph of one convolution like this one, in either form: as it is with factors of type `factor`.
Graph Alone(const Graph& g, const Node& conv, int64_t tile, DType factor) {
  Builder b;
  b.graph().dims = g.dims;
  std::vector<ValueId> inputs;
  for (ValueId v : conv.inputs) {
    if (inputs.size() == 2 && factor != kF32) break;  // what is added in f32 then
    TensorType type = g.type(v);
    if (tile == 0) type.dtype = factor;
    if (inputs.size() == 1 && tile > 0) type.dims[2] = type.dims[3] = IndexConst(tile + 2);
    inputs.push_back(b.Input("v" + std::to_string(inputs.size()), type));
  }
  Attrs attrs = conv.attrs;
  if (tile > 0) {
    attrs = {};
    attrs.Set("pads", conv.attrs.GetInts("pads"));
  }
  const auto y = b.Add(tile > 0 ? OpKind::kWinogradConv : OpKind::kConv, inputs, "", attrs);
  if (y) b.Output("y", *y);
  return std::move(b).Finish();
}

// Tiles of 4, of 2, or none: 0.
int64_t BestTile(const Graph& g, const Node& conv, DType factor, const GraphPassContext& context) {
  constexpr int64_t kTiles[] = {0, 4, 2};
  std::vector<int64_t> tiles;
  std::vector<Graph> forms;
  for (const int64_t tile : kTiles) {
    Graph form = Alone(g, conv, tile, factor);
    if (form.nodes.empty() && tile == 0) return 0;
    if (form.nodes.empty()) continue;
    tiles.push_back(tile);
    forms.push_back(std::move(form));
  }
  return tiles[plan::BestForm(forms, *context.machine)];
}

Graph WinogradFor(DType factor, const Graph& g, const GraphPassContext& context) {
  const std::vector<bool> constant = ConstantValues(g);
  std::map<std::string, int64_t> known;  // networks repeat themselves
  return Rewrite(g, [&](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node n = b.graph().node(id);
    if (!IsCandidate(b.graph(), n, constant)) return kNoValue;
    const auto [it, is_new] = known.emplace(RegionKey(Alone(b.graph(), n, 0, factor)), 0);
    if (is_new) it->second = BestTile(b.graph(), n, factor, context);
    return it->second > 0 ? Transformed(b, n, it->second) : kNoValue;
  });
}

}  // namespace

Graph Winograd(const Graph& g, const GraphPassContext& context) {
  return WinogradFor(kF32, g, context);
}

Graph WinogradF16(const Graph& g, const GraphPassContext& context) {
  return context.machine->warp > 0 ? g : WinogradFor(DType::Float(16), g, context);
}

Graph WinogradBf16(const Graph& g, const GraphPassContext& context) {
  return context.machine->warp > 0 ? g : WinogradFor(DType::BFloat16(), g, context);
}

}  // namespace tenon::graph

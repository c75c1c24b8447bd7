#include "ops/implicit_gemm.h"

#include <algorithm>
#include <tuple>

#include "ops/conv.h"
#include "ops/tile.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

struct Geometry {
  std::vector<int64_t> x, w, y;  // dims
  int64_t group;
  std::vector<int64_t> strides, dilations, pads;
  size_t rank() const { return x.size() - 2; }
  int64_t maps_per_group() const { return w[0] / group; }
};

std::optional<Geometry> ReadGeometry(const graph::Graph& g, const graph::Node& n) {
  if (n.op != OpKind::kConv) return std::nullopt;
  auto x = g.type(n.inputs[0]).StaticDims(), w = g.type(n.inputs[1]).StaticDims(),
       y = g.type(n.outputs[0]).StaticDims();
  if (!x || !w || !y || x->size() < 3) return std::nullopt;
  return Geometry{*x,
                  *w,
                  *y,
                  n.attrs.GetInt("group", 1),
                  n.attrs.GetInts("strides"),
                  n.attrs.GetInts("dilations"),
                  n.attrs.GetInts("pads")};
}

// Maps in the tile's width, along which one group's windows serve: a divisor of its maps.
RegisterTile GemmTile(const Geometry& c, const Target& target) {
  constexpr int64_t kMaxMaps = 8;
  const int64_t maps = c.maps_per_group();
  RegisterTile tile = ChoosePanelTile(target, std::min(maps, kMaxMaps), c.y.back());
  while (c.group > 1 && maps % tile.tw != 0) --tile.tw;
  return tile;
}

StorageDesc WeightDesc(const Geometry& c, const Target& target) {
  StorageDesc d;
  if (int64_t maps = GemmTile(c, target).tw; maps > 1) d.blocks = {{0, maps}};
  return d;
}

// The innermost axis of space in whole tiles: what the tiles compute, and do not store, beyond its
// end costs no guards.
int64_t PaddedWidth(const Geometry& c, const Target& target) {
  int64_t tile = GemmTile(c, target).nv * Lanes32(target);
  return (c.y.back() + tile - 1) / tile * tile;
}

// Cells that windows may touch around x: before and after it, along one axis of space.
std::pair<int64_t, int64_t> Reach(const Geometry& c, size_t axis, const Target& target) {
  int64_t outputs = axis + 1 == c.rank() ? PaddedWidth(c, target) : c.y[axis + 2];
  int64_t last = (outputs - 1) * c.strides[axis] + (c.w[axis + 2] - 1) * c.dilations[axis];
  return {c.pads[axis], std::max<int64_t>(0, last - c.pads[axis] - c.x[axis + 2] + 1)};
}

bool HaloCovers(const StoredTensor& x, const Geometry& c, const Target& target) {
  for (size_t i = 0; i < c.rank(); ++i) {
    auto [before, after] = Reach(c, i, target);
    int64_t begin = x.Halo(static_cast<int>(i) + 2);
    if (begin < before || *AsInt(x.buffer->shape[i + 2]) < begin + c.x[i + 2] + after) return false;
  }
  return true;
}

}  // namespace

bool HasImplicitGemm(const graph::Graph& g, const graph::Node& node) {
  auto c = ReadGeometry(g, node);
  if (!c || HasDirectConv(g, node) || !(g.type(node.inputs[0]).dtype == DType::Float(32))) {
    return false;
  }
  return std::all_of(c->pads.begin(), c->pads.end(), [](int64_t p) { return p >= 0; });
}

std::vector<int64_t> ImplicitGemmHalo(const graph::Graph& g, const graph::Node& node,
                                      const Target& target) {
  Geometry c = *ReadGeometry(g, node);
  std::vector<int64_t> halo(2 * c.rank());
  for (size_t i = 0; i < c.rank(); ++i) {
    std::tie(halo[i], halo[c.rank() + i]) = Reach(c, i, target);
  }
  return halo;
}

Layout ImplicitGemmWeightLayout(const graph::Graph& g, const graph::Node& node, size_t input,
                                const Target& target) {
  if (input != 1 || !HasImplicitGemm(g, node)) return nullptr;
  Geometry c = *ReadGeometry(g, node);
  return MakeLayout(WeightDesc(c, target), g.type(node.inputs[input]).dims);
}

bool ImplicitGemmApplies(const Group& group, const graph::Node& node) {
  if (!HasImplicitGemm(group.graph(), node) || !group.output(0).desc.IsPlain()) return false;
  Geometry c = *ReadGeometry(group.graph(), node);
  const StoredTensor *x = group.Stored(node.inputs[0]), *w = group.Stored(node.inputs[1]);
  return x != nullptr && x->desc.order.empty() && x->desc.blocks.empty() &&
         HaloCovers(*x, c, group.target()) && w != nullptr &&
         w->desc == WeightDesc(c, group.target());
}

Operand BuildImplicitGemm(Group& group, const graph::Node& node, Attrs* attrs) {
  OpContext op = group.Context(node);
  Geometry c = *ReadGeometry(group.graph(), node);
  te::Storage storage;
  storage.attrs.Set("role", std::string("anchor"));
  std::vector<Expr> shape = op.out.dims;
  shape.back() = IndexConst(PaddedWidth(c, group.target()));
  te::Tensor conv = te::Compute(
      op.name, shape,
      [&](const Indices& o) {
        std::vector<te::Axis> axes = {te::ReduceAxis("ci", IndexConst(c.w[1]))};
        Expr channel = axes[0].var;
        if (c.group > 1) channel = o[1] / c.maps_per_group() * c.w[1] + channel;
        Indices x = {o[0], channel}, w = {o[1], axes[0].var};
        for (size_t i = 0; i < c.rank(); ++i) {
          axes.push_back(te::ReduceAxis("k" + std::to_string(i), IndexConst(c.w[i + 2])));
          Expr tap = axes.back().var;
          x.push_back(o[i + 2] * c.strides[i] + tap * c.dilations[i] - c.pads[i]);
          w.push_back(tap);
        }
        return te::Sum(op.in[0].at(x) * op.in[1].at(w), axes,
                       op.Has(2) ? op.in[2].at({o[1]}) : nullptr);
      },
      storage);
  RegisterTile tile = GemmTile(c, group.target());
  attrs->Set("nv", tile.nv);
  attrs->Set("tw", tile.tw);
  return Read(conv);
}

}  // namespace tenon::ops

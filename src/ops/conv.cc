#include "ops/conv.h"

#include <algorithm>

#include "ops/tile.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

struct Geometry {
  int64_t channels, maps, height, width, kh, kw, group;  // height and width of the output
  std::vector<int64_t> strides, dilations, pads;
  bool Depthwise() const { return group == channels && group == maps && group > 1; }
};

std::optional<Geometry> ReadGeometry(const graph::Graph& g, const graph::Node& n) {
  auto x = g.type(n.inputs[0]).StaticDims(), w = g.type(n.inputs[1]).StaticDims(),
       y = g.type(n.outputs[0]).StaticDims();
  if (n.op != OpKind::kConv || !x || !w || !y || x->size() != 4) return std::nullopt;
  if (!(g.type(n.inputs[0]).dtype == DType::Float(32))) return std::nullopt;
  return Geometry{(*x)[1],
                  (*w)[0],
                  (*y)[2],
                  (*y)[3],
                  (*w)[2],
                  (*w)[3],
                  n.attrs.GetInt("group", 1),
                  n.attrs.GetInts("strides"),
                  n.attrs.GetInts("dilations"),
                  n.attrs.GetInts("pads")};
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

RegisterTile ConvTile(const Geometry& c, const Target& target) {
  return ChooseTile(target, c.height, c.width, CeilDiv(c.maps, Lanes32(target)),
                    c.width >= 14 ? 1 : 4);
}

StorageDesc WeightDesc(const Geometry& c, const Target& target, int64_t input_block) {
  StorageDesc d;
  if (c.Depthwise()) {
    d.blocks = {{0, Lanes32(target)}};
    return d;
  }
  if (input_block > 1) d.blocks.push_back({1, input_block});
  d.blocks.push_back({0, ConvTile(c, target).nv * Lanes32(target)});
  return d;
}

int64_t InputBlock(const graph::TensorType& x) {
  auto desc = ReadLayout(x.layout, x.dims);
  return desc ? desc->BlockOf(1) : 1;
}

// The halo covers every cell that a window may touch.
bool HaloCovers(const StoredTensor& x, const Geometry& c) {
  for (int i = 0; i < 2; ++i) {
    size_t s = static_cast<size_t>(i);
    int64_t out = i == 0 ? c.height : c.width, kernel = i == 0 ? c.kh : c.kw;
    int64_t last = (out - 1) * c.strides[s] + (kernel - 1) * c.dilations[s] - c.pads[s];
    int64_t cells = *AsInt(x.buffer->shape[s + 2]);
    if (c.pads[s] > x.Halo(i + 2) || last + x.Halo(i + 2) >= cells) return false;
  }
  return true;
}

bool StoredAs(const Group& group, const graph::Node& n, size_t input, const StorageDesc& want) {
  const StoredTensor* t = group.Stored(n.inputs[input]);
  return t != nullptr && t->desc == want;
}

bool BlockedOutput(const Group& group) {
  const StoredTensor& y = group.output(0);
  return y.dims.size() == 4 && y.desc.BlockOf(1) == Lanes32(group.target());
}

void SetTile(const RegisterTile& t, Attrs* attrs) {
  attrs->Set("nv", t.nv);
  attrs->Set("th", t.th);
  attrs->Set("tw", t.tw);
}

te::Storage Anchor() {
  te::Storage storage;
  storage.attrs.Set("role", std::string("anchor"));
  return storage;
}

}  // namespace

bool HasDirectConv(const graph::Graph& g, const graph::Node& node) {
  auto c = ReadGeometry(g, node);
  if (!c || (c->group != 1 && !c->Depthwise())) return false;
  return std::all_of(c->pads.begin(), c->pads.end(), [](int64_t p) { return p >= 0; });
}

Layout ConvWeightLayout(const graph::Graph& g, const graph::Node& node, size_t input,
                        const Target& target) {
  if (!HasDirectConv(g, node)) return nullptr;
  Geometry c = *ReadGeometry(g, node);
  StorageDesc d;
  if (input == 1) {
    d = WeightDesc(c, target, InputBlock(g.type(node.inputs[0])));
  } else {
    d.blocks = {{0, Lanes32(target)}};
  }
  return MakeLayout(d, g.type(node.inputs[input]).dims);
}

static bool CommonConditions(const Group& group, const graph::Node& n, bool depthwise) {
  if (!HasDirectConv(group.graph(), n) || !BlockedOutput(group)) return false;
  Geometry c = *ReadGeometry(group.graph(), n);
  const StoredTensor* x = group.Stored(n.inputs[0]);
  if (c.Depthwise() != depthwise || x == nullptr || !HaloCovers(*x, c)) return false;
  int64_t block = x->desc.BlockOf(1);
  if (block != 1 && block != Lanes32(group.target())) return false;
  return StoredAs(group, n, 1, WeightDesc(c, group.target(), block));
}

bool DirectConvApplies(const Group& group, const graph::Node& n) {
  return CommonConditions(group, n, false);
}

Operand BuildDirectConv(Group& group, const graph::Node& n, Attrs* attrs) {
  OpContext op = group.Context(n);
  Geometry c = *ReadGeometry(group.graph(), n);
  const StoredTensor& x = *group.Stored(n.inputs[0]);
  int64_t block = x.desc.BlockOf(1);
  std::vector<Expr> shape = op.out.dims;
  shape[1] = group.output(0).Padded(1);
  te::Tensor conv = te::Compute(
      op.name, shape,
      [&](const Indices& o) {
        te::Axis cb = te::ReduceAxis("cb", IndexConst(CeilDiv(c.channels, block)));
        te::Axis kh = te::ReduceAxis("kh", IndexConst(c.kh)),
                 kw = te::ReduceAxis("kw", IndexConst(c.kw));
        te::Axis ci = te::ReduceAxis("ci", IndexConst(block));
        Expr channel = Expr(cb.var) * block + ci.var;
        Expr h = o[2] * c.strides[0] + Expr(kh.var) * c.dilations[0] - c.pads[0];
        Expr w = o[3] * c.strides[1] + Expr(kw.var) * c.dilations[1] - c.pads[1];
        Expr product =
            op.in[0].at({o[0], channel, h, w}) * op.in[1].at({o[1], channel, kh.var, kw.var});
        return te::Sum(product, {cb, kh, kw, ci}, op.Has(2) ? op.in[2].at({o[1]}) : nullptr);
      },
      Anchor());
  SetTile(ConvTile(c, group.target()), attrs);
  return Read(conv);
}

bool DepthwiseApplies(const Group& group, const graph::Node& n) {
  return CommonConditions(group, n, true);
}

Operand BuildDepthwise(Group& group, const graph::Node& n, Attrs* attrs) {
  OpContext op = group.Context(n);
  Geometry c = *ReadGeometry(group.graph(), n);
  std::vector<Expr> shape = op.out.dims;
  shape[1] = group.output(0).Padded(1);
  te::Tensor conv = te::Compute(
      op.name, shape,
      [&](const Indices& o) {
        te::Axis kh = te::ReduceAxis("kh", IndexConst(c.kh)),
                 kw = te::ReduceAxis("kw", IndexConst(c.kw));
        Expr h = o[2] * c.strides[0] + Expr(kh.var) * c.dilations[0] - c.pads[0];
        Expr w = o[3] * c.strides[1] + Expr(kw.var) * c.dilations[1] - c.pads[1];
        Expr product =
            op.in[0].at({o[0], o[1], h, w}) * op.in[1].at({o[1], IndexConst(0), kh.var, kw.var});
        return te::Sum(product, {kh, kw}, op.Has(2) ? op.in[2].at({o[1]}) : nullptr);
      },
      Anchor());
  SetTile(ChooseTile(group.target(), c.height, c.width, 1, 1), attrs);
  attrs->Set("unroll_window", true);
  return Read(conv);
}

bool BlockedWindowApplies(const Group& group, const graph::Node& n) {
  const StoredTensor* x = group.Stored(n.inputs[0]);
  return BlockedOutput(group) && x != nullptr && x->desc.BlockOf(1) == Lanes32(group.target());
}

Operand BuildBlockedWindow(Group& group, const graph::Node& n, Attrs* attrs) {
  const StoredTensor& y = group.output(0);
  SetTile(ChooseTile(group.target(), 1, TypicalSize(group.graph(), y.dims[3]), 1, 1), attrs);
  // The definition reads channels one by one: on the padded domain it computes on padding zeros.
  OpContext op = group.Context(n);
  op.out.dims[1] = y.Padded(1);
  op.in[0].dims[1] = y.Padded(1);
  return Define(op);
}

}  // namespace tenon::ops

#include "ops/matmul.h"

#include <algorithm>

#include "ops/rules.h"
#include "ops/tile.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

struct Shape {
  int64_t m, n, k;
  bool trans_b;
};

// The product of [.., m, k] and a [k, n] (or [n, k]) matrix of f32.
std::optional<Shape> ReadShape(const graph::Graph& g, const graph::Node& node) {
  auto a = g.type(node.inputs[0]).StaticDims(), b = g.type(node.inputs[1]).StaticDims();
  if (node.op != OpKind::kMatMul || !a || !b || b->size() != 2 || a->size() < 2)
    return std::nullopt;
  if (!(g.type(node.inputs[0]).dtype == DType::Float(32)) || node.attrs.Get<bool>("trans_a", false))
    return std::nullopt;
  bool trans = node.attrs.Get<bool>("trans_b", false);
  if ((*b)[trans ? 0 : 1] < 2)
    return std::nullopt;  // a column has no lanes: the fallback reduces it
  return Shape{(*a)[a->size() - 2], (*b)[trans ? 0 : 1], a->back(), trans};
}

// A tile reads one element of each of its rows at a time. Where rows are a multiple of 4 KB long,
// these lie in one set of the first-level cache, which has 8 ways or a few more: a tile of more
// rows keeps missing it. (14 rows of 1024 columns run at 0.6 of the speed of 6.)
constexpr int64_t kMaxRows = 8;

// Rows along the tile's width.
RegisterTile MatMulTile(const Shape& s, const Target& target) {
  return ChoosePanelTile(target, std::min(s.m, kMaxRows), s.n);
}

// Tiles of rows that half of the second-level cache holds, in blocks of near-equal size.
int64_t RowBlock(const Shape& s, int64_t rows, const Target& target) {
  int64_t tiles = (s.m + rows - 1) / rows, tile_bytes = rows * s.k * 4;
  int64_t most = std::clamp<int64_t>(target.Cpu().caches().l2 / 2 / tile_bytes, 1, kMaxRowBlock);
  int64_t blocks = (tiles + most - 1) / most;
  return (tiles + blocks - 1) / blocks;
}

StorageDesc PanelDesc(const Shape& s, const Target& target) {
  StorageDesc d;
  if (!s.trans_b) d.order = {1, 0};
  d.blocks = {{s.trans_b ? 0 : 1, MatMulTile(s, target).nv * Lanes32(target)}};
  return d;
}

}  // namespace

Layout MatMulWeightLayout(const graph::Graph& g, const graph::Node& node, size_t input,
                          const Target& target) {
  auto s = ReadShape(g, node);
  if (!s || input != 1) return nullptr;
  return MakeLayout(PanelDesc(*s, target), g.type(node.inputs[1]).dims);
}

bool PackedMatMulApplies(const Group& group, const graph::Node& node) {
  auto s = ReadShape(group.graph(), node);
  const StoredTensor* b = s ? group.Stored(node.inputs[1]) : nullptr;
  return b != nullptr && b->desc == PanelDesc(*s, group.target()) && group.output(0).desc.IsPlain();
}

Operand BuildPackedMatMul(Group& group, const graph::Node& node, Attrs* attrs) {
  OpContext op = group.Context(node);
  Shape s = *ReadShape(group.graph(), node);
  te::Storage storage;
  storage.attrs.Set("role", std::string("anchor"));
  size_t r = op.out.dims.size();
  RegisterTile tile = MatMulTile(s, group.target());
  te::Tensor product = te::Compute(
      op.name, op.out.dims,
      [&](const Indices& o) {
        te::Axis k = te::ReduceAxis("k", IndexConst(s.k));
        Indices a(o.begin(), o.end() - 1);
        a.push_back(k.var);
        Indices b = s.trans_b ? Indices{o[r - 1], k.var} : Indices{k.var, o[r - 1]};
        return te::Sum(op.in[0].at(a) * op.in[1].at(b), {k});
      },
      storage);
  attrs->Set("nv", tile.nv);
  attrs->Set("tw", tile.tw);
  attrs->Set("row_block", RowBlock(s, tile.tw, group.target()));
  return Read(product);
}

}  // namespace tenon::ops

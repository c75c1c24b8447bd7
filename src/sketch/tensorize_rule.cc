// Products of narrow types by an operation of the machine's table: its second operand is packed so
// that what one operation takes lies together, then tiles are as of plain vectors.
#include <fmt/format.h>

#include <algorithm>

#include "dependence/body.h"
#include "ops/scheduling.h"
#include "sketch/cpu_tiles.h"

namespace tenon::sketch {

namespace {

using ops::Concat;

/// A product whose innermost steps one operation of the table makes.
struct TensorizedProduct {
  const ComputeUnit* unit = nullptr;  // null: there is none
  std::string b;                      // the operand that runs along the lanes
  size_t k = 0, n = 0;                // its dims over the reduction and over the lanes
  size_t rank = 0;
};

// The dim of a region that is this variable; its rank where none is.
size_t DimOf(const Region& region, const Var& var) {
  size_t d = 0;
  while (d < region->ranges.size() && region->ranges[d]->min.get() != var.get()) ++d;
  return d;
}

TensorizedProduct ProductOf(const Draft& d, const std::string& name) {
  TensorizedProduct out;
  const Body body(d.schedule.func());
  const Body::Place* place = body.FindBlock(name);
  if (!place || place->block()->writes.size() != 1) return out;
  const Block& block = *place->block();
  Var n, k;
  for (const IterVar& v : block.iters) (v->iter_kind == IterKind::kReduce ? k : n) = v->var;
  std::vector<Region> operands;
  for (const Region& r : ReadsOf(block)) {
    if (r->buffer != block.writes[0]->buffer) operands.push_back(r);
  }
  if (!n || !k || operands.size() != 2) return out;
  for (size_t b = 0; b < 2; ++b) {
    const Region &region = operands[b], &other = operands[1 - b];
    const size_t rank = region->ranges.size();
    const size_t dim_n = DimOf(region, n), dim_k = DimOf(region, k);
    if (dim_n == rank || dim_k == rank || DimOf(other, k) + 1 != other->ranges.size()) continue;
    for (const ComputeUnit& unit : d.machine->units) {
      const bool fits = !unit.row.empty() && unit.m == 1 && unit.k > 1 &&
                        unit.a == other->buffer->dtype && unit.b == region->buffer->dtype &&
                        unit.acc == block.writes[0]->buffer->dtype;
      if (fits) return {&unit, region->buffer->name, dim_k, dim_n, rank};
    }
  }
  return out;
}

// "(…, k, …, n) -> (…, n / lanes, k / group, n % lanes, k % group)": panels.
Layout PackedLayout(const TensorizedProduct& p) {
  std::vector<Var> coords;
  std::vector<Expr> storage;
  for (size_t i = 0; i < p.rank; ++i) coords.push_back(VarNode::Make(fmt::format("d{}", i)));
  for (size_t i = 0; i < p.rank; ++i) {
    if (i != p.k && i != p.n) storage.push_back(coords[i]);
  }
  const Expr k = coords[p.k], group = IndexConst(p.unit->k);
  const Expr n = coords[p.n], lanes = IndexConst(p.unit->n);
  storage.insert(storage.end(), {n / lanes, k / group, n % lanes, k % group});
  return LayoutNode::Make(std::move(coords), std::move(storage));
}

void ApplyTensorize(Draft* d, const std::string& block, int) {
  Schedule& s = d->schedule;
  const BlockView v = View(s, block);
  const TensorizedProduct p = ProductOf(*d, block);
  const std::string copy = s.CacheRead(block, p.b, Scope::kGlobal);
  s.TransformLayout(ops::WrittenBuffer(s, copy), PackedLayout(p));
  ops::ParallelOuter(s, s.GetLoops(copy));
  const std::string store = StoreOf(d, v, Scope::kRegister);
  const Names axes = s.GetLoops(store);
  if (!s.ok() || axes.empty()) return d->Refuse();
  const Tile t = CutTile(d, block, axes, v.type, true);
  if (t.lanes != p.unit->n) return d->Refuse();
  const Names outer = WithoutEmpty(t.outer), around = WithoutEmpty(t.block);
  s.Reorder(Concat({t.outer, t.block, t.inner, {t.lane}}));
  const std::string at = around.empty() ? outer.back() : around.back();
  s.ComputeAt(block, at);
  ops::InnerLoops in = ops::LoopsInside(s, block, at);
  if (!s.ok() || in.spatial.empty() || in.reduce.empty()) return d->Refuse();
  if (s.GetExtent(in.spatial.back()) % t.lanes != 0) return d->Refuse();
  const Names lane = s.Split(in.spatial.back(), {-1, t.lanes});
  const Names step = s.Split(in.reduce.back(), {-1, p.unit->k});
  in.spatial.back() = lane[0];
  in.reduce.back() = step[0];
  s.Reorder(Concat({in.reduce, in.spatial, {lane[1], step[1]}}));
  const std::string init = s.DecomposeReduction(block, in.reduce[0]);
  const Names start = ops::LoopsInside(s, init, at).spatial;
  for (size_t i = 0; i < start.size(); ++i)
    i + 1 == start.size() ? s.Vectorize(start[i]) : s.Unroll(start[i]);
  s.Tensorize(lane[1], p.unit->row);
  for (const std::string& loop : in.spatial) s.Unroll(loop);
  for (const std::string& loop : WithoutEmpty(t.inner)) s.Unroll(loop);
  if (!t.lane.empty()) s.Vectorize(t.lane);
  if (s.ok()) ShareOut(d, block, t.cut);
}

int TensorizeWays(const Draft& d, const std::string& block) {
  const BlockView v = View(d.schedule, block);
  if (!v.all_known || v.reduce.empty() || v.spatial.empty() || !IsUntouched(d.schedule, block))
    return 0;
  const TensorizedProduct p = ProductOf(d, block);
  return p.unit && v.reduce_extents.back() % p.unit->k == 0 &&
                 v.spatial_extents.back() % p.unit->n == 0
             ? 1
             : 0;
}

}  // namespace

Rule TensorizeRule() { return {"tensorize", Then::kTryOthers, TensorizeWays, ApplyTensorize}; }

}  // namespace tenon::sketch

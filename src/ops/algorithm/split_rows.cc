//   out[…, i, j]  →  for shares of j, …, i / vector_rows:
//                      for j / (nv · lanes) of the share:
//                        for k / 2: sums[vector_rows, nv, lanes] += a[i, k] · (high[k] + low[k])
//                        sums, with what follows the product, to out
//
// Two neighbours along k lie together: the first and the second halves of words.
#include "ops/algorithm/split_rows.h"

#include <algorithm>
#include <utility>

#include "ops/tiling.h"

namespace tenon::ops {

using te::Indices;

namespace {

const DType kWide = DType::Float(32);
constexpr int64_t kMostVectorRows = 8;  // of a tile
constexpr int64_t kNeighbours = 2;

MicroKernel SplitKernel(const Machine& machine) { return PlainKernel(machine, kWide); }

// Panels are met once. A core reads ahead by itself only as far as its operations under way reach.
void AskForRowsAhead(Schedule& s, const std::string& product, const std::string& pairs,
                     const Point& point) {
  constexpr int64_t kAheadBytes = 8 << 10, kVectorBytes = 64;
  std::string matrix;  // it is read in two places, a part in each
  const Names read = ReadBuffers(s, product);
  for (const std::string& name : read) {
    if (std::count(read.begin(), read.end(), name) == 2) matrix = name;
  }
  if (matrix.empty()) return;
  Schedule tried = s;
  const std::string hint =
      tried.Prefetch(product, matrix, pairs,
                     CeilDiv(kAheadBytes, ValueOf(point, "nv") * kNeighbours * kVectorBytes));
  for (const std::string& l : LoopsInside(tried, hint, pairs).spatial) tried.Unroll(l);
  if (tried.ok()) s = std::move(tried);
}

}  // namespace

int64_t SplitRows(const Point& point) {
  const auto knob = std::find_if(point.begin(), point.end(),
                                 [](const graph::Choice& c) { return c.name == "vector_rows"; });
  return knob == point.end() ? 0 : knob->value;
}

std::vector<int64_t> SplitRowsChoices(const Site& site, const ProductShape& s) {
  const int64_t lanes = TileKernelFor(site.machine, s.a, s.b, s.types.accumulator)->lanes();
  const bool can =
      SplitKernel(site.machine).lanes() == lanes && s.k > kNeighbours && s.k % kNeighbours == 0;
  if (!can || s.least.back() > kMostVectorRows) return {0};
  return {0, kMostVectorRows};
}

WorkDescription SplitRowsWork(const Site& site, const ProductShape& s, const Point& point) {
  // Shifts, masks and the sum that make an f32 of two parts, beside a multiply-add for each row.
  constexpr int64_t kPutTogether = 3;
  const MicroKernel kernel = SplitKernel(site.machine);
  const int64_t nv = ValueOf(point, "nv"), shares = ValueOf(point, "shares");
  const int64_t rows = SplitRows(point), columns = nv * kernel.lanes();
  const int64_t blocks = CeilDiv(s.m, rows), panels = CeilDiv(s.n, columns);
  WorkDescription work;
  work.type = kWide;
  work.unit = kernel.unit;
  const auto turns = static_cast<double>(s.Lead() * panels * s.k);
  const Stream panel = {
      site.machine.LevelFor(static_cast<int64_t>(BytesOf(site.region, site.input(1)))),
      static_cast<double>(columns * kWide.Bytes())};
  const int64_t full = s.m / rows, rest = s.m % rows;
  work.AddTileSteps(rows + kPutTogether, nv, turns * static_cast<double>(full), panel);
  work.AddTileSteps(rest + kPutTogether, nv, rest > 0 ? turns : 0, panel);
  work.vector_ops = EpilogueElements(site);
  AddProductBytes(&work, site, s.Lead() * blocks);
  std::vector<int64_t> outer = s.lead;
  outer.insert(outer.begin(), shares);
  outer.push_back(blocks);
  ShareOut(&work, site.machine, outer, point);
  return work;
}

// Columns that fill the last panel are computed, and not stored: masks would take a vector apart.
Operand BuildSplitRows(Group& group, const OpContext& op, const ProductShape& s,
                       const Point& point) {
  std::vector<Expr> dims = s.ResultDims(op.out.dims);
  const int64_t columns = ValueOf(point, "nv") * SplitKernel(group.site().machine).lanes();
  dims.back() = IndexConst(CeilDiv(s.n, columns) * columns);
  group.Mark(op.name, BlockRole::kAnchor);
  const te::Tensor product = te::Compute(op.name, dims, [&](const Indices& o) {
    const te::Axis pair = te::ReduceAxis("k", IndexConst(s.k / kNeighbours));
    const te::Axis half = te::ReduceAxis("half", IndexConst(kNeighbours));
    const Expr k = pair.var * kNeighbours + half.var;
    Indices a = s.RowAt({o.begin(), o.end() - 1}, op.in[0].dims);
    a.push_back(k);
    const auto part = [&](int64_t which) {
      const Expr &row = s.trans_b ? o.back() : k, &column = s.trans_b ? k : o.back();
      return CastExpr::Make(kWide, op.in[1].at({IndexConst(which), row, column}));
    };
    return te::Sum(op.in[0].at(a) * (part(0) + part(1)), {pair, half});
  });
  return As(op.out.dtype, {kWide, op.out.dims, [=, own = op.out.dims](const Indices& i) {
                             Indices at = s.RowsOf({i.begin(), i.end() - 1}, own);
                             at.push_back(i.back());
                             return product.At(at);
                           }});
}

void ScheduleSplitRows(Schedule& s, const Parts& parts, const Machine& machine,
                       const Point& point) {
  const std::string product = OnlyBlock(s, parts, BlockRole::kAnchor);
  const MicroKernel kernel = SplitKernel(machine);
  Names axes = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput));
  // The product may have all rows on one axis.
  const auto rows = static_cast<long>(axes.size() + 1 - s.GetSpatialLoops(product).size());
  if (rows > 1) {
    const std::string fused = s.Fuse({axes.begin(), axes.begin() + rows});
    axes = {fused, axes.back()};
  }
  const size_t r = axes.size();
  const Names i = s.SplitBy(axes[r - 2], {"-1", "$vector_rows"});
  const Names j = s.SplitBy(axes[r - 1], {"$shares", "-1", "$nv", std::to_string(kernel.lanes())});
  const Names lead(axes.begin(), axes.end() - 2);
  const Names outer = Concat({{j[0]}, lead, {i[0]}});
  s.Reorder(Concat({outer, {j[1], i[1], j[2], j[3]}}));
  s.SetScope(WrittenBuffer(s, product), Scope::kRegister);
  s.ComputeAt(product, j[1]);
  const InnerLoops in = LoopsInside(s, product, j[1]);
  if (!s.ok()) return;
  const Names columns = s.SplitBy(in.spatial.back(), {"-1", std::to_string(kernel.lanes())});
  const Names tile = Concat({{in.spatial.begin(), in.spatial.end() - 1}, {columns[0]}});
  s.Reorder(Concat({in.reduce, tile, {columns[1]}}));
  const Names start = LoopsInside(s, s.DecomposeReduction(product, in.reduce[0]), j[1]).spatial;
  AskForRowsAhead(s, product, in.reduce[0], point);
  for (size_t k = 0; k + 1 < start.size(); ++k) s.Unroll(start[k]);
  s.Vectorize(start.back());
  s.Vectorize(columns[1]);
  for (const std::string& l : Concat({{in.reduce[1]}, tile, {i[1], j[2]}})) s.Unroll(l);
  s.Vectorize(j[3]);
  ParallelFirst(s, outer, ValueOf(point, "parallel_loops"));
  ScheduleHalos(s, parts, machine);
}

}  // namespace tenon::ops

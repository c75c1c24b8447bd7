// Product with a matrix of codes of few bits: the panels of packed_matmul, of bytes that hold
// several codes each. A vector of codes is read, shifted and masked, and becomes weights by one
// multiply-add with the scales and offsets of its block, which stay in registers over the block; so
// what streams from memory is the codes, and each weight is made once for all rows of a tile.
//
//   out[…, i, j]  →  for …, j / (nv · lanes), i / tile_rows:
//                      for block, bytes of it, code of the byte (written out):
//                        w[nv, lanes] = code · scale[block] - offset[block]
//                        tile[tile_rows, nv, lanes] += a[i, k] · w
//                      store the tile, with what follows the product
#include <algorithm>

#include "ops/algorithm/tile_schedule.h"
#include "ops/group.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);
constexpr int64_t kMostRows = 8;

struct CodedShape {
  std::vector<int64_t> lead, least;  // as those of ProductShape
  int64_t m = 0, n = 0, k = 0;
  int64_t bits = 0, block = 0;

  int64_t CodesPerByte() const { return 8 / bits; }
};

std::optional<CodedShape> ReadCoded(const Site& site) {
  if (!AreNumbers(site.input(1)) || !AreNumbers(site.input(2))) return std::nullopt;
  const std::vector<int64_t> a = site.Sizes(site.input(0));
  CodedShape s;
  s.lead.assign(a.begin(), a.end() - 2);
  s.m = a[a.size() - 2];
  s.k = a.back();
  s.n = site.Sizes(site.input(1))[0];
  s.bits = site.node().attrs.GetInt("bits");
  s.block = site.node().attrs.GetInt("block");
  s.least = site.LeastSizes(site.input(0));
  s.least.pop_back();
  return s;
}

bool IsFor(const Site& site) {
  const auto s = ReadCoded(site);
  return s && s->n > 1 && s->k > 0 && site.machine.warp == 0;
}

int64_t Vectors(const CodedShape& s, const Machine& machine) {
  const int64_t vectors = CeilDiv(s.n, machine.Lanes(kF32));
  return vectors > 4 ? CeilDiv(vectors, 4) * 4 : vectors;
}

Space SpaceOf(const Site& site) {
  const CodedShape s = *ReadCoded(site);
  Space space;
  const Expr nv = space.Add({"nv", DivisorsOf(Vectors(s, site.machine), 4), true, true});
  const Expr rows = space.Add({"tile_rows", OneTo(std::min(s.m, kMostRows)), false, false});
  // Besides the sums: weights, scales and offsets, and what the weights are made of.
  space.Require(Or(Le(rows * nv + nv * 3 + 3, IndexConst(site.machine.registers)),
                   And(Eq(rows, IndexConst(1)), Eq(nv, IndexConst(1)))));
  std::vector<TripCount> outer = TripCounts(s.lead, {s.least.begin(), s.least.end() - 1});
  const Expr panel = nv * IndexConst(site.machine.Lanes(kF32));
  outer.emplace_back((IndexConst(s.n - 1) + panel) / panel);
  const auto tiles = [&](int64_t m) {
    return (IndexConst(std::max<int64_t>(m, 1) - 1) + rows) / rows;
  };
  outer.emplace_back(tiles(s.m), tiles(s.least.back()));
  AddParallelLoops(&space, outer, !AreNumbers(site.result()));
  return space;
}

std::vector<Want> Wants(const Site& site, const Point& point) {
  const int64_t panel = ValueOf(point, "nv") * site.machine.Lanes(kF32);
  std::vector<Want> wants = {{site.node().inputs[0], {}}};
  for (size_t i = 1; i < 4; ++i)
    wants.push_back({site.node().inputs[i], {.order = {}, .blocks = {{0, panel}}}});
  WantPlainResults(site, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  const CodedShape s = *ReadCoded(site);
  const int64_t nv = ValueOf(point, "nv"), rows = ValueOf(point, "tile_rows");
  const int64_t panels = Vectors(s, site.machine) / nv;
  int64_t lead = 1;
  for (int64_t d : s.lead) lead *= d;
  WorkDescription work;
  const int64_t tiles = CeilDiv(s.m, rows);
  AddTiles(&work, 1, s.m, 1, rows, nv, static_cast<double>(lead * panels * s.k));
  constexpr double kToMakeOne = 4;  // shift and mask, two conversions, a multiply-add
  work.vector_ops =
      EpilogueElements(site) + static_cast<double>(lead * tiles * s.n * s.k) * kToMakeOne;
  const double border = BorderBytes(site.region);
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(border))] = border;
  std::vector<int64_t> outer = s.lead;
  outer.insert(outer.end(), {CeilDiv(s.n, nv * site.machine.Lanes(kF32)), tiles});
  ShareOut(&work, site.machine, outer, point);
  return work;
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  const std::string anchor = OnlyBlock(s, parts, BlockRole::kAnchor);
  Names axes = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput));
  const size_t r = axes.size();
  Names lead(axes.begin(), axes.end() - 2);
  Names i = s.SplitBy(axes[r - 2], {"-1", "$tile_rows"});
  Names j = s.SplitBy(axes[r - 1], {"-1", "$nv", std::to_string(machine.Lanes(kF32))});
  FillTile(s, parts, machine, point, Concat({lead, {j[0], i[0]}}), {i[1], j[1], j[2]});
  // The definition's loops along k: blocks, bytes, codes. Their names are those that they have in
  // the tile.
  const Names along = s.GetReduceLoops(anchor);
  if (along.size() == 3) s.Unroll(along[2]);
}

constexpr OpKind kOps[] = {OpKind::kBlockMatMul};

}  // namespace

extern const Algorithm kBlockMatMul;
const Algorithm kBlockMatMul = {"block_matmul", kOps,    IsFor,      SpaceOf, Wants,
                                Work,           nullptr, ScheduleIt, 2};

}  // namespace tenon::ops

// Attention where threads run together, as three launches: the scores by tiles (thread_tile.h) with
// scale and mask, their softmax by rows (thread_rows.h), and the weighted sums of values by tiles.
// Scores go through memory, where one head's stay in the second-level cache.
#include <algorithm>
#include <utility>

#include "graph/dims.h"
#include "ops/algorithm/thread_rows.h"
#include "ops/algorithm/thread_tile.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);
constexpr const char* kOfValues = "values";

bool IsFor(const Site& site) {
  if (site.machine.warp == 0 || site.region.outputs.size() != 1) return false;
  for (size_t i = 0; i < 3; ++i) {
    if (!AreNumbers(site.input(i)) || !IsTiled(site.input(i).dtype)) return false;
    for (int64_t d : site.Sizes(site.input(i))) {
      if (d <= 0) return false;
    }
  }
  const std::vector<Expr>& own = site.result().dims;
  const std::vector<Expr>& dims = site.region.type(site.region.outputs[0]).dims;
  if (own.size() < 3) return false;
  // Of tiles: single queries, keys and columns have none.
  const std::vector<int64_t> y = site.Sizes(site.result()), k = site.Sizes(site.input(1));
  return y[y.size() - 2] > 1 && y.back() > 1 && k[k.size() - 2] > 1 &&
         std::equal(dims.begin(), dims.end(), own.begin(), own.end(), graph::ProveEqual);
}

/// The two products.
struct AttentionShape {
  TileShape scores, values;
};

AttentionShape ShapeOf(const Site& site) {
  const std::vector<int64_t> y = site.Sizes(site.result());
  const int64_t depth = site.Sizes(site.input(0)).back();
  const std::vector<int64_t> k = site.Sizes(site.input(1));
  const int64_t keys = k[k.size() - 2], queries = y[y.size() - 2];
  const std::vector<int64_t> lead(y.begin(), y.end() - 2);
  AttentionShape s{{lead, queries, keys, depth}, {lead, queries, y.back(), keys}};
  // One set of threads and vectors for both; a row of values is shorter than one of scores.
  s.values.pieces = kOfValues;
  const int64_t vector = depth % 32 == 0 && keys % 4 == 0 && y.back() % 4 == 0 ? 4 : 1;
  s.scores.a_vector = s.scores.b_vector = s.scores.out_vector = vector;
  return s;
}

Space SpaceOf(const Site& site) {
  const AttentionShape shape = ShapeOf(site);
  Space space = TileSpace(shape.scores, site.machine, false, kOfValues);
  space.Add(RowThreads(shape.scores.n, site.machine));
  return space;
}

std::vector<Want> Wants(const Site& site, const Point&) {
  std::vector<Want> wants;
  WantPlainResults(site, &wants);
  return wants;
}

// Three launches, one after the other: of each counts what the busiest multiprocessor has to do.
WorkDescription Work(const Site& site, const Point& point) {
  const AttentionShape shape = ShapeOf(site);
  WorkDescription work = TileWork(shape.scores, site, point), rows;
  const WorkDescription values = TileWork(shape.values, site, point);
  AddRowWork(&rows, site.machine, shape.scores.Lead() * shape.scores.m, shape.scores.n,
             ValueOf(point, "threads"), 3, 12);
  const auto share = [](const WorkDescription& w) {
    return static_cast<double>(CeilDiv(w.tiles, w.team)) / static_cast<double>(w.tiles);
  };
  for (const WorkDescription* w : {&values, &std::as_const(rows)}) {
    const double more = share(*w) / share(work);
    work.vector_ops += w->vector_ops * more;
    for (size_t i = 0; i < work.bytes.size(); ++i) work.bytes[i] += w->bytes[i] * more;
  }
  work.barriers = 2;
  return work;
}

Indices Last(Indices lead, const Expr& a, const Expr& b) {
  lead.push_back(a);
  lead.push_back(b);
  return lead;
}

// The element where both indices are within the sizes, else zero; sizes that are whole tiles need
// no test.
Expr Element(const Operand& x, const Indices& lead, const Expr& i, int64_t rows, int64_t tile,
             const Expr& j, int64_t columns, int64_t step) {
  Expr value = x.at(Last(lead, i, j));
  const Expr zero = MakeConst(value->dtype, 0);
  if (rows % tile != 0) value = Select::Make(Lt(i, IndexConst(rows)), value, zero);
  return columns % step == 0 ? value : Select::Make(Lt(j, IndexConst(columns)), value, zero);
}

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const AttentionShape shape = ShapeOf(group.site());
  const Operand &q = op.in[0], &keys = op.in[1], &v = op.in[2];
  const int64_t depth = ValueOf(point, "depth");
  const int64_t rows = TileRows(point), columns = TileColumns(point);
  TileOperands first;
  first.a = [&](const Indices& lead, const Expr& i, const Expr& step, const Expr& k) {
    return Element(q, lead, i, shape.scores.m, rows, step * depth + k, shape.scores.k, depth);
  };
  first.b = [&](const Indices& lead, const Expr& j, const Expr& step, const Expr& k) {
    return Element(keys, lead, j, shape.scores.n, columns, step * depth + k, shape.scores.k, depth);
  };
  const auto scores = BuildTiles(group, op.name + "_qk", shape.scores, first, point);
  std::vector<Expr> dims(op.out.dims.begin(), op.out.dims.end() - 1);
  dims.push_back(IndexConst(shape.scores.n));
  const Operand masked = Read(te::Compute(
      group.Mark(op.name + "_masked", BlockRole::kMasked), dims, [&](const Indices& i) -> te::Body {
        const Expr value = scores(i) * MakeConst(kF32, op.node->attrs.GetFloat("scale", 1));
        if (!op.Has(3)) return value;
        const Operand& mask = op.in[3];
        const Expr m = BroadcastAt(mask.dtype.IsBool() ? mask : As(kF32, mask), i, dims);
        return m->dtype.IsBool() ? Select::Make(m, value, LowestOf(value->dtype)) : value + m;
      }));
  const Operand weights = SoftmaxOfRows(group, op.name + "_row", masked);
  const Operand shares = Read(te::Compute(group.Mark(op.name + "_shares", BlockRole::kRow), dims,
                                          [&](const Indices& i) { return weights.at(i); }));
  const int64_t value_rows = TileRows(point, kOfValues);
  const int64_t value_columns = TileColumns(point, kOfValues);
  TileOperands second;
  second.a = [&](const Indices& lead, const Expr& i, const Expr& step, const Expr& k) {
    return Element(shares, lead, i, shape.values.m, value_rows, step * depth + k, shape.values.k,
                   depth);
  };
  second.b = [&](const Indices& lead, const Expr& j, const Expr& step, const Expr& k) {
    return Element(v, lead, step * depth + k, shape.values.k, depth, j, shape.values.n,
                   value_columns);
  };
  const auto sums = BuildTiles(group, op.name, shape.values, second, point);
  const bool nan_to_zero = op.node->attrs.Get<bool>("nan_to_zero", false);
  const auto value = [sums, nan_to_zero](const Indices& i) {
    Expr y = sums(i);
    if (!nan_to_zero) return y;
    return Select::Make(Call::Make(Intrinsic::kIsNan, {y}), MakeConst(y->dtype, 0), y);
  };
  return As(op.out.dtype, {kF32, op.out.dims, value});
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine&, const Point& point) {
  const Names tiles = BlocksOf(s, parts, BlockRole::kMove);
  const Names sums = BlocksOf(s, parts, BlockRole::kAnchor);
  if (!s.ok() || tiles.size() != 4 || sums.size() != 2) return;
  ScheduleTile(s, {tiles[2], tiles[3], sums[1], OnlyBlock(s, parts, BlockRole::kOutput)}, point,
               {.a_along_k = true, .pieces = kOfValues});
  ScheduleRows(s, BlocksOf(s, parts, BlockRole::kAcross), OnlyBlock(s, parts, BlockRole::kRow));
  ScheduleTile(s, {tiles[0], tiles[1], sums[0], OnlyBlock(s, parts, BlockRole::kMasked)}, point,
               {.a_along_k = true, .b_along_k = true});
}

constexpr OpKind kOps[] = {OpKind::kAttention};

}  // namespace

extern const Algorithm kThreadAttention;
const Algorithm kThreadAttention = {"thread_attention", kOps, IsFor, SpaceOf, Wants, Work, Build,
                                    ScheduleIt,         4};

}  // namespace tenon::ops

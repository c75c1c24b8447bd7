// Matrix product where threads run together: tiles of the result by blocks of threads
// (thread_tile.h). Single rows of many matrices are rows of one. The second operand lies with its
// columns next to each other, rows of the first are read where they lie.
#include "ops/algorithm/thread_tile.h"
#include "ops/conv_geometry.h"
#include "ops/group.h"
#include "ops/micro_kernel.h"
#include "ops/scheduling.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);

bool IsFor(const Site& site) {
  if (site.machine.warp == 0 || !AreNumbers(site.input(0))) return false;
  const auto s = ReadProductOfRows(site);
  return s && IsTiled(s->a) && s->a == s->b && s->types.accumulator == kF32 && s->k > 0 &&
         s->m > 0 && s->Lead() > 0;
}

TileShape ShapeOf(const Site& site) {
  const ProductShape p = *ReadProductOfRows(site);
  TileShape s{p.lead, p.m, p.n, p.k};
  if (p.k % 32 == 0) s.a_vector = 4;
  if (p.n % 4 == 0) s.b_vector = s.out_vector = 4;
  return s;
}

Space SpaceOf(const Site& site) { return TileSpace(ShapeOf(site), site.machine); }

std::vector<Want> Wants(const Site& site, const Point&) {
  std::vector<Want> wants;
  if (ReadProduct(site)->trans_b) wants.push_back({site.node().inputs[1], {.order = {1, 0}}});
  WantPlainResults(site, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  return TileWork(ShapeOf(site), site, point);
}

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const ProductShape p = *ReadProductOfRows(group.site());
  const int64_t depth = ValueOf(point, "depth");
  auto within = [](const Expr& value, const Expr& i, int64_t size, int64_t tile, const Expr& k,
                   int64_t most) {
    Expr out = value;
    const Expr zero = MakeConst(value->dtype, 0);
    if (size % tile != 0) out = Select::Make(Lt(i, IndexConst(size)), out, zero);
    return most > 0 ? Select::Make(Lt(k, IndexConst(most)), out, zero) : out;
  };
  const int64_t tail = p.k % depth != 0 ? p.k : 0;
  const int64_t rows = TileRows(point), columns = TileColumns(point);
  TileOperands operands;
  operands.b_has_lead = false;
  operands.a = [&](const Indices& lead, const Expr& i, const Expr& step, const Expr& k) {
    Indices row = lead;
    const Expr kk = step * depth + k;
    row.push_back(i);
    Indices at = p.RowAt(row, op.out.dims);
    at.push_back(kk);
    return within(op.in[0].at(at), i, p.m, rows, kk, tail);
  };
  operands.b = [&](const Indices&, const Expr& j, const Expr& step, const Expr& k) {
    const Expr kk = step * depth + k;
    return within(op.in[1].at(p.trans_b ? Indices{j, kk} : Indices{kk, j}), j, p.n, columns, kk,
                  tail);
  };
  const auto sums = BuildTiles(group, op.name, ShapeOf(group.site()), operands, point);
  const std::vector<Expr> dims = op.out.dims;
  return As(op.out.dtype, {kF32, dims, [sums, p, dims](const Indices& i) {
                             Indices at = p.RowsOf({i.begin(), i.end() - 1}, dims);
                             at.push_back(i.back());
                             return sums(at);
                           }});
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine&, const Point& point) {
  // Rows of several matrices by one are rows of one: then the tile of the first operand has no axes
  // but steps, k and rows.
  const size_t rank = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput)).size();
  const bool together = WrittenRank(s, OnlyBlock(s, parts, BlockRole::kMove)) == 3;
  ScheduleTiles(s, parts, point, {.a_along_k = true, .rows = together ? rank - 1 : 1});
}

constexpr OpKind kOps[] = {OpKind::kMatMul};

}  // namespace

extern const Algorithm kThreadMatMul;
const Algorithm kThreadMatMul = {"thread_matmul", kOps,       IsFor, SpaceOf, Wants, Work,
                                 Build,           ScheduleIt, 2};

}  // namespace tenon::ops

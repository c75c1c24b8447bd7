// Matrix product by units of a warp (warp_tile.h). Rows of the first operand and columns, or rows,
// of the second are read where they lie. A second operand that is one matrix multiplies the rows of
// all matrices of the first, so these count as rows of one; where both are batches, each pair is a
// product by itself.
#include <algorithm>

#include "graph/infer.h"
#include "ops/algorithm/group_tile.h"
#include "ops/algorithm/warp_tile.h"
#include "ops/group.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);

struct WarpProduct {
  WarpShape shape;
  bool one_matrix = false;  // of the second operand: rows are all axes of the first but the last
  bool trans_b = false;
};

// Whether the operand is one of the kernel's, not computed in it, and nobody else reads it there:
// the copy engine's description of a tensor is no address.
bool IsForEngine(const Site& site, size_t i) {
  const graph::ValueId value = site.node().inputs[i];
  const auto has = [value](const std::vector<graph::ValueId>& values) {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  const graph::Graph& region = site.region;
  for (size_t n = 0; n < region.nodes.size(); ++n) {
    if (static_cast<graph::NodeId>(n) != site.anchor && has(region.nodes[n].inputs)) return false;
  }
  return has(region.inputs) && !has(region.outputs);
}

std::optional<WarpProduct> Read(const Site& site) {
  const graph::TensorType &a = site.input(0), &b = site.input(1);
  const Attrs& attrs = site.node().attrs;
  if (!AreNumbers(a) || !AreNumbers(b) || attrs.Get<bool>("trans_a", false)) return std::nullopt;
  const auto types = graph::ContractionTypesOf(a.dtype, b.dtype, attrs);
  if (!types || types->accumulator != kF32 || a.dtype != b.dtype) return std::nullopt;
  const std::vector<int64_t> x = site.Sizes(a), y = site.Sizes(b), out = site.Sizes(site.result());
  WarpProduct p;
  p.one_matrix = y.size() == 2;
  p.trans_b = attrs.Get<bool>("trans_b", false);
  WarpShape& s = p.shape;
  s.type = a.dtype;
  s.k = x.back();
  s.n = out.back();
  s.m = out[out.size() - 2];
  s.lead.assign(out.begin(), out.end() - 2);
  if (p.one_matrix) {
    for (int64_t d : s.lead) s.m *= d;
    s.lead.clear();
  }
  for (int64_t d : out) {
    if (d < 1) return std::nullopt;
  }
  if (s.m < 2 || s.n < 2 || s.k < 1) return std::nullopt;
  // Whole pieces of 16 bytes, in rows and where they begin.
  const int64_t piece = 16 / a.dtype.Bytes();
  s.b_along_k = p.trans_b || a.dtype.Bytes() == 4;
  if (s.k % 32 == 0) {
    s.a_vector = piece;
    const bool stored_along_k = p.trans_b || p.one_matrix;
    if (s.b_along_k ? stored_along_k : s.n % piece == 0) s.b_vector = piece;
  }
  s.out_vector = WarpStoreVector(site, s.n);
  // Boxes of 64 rows lie within one matrix.
  const int64_t rows = x[x.size() - 2];
  s.matrices = IsForEngine(site, 0) && IsForEngine(site, 1) && (rows == s.m || rows % 64 == 0);
  return p;
}

bool IsFor(const Site& site) {
  if (site.region.outputs.size() != 1) return false;
  const auto p = Read(site);
  return p && WarpUnit(site.machine, p->shape.type);
}

WarpShape ShapeOf(const Site& site) { return Read(site)->shape; }

Space SpaceOf(const Site& site) { return WarpTileSpace(ShapeOf(site), site.machine); }

std::vector<Want> Wants(const Site& site, const Point&) {
  const WarpProduct p = *Read(site);
  std::vector<Want> wants = {{site.node().inputs[0], {}}, {site.node().inputs[1], {}}};
  // A matrix whose columns are wanted is stored so; others are turned around on their way.
  if (p.one_matrix && p.shape.b_along_k && !p.trans_b) wants[1].desc.order = {1, 0};
  WantPlainResults(site, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  return WarpTileWork(ShapeOf(site), site, point);
}

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const WarpProduct p = *Read(group.site());
  const WarpShape& s = p.shape;
  const int64_t all_k = WarpTileDepth(s, point);
  const auto within_k = [&](const Expr& k, const std::function<Expr(const Expr&)>& at) {
    if (all_k == s.k) return at(k);
    const Expr value = at(Min(k, IndexConst(s.k - 1)));
    return Select::Make(Lt(k, IndexConst(s.k)), value, MakeConst(value->dtype, 0));
  };
  const std::vector<Expr>& dims = op.out.dims;
  // The matrix of an operand that belongs to the result's.
  const auto matrix = [&](const Operand& x, const Indices& lead) {
    Indices at;
    const size_t own = x.dims.size() - 2;
    for (size_t i = 0; i < own; ++i) {
      const size_t from = lead.size() - own + i;
      at.push_back(BroadcastIndex(x.dims[i], lead[from], dims[from]));
    }
    return at;
  };
  WarpOperands operands;
  operands.b_has_lead = !p.one_matrix;
  operands.a_has_lead = !p.one_matrix;
  operands.a = [&](const Indices& lead, const Expr& i, const Expr& k) {
    const Expr row = Around(i, s.m, WarpTileRows(point), 1);
    Indices at;
    if (p.one_matrix) {
      at = Delinearize(row, {dims.begin(), dims.end() - 1});
      // Of a first operand with fewer axes than the result there is none: a matrix adds none.
    } else {
      at = matrix(op.in[0], lead);
      at.push_back(row);
    }
    return within_k(k, [&](const Expr& kk) {
      Indices all = at;
      all.push_back(kk);
      return op.in[0].at(all);
    });
  };
  operands.b = [&](const Indices& lead, const Expr& j, const Expr& k) {
    const int64_t piece = s.b_along_k ? 1 : s.b_vector;
    const Expr column = Around(j, s.n, WarpTileColumns(point), piece);
    return within_k(k, [&](const Expr& kk) {
      Indices at = p.one_matrix ? Indices{} : matrix(op.in[1], lead);
      at.push_back(p.trans_b ? column : kk);
      at.push_back(p.trans_b ? kk : column);
      return op.in[1].at(at);
    });
  };
  const auto sums = BuildWarpTiles(group, op.name, s, operands, point);
  const bool one = p.one_matrix;
  return As(op.out.dtype,
            {kF32, dims, [sums, one, dims](const Indices& i) {
               if (!one) return sums(i);
               const Indices row(i.begin(), i.end() - 1);
               return sums({Linearize(row, {dims.begin(), dims.end() - 1}), i.back()});
             }});
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  const size_t rank = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput)).size();
  const bool one_matrix = WrittenRank(s, OnlyBlock(s, parts, BlockRole::kMove)) == 2;
  ScheduleWarpTiles(s, parts, machine, point, {.rows = one_matrix ? rank - 1 : 1});
}

constexpr OpKind kOps[] = {OpKind::kMatMul};

}  // namespace

extern const Algorithm kWarpMatMul;
const Algorithm kWarpMatMul = {"warp_matmul", kOps,  IsFor,      SpaceOf, Wants,
                               Work,          Build, ScheduleIt, 3};

namespace {

bool IsForGroups(const Site& site) {
  return IsFor(site) && HasGroupTiles(ShapeOf(site), site.machine);
}
Space GroupSpaceOf(const Site& site) { return GroupTileSpace(ShapeOf(site), site.machine); }

}  // namespace

extern const Algorithm kGroupMatMul;
const Algorithm kGroupMatMul = {"group_matmul", kOps, IsForGroups, GroupSpaceOf, Wants, Work, Build,
                                ScheduleIt,     3};

}  // namespace tenon::ops

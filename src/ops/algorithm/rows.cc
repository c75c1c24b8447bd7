// Operators along the last axis of row-major tensors: softmax and layer norm. Rows are shared out;
// every step of a row runs under its row, so that the row stays in the nearest cache from one step
// to the next.
#include "graph/dims.h"
#include "ops/group.h"
#include "ops/row_steps.h"
#include "ops/scheduling.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);

bool IsFor(const Site& site) {
  const graph::TensorType& x = site.input(0);
  if (x.dims.empty() || !(x.dtype == kF32) || site.machine.warp != 0) return false;
  for (graph::ValueId v : site.region.outputs) {
    const graph::TensorType& y = site.region.type(v);
    if (y.rank() != x.rank() || !graph::ProveEqual(y.dims.back(), x.dims.back())) return false;
  }
  return site.node().attrs.GetInt("axis") == x.rank() - 1 &&
         site.Sizes(x).back() >= site.machine.Lanes(kF32);
}

Space SpaceOf(const Site&) { return {}; }

std::vector<Want> Wants(const Site& site, const Point&) {
  std::vector<Want> wants = {{site.node().inputs[0], {}}};
  WantPlainResults(site, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point&) {
  const std::vector<int64_t> x = site.Sizes(site.input(0));
  double elements = 1;
  for (int64_t d : x) elements *= static_cast<double>(d);
  WorkDescription work;
  // Softmax: a maximum, an exponential of ten operations, a sum, a product; layer norm likewise
  // few.
  const double per_element = site.node().op == OpKind::kSoftmax ? 13 : 8;
  work.vector_ops = elements * per_element + EpilogueElements(site);
  const double bytes = BorderBytes(site.region);
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = bytes;
  work.team = site.machine.workers;
  work.tiles = static_cast<int64_t>(elements / static_cast<double>(std::max<int64_t>(1, x.back())));
  return work;
}

Operand BuildSoftmax(Group& group, const OpContext& op, const std::vector<Expr>& rows,
                     const Expr& n, int64_t lanes) {
  const Operand& x = op.in[0];
  Operand m = ReduceRow(group, op.name + "_max", rows, n, lanes, BinaryOp::kMax,
                        [&](const Indices& row, const Expr& j) { return x.at(InRow(row, j)); });
  Operand e =
      Read(te::Compute(group.Mark(op.name + "_exp", BlockRole::kRow), x.dims,
                       [&](const Indices& i) { return WeightOf(x.at(i) - m.at(RowOf(i))); }));
  Operand s = ReduceRow(group, op.name + "_sum", rows, n, lanes, BinaryOp::kAdd,
                        [&](const Indices& row, const Expr& j) { return e.at(InRow(row, j)); });
  return {x.dtype, x.dims, [e, s](const Indices& i) {
            Expr sum = s.at(RowOf(i));
            return e.at(i) * (MakeConst(sum->dtype, 1) / sum);
          }};
}

Operand BuildLayerNorm(Group& group, const OpContext& op, const std::vector<Expr>& rows,
                       const Expr& n, int64_t lanes) {
  const Operand& x = op.in[0];
  Expr scale = AsInt(n) ? MakeConst(x.dtype, 1.0 / static_cast<double>(*AsInt(n)))
                        : MakeConst(x.dtype, 1) / CastExpr::Make(x.dtype, n);
  Operand sum = ReduceRow(group, op.name + "_sum", rows, n, lanes, BinaryOp::kAdd,
                          [&](const Indices& row, const Expr& j) { return x.at(InRow(row, j)); });
  Operand squares = ReduceRow(group, op.name + "_var", rows, n, lanes, BinaryOp::kAdd,
                              [&](const Indices& row, const Expr& j) {
                                Expr d = x.at(InRow(row, j)) - sum.at(row) * scale;
                                return d * d;
                              });
  double epsilon = op.node->attrs.GetFloat("epsilon");
  Operand factor = Read(te::Compute(
      group.Mark(op.name + "_factor", BlockRole::kAcross), rows, [&](const Indices& row) {
        Expr var = squares.at(row) * scale;
        return MakeConst(var->dtype, 1) /
               Call::Make(Intrinsic::kSqrt, {var + MakeConst(var->dtype, epsilon)});
      }));
  return {x.dtype, x.dims, [op, x, sum, factor, scale](const Indices& i) {
            Expr y = (x.at(i) - sum.at(RowOf(i)) * scale) * factor.at(RowOf(i)) *
                     BroadcastAt(op.in[1], i, x.dims);
            return op.Has(2) ? y + BroadcastAt(op.in[2], i, x.dims) : y;
          }};
}

Operand Build(Group& group, const graph::Node& node, const Point&) {
  OpContext op = group.Context(node);
  std::vector<Expr> rows(op.in[0].dims.begin(), op.in[0].dims.end() - 1);
  const Expr& n = op.in[0].dims.back();
  const int64_t lanes = group.site().machine.Lanes(kF32);
  return node.op == OpKind::kSoftmax ? BuildSoftmax(group, op, rows, n, lanes)
                                     : BuildLayerNorm(group, op, rows, n, lanes);
}

// Vectorizes the loop of a block that runs along the row; a tail is masked.
void VectorizeAlong(Schedule& s, const std::string& loop, int64_t lanes) {
  if (s.GetExtent(loop) <= lanes * 4 && s.GetExtent(loop) % lanes == 0) {
    s.Vectorize(loop);
  } else {
    s.Vectorize(s.Tile(loop, lanes)[1]);
  }
}

void ScheduleStep(Schedule& s, const std::string& block, BlockRole role, const std::string& row,
                  int64_t lanes) {
  s.SetScope(WrittenBuffer(s, block), role == BlockRole::kRow ? Scope::kLocal : Scope::kRegister);
  if (!row.empty()) s.ComputeAt(block, row);
  InnerLoops in = LoopsInside(s, block, row);
  if (!s.ok()) return;
  if (role == BlockRole::kLanes) {
    if (!in.reduce.empty()) {  // more than one vector in a row
      s.Reorder({in.reduce[0], in.spatial.back()});
      std::string init = s.DecomposeReduction(block, in.reduce[0]);
      s.Vectorize(s.GetLoops(init).back());
    }
    s.Vectorize(in.spatial.back());
  } else if (role == BlockRole::kAcross && !in.reduce.empty()) {
    s.DecomposeReduction(block, in.reduce.at(0));
    s.Vectorize(in.reduce.at(0));
  } else if (role == BlockRole::kRow) {
    VectorizeAlong(s, in.spatial.back(), lanes);
  }
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point&) {
  const int64_t lanes = machine.Lanes(kF32);
  Names axes = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput));
  Names rows(axes.begin(), axes.end() - 1);
  std::string along = axes.back();
  Names steps;
  for (const std::string& b : s.GetBlocks()) {
    const BlockRole role = PartOf(parts, b).role;
    if (role == BlockRole::kLanes || role == BlockRole::kAcross || role == BlockRole::kRow)
      steps.push_back(b);
  }
  std::string row = rows.empty() ? "" : rows.size() == 1 ? rows[0] : s.Fuse(rows);
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
    ScheduleStep(s, *it, PartOf(parts, *it).role, row, lanes);
    if (!s.ok()) return;
  }
  VectorizeAlong(s, along, lanes);
  if (!row.empty()) s.Parallel(row);
}

constexpr OpKind kOps[] = {OpKind::kSoftmax, OpKind::kLayerNorm};

}  // namespace

extern const Algorithm kRows;
const Algorithm kRows = {"rows", kOps, IsFor, SpaceOf, Wants, Work, Build, ScheduleIt, 2};

}  // namespace tenon::ops

// Normalisations along the last axis where threads run together. A block of threads has a row: they
// pass over it once for each reduction and once for the result, and meet in shared memory after
// each. The row comes from afar the first time alone, for a block's rows stay in the nearest cache.
//
//   out[…, j]  →  blocks over rows:
//                   for each reduction: threads over j, each a part of it; the parts are combined
//                   threads over j: store
#include "ops/algorithm/thread_rows.h"

#include <algorithm>

#include "graph/dims.h"
#include "ops/row_steps.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);

bool IsFor(const Site& site) {
  const graph::TensorType& x = site.input(0);
  if (site.machine.warp == 0 || x.dims.empty() || !(x.dtype == kF32) || !AreNumbers(x)) {
    return false;
  }
  for (graph::ValueId v : site.region.outputs) {
    const graph::TensorType& y = site.region.type(v);
    if (y.rank() != x.rank() || !graph::ProveEqual(y.dims.back(), x.dims.back())) return false;
  }
  const std::vector<int64_t> sizes = site.Sizes(x);
  return site.region.outputs.size() == 1 && site.node().attrs.GetInt("axis") == x.rank() - 1 &&
         std::all_of(sizes.begin(), sizes.end(), [](int64_t d) { return d > 0; });
}

Space SpaceOf(const Site& site) {
  Space space;
  space.Add(RowThreads(site.Sizes(site.input(0)).back(), site.machine));
  return space;
}

std::vector<Want> Wants(const Site& site, const Point&) {
  std::vector<Want> wants = {{site.node().inputs[0], {}}};
  WantPlainResults(site, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  const std::vector<int64_t> x = site.Sizes(site.input(0));
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < x.size(); ++i) rows *= x[i];
  WorkDescription work;
  const double operations = site.node().op == OpKind::kSoftmax ? 12 : 4;
  AddRowWork(&work, site.machine, rows, x.back(), ValueOf(point, "threads"), 3, operations);
  work.vector_ops += EpilogueElements(site);
  work.bytes[site.machine.memory.size() - 1] = BorderBytes(site.region);
  return work;
}

te::Tensor Reduce(Group& group, const std::string& name, const Operand& x, bool is_max,
                  const std::function<Expr(const Indices& row, const Expr& j)>& element) {
  const std::vector<Expr> rows(x.dims.begin(), x.dims.end() - 1);
  return te::Compute(group.Mark(name, BlockRole::kAcross), rows, [&](const Indices& row) {
    te::Axis j = te::ReduceAxis("j", x.dims.back());
    Expr value = element(row, j.var);
    return is_max ? te::MaxOf(value, {j}) : te::Sum(value, {j});
  });
}

Operand BuildLayerNorm(Group& group, const OpContext& op) {
  const Operand& x = op.in[0];
  const Expr scale = MakeConst(x.dtype, 1.0 / static_cast<double>(*AsInt(x.dims.back())));
  const te::Tensor sum =
      Reduce(group, op.name + "_sum", x, false,
             [&](const Indices& row, const Expr& j) { return x.at(InRow(row, j)); });
  const te::Tensor squares =
      Reduce(group, op.name + "_var", x, false, [&](const Indices& row, const Expr& j) {
        Expr d = x.at(InRow(row, j)) - sum.At(row) * scale;
        return d * d;
      });
  const double epsilon = op.node->attrs.GetFloat("epsilon");
  return {x.dtype, x.dims, [op, x, sum, squares, scale, epsilon](const Indices& i) {
            const Indices row = RowOf(i);
            const Expr deviation = Call::Make(
                Intrinsic::kSqrt, {squares.At(row) * scale + MakeConst(x.dtype, epsilon)});
            Expr y = (x.at(i) - sum.At(row) * scale) * (MakeConst(x.dtype, 1) / deviation) *
                     BroadcastAt(op.in[1], i, x.dims);
            return op.Has(2) ? y + BroadcastAt(op.in[2], i, x.dims) : y;
          }};
}

Operand Build(Group& group, const graph::Node& node, const Point&) {
  OpContext op = group.Context(node);
  return node.op == OpKind::kSoftmax ? SoftmaxOfRows(group, op.name, op.in[0])
                                     : BuildLayerNorm(group, op);
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine&, const Point&) {
  ScheduleRows(s, BlocksOf(s, parts, BlockRole::kAcross), OnlyBlock(s, parts, BlockRole::kOutput));
}

constexpr OpKind kOps[] = {OpKind::kSoftmax, OpKind::kLayerNorm};

}  // namespace

Knob RowThreads(int64_t n, const Machine& machine) {
  Knob knob{"threads", {}, false, true};
  for (int64_t threads = 32; threads <= 512; threads *= 2) {
    if (threads > 32 && (threads > n || threads > machine.target->gpu().max_threads_per_block))
      break;
    knob.domain.push_back(threads);
  }
  return knob;
}

void AddRowWork(WorkDescription* work, const Machine& machine, int64_t rows, int64_t n,
                int64_t threads, int64_t passes, double operations) {
  // Of a thread: one that waits for memory, and one step of the tree in which parts are combined.
  constexpr double kLoadCycles = 60, kTreeCycles = 40, kWarp = 32;
  const auto lanes = static_cast<double>(machine.VectorUnit(kF32).n);
  const double warps = static_cast<double>(threads) / kWarp;
  const double together = std::clamp(static_cast<double>(CeilDiv(rows, machine.workers)), 1.0,
                                     std::max(1.0, 32 / warps));
  double levels = 0;
  for (int64_t t = 1; t < threads; t *= 2) ++levels;
  const auto steps = static_cast<double>(CeilDiv(n, threads));
  const double cycles = static_cast<double>(passes) * (steps * kLoadCycles + levels * kTreeCycles);
  const auto all = static_cast<double>(rows);
  work->vector_ops +=
      all * (static_cast<double>(passes) * steps * static_cast<double>(threads) * operations +
             cycles * lanes / together);
  work->tiles = rows;
  work->team = machine.workers;
}

void ScheduleRows(Schedule& s, const Names& reductions, const std::string& store) {
  const Names axes = s.GetLoops(store);
  if (!s.ok()) return;
  const Names rows(axes.begin(), axes.end() - 1);
  std::string row = rows.empty() ? "" : rows.size() == 1 ? rows[0] : s.Fuse(rows);
  std::string along = axes.back();
  if (row.empty()) {  // one row: the only one of a loop
    const Names parts = s.Split(along, {1, -1});
    row = parts[0];
    along = parts[1];
  }
  s.Bind(row, ThreadAxis::kBlockIdxX);
  s.Bind(s.SplitBy(along, {"-1", "$threads"})[1], ThreadAxis::kThreadIdxX);
  for (auto it = reductions.rbegin(); it != reductions.rend(); ++it) {
    s.SetScope(WrittenBuffer(s, *it), Scope::kShared);
    s.ComputeAt(*it, row);
    const Names reduce = LoopsInside(s, *it, row).reduce;
    if (!s.ok()) return;
    if (reduce.empty()) continue;
    s.Bind(s.SplitBy(reduce[0], {"-1", "$threads"})[1], ThreadAxis::kThreadIdxX);
  }
}

Operand SoftmaxOfRows(Group& group, const std::string& name, const Operand& x) {
  const te::Tensor most =
      Reduce(group, name + "_max", x, true,
             [&](const Indices& row, const Expr& j) { return x.at(InRow(row, j)); });
  const auto grown = [x, most](const Indices& i) {
    return Call::Make(Intrinsic::kExp, {x.at(i) - most.At(RowOf(i))});
  };
  const te::Tensor sum =
      Reduce(group, name + "_sum", x, false,
             [&](const Indices& row, const Expr& j) { return grown(InRow(row, j)); });
  return {x.dtype, x.dims, [grown, sum](const Indices& i) {
            const Expr total = sum.At(RowOf(i));
            return grown(i) * (MakeConst(total->dtype, 1) / total);
          }};
}

extern const Algorithm kThreadRows;
const Algorithm kThreadRows = {"thread_rows", kOps, IsFor, SpaceOf, Wants, Work, Build, ScheduleIt};

}  // namespace tenon::ops

// Normalisations along the last axis where threads run together. A block of threads has a row, in
// their registers, so that it is read and written once, in whole vectors. They pass over it for
// each reduction and for the result, and meet in shared memory after each.
//
//   out[…, j]  →  blocks over rows:
//                   threads over j: hold the row
//                   for each reduction: threads over j, each a part of it; the parts are combined
//                   threads over j: store
//
// Of short rows, where there are many, a block has several, along threadIdx.y.
#include "ops/algorithm/thread_rows.h"

#include <algorithm>

#include "graph/dims.h"
#include "ops/algorithm/thread_tile.h"
#include "ops/row_steps.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;
using graph::ValueId;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);

bool IsFor(const Site& site) {
  const graph::TensorType& x = site.input(0);
  if (site.machine.warp == 0 || x.dims.empty() || !IsTiled(x.dtype) || !AreNumbers(x)) {
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

// Neighbours of a row that a thread reads and writes at once.
int64_t VectorOf(const Site& site) {
  int64_t bits = 0;
  for (ValueId v : {site.region.inputs[0], site.region.outputs[0]})
    bits = std::max<int64_t>(bits, site.region.type(v).dtype.StorageBits());
  int64_t vector = std::max<int64_t>(1, site.machine.vector_bits / std::max<int64_t>(bits, 8));
  const int64_t n = site.Sizes(site.input(0)).back();
  while (n % vector != 0) vector /= 2;
  return vector;
}

int64_t RowsOf(const Site& site) {
  const std::vector<int64_t> x = site.Sizes(site.input(0));
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < x.size(); ++i) rows *= x[i];
  return rows;
}

// Threads that each have a vector of the row at least, a few of them where rows are short.
Knob ThreadsFor(const Site& site) {
  Knob knob = RowThreads(site.Sizes(site.input(0)).back(), site.machine);
  const int64_t vectors = CeilDiv(site.Sizes(site.input(0)).back(), VectorOf(site));
  for (int64_t threads = 16; threads >= 4 && vectors < 2 * knob.domain[0]; threads /= 2)
    knob.domain.insert(knob.domain.begin(), threads);
  return knob;
}

// Rows of a block: as many as fill it, while there are blocks for all multiprocessors.
int64_t RowsTogether(const Site& site, int64_t threads) {
  constexpr int64_t kThreads = 128, kBlocks = 8;
  const int64_t rows = RowsOf(site);
  int64_t together = std::max<int64_t>(1, kThreads / threads);
  while (together > 1 &&
         (rows % together != 0 || rows / together < site.machine.workers * kBlocks)) {
    together /= 2;
  }
  return together;
}

Space SpaceOf(const Site& site) {
  // Elements of a row that a thread has in registers: few, for their reduction is a chain, and more
  // where the block has no more threads.
  constexpr int64_t kHeld = 32, kMostHeld = 64;
  const int64_t n = site.Sizes(site.input(0)).back();
  Space space;
  const Knob knob = ThreadsFor(site);
  const Expr threads = space.Add(knob);
  space.Add({"vector", {VectorOf(site)}, false, true});
  // As many as suit the threads, so no choice.
  std::vector<int64_t> together;
  for (int64_t t : knob.domain) together.push_back(RowsTogether(site, t));
  std::sort(together.begin(), together.end());
  together.erase(std::unique(together.begin(), together.end()), together.end());
  const Expr rows = space.Add({"rows", together, false, true});
  Expr suits = BoolConst(false);
  for (int64_t t : knob.domain) {
    suits = Or(suits, And(Eq(threads, IndexConst(t)), Eq(rows, IndexConst(RowsTogether(site, t)))));
  }
  space.Require(suits);
  // Longer rows are read again for each pass.
  const int64_t most = RowThreads(n, site.machine).domain.back();
  space.Add({"held", {n <= most * kMostHeld ? 1 : 0}, false, true});
  if (n <= most * kMostHeld) {
    const int64_t each = std::max(kHeld, CeilDiv(n, most));
    space.Require(Le(IndexConst(n), threads * IndexConst(each)));
  }
  return space;
}

std::vector<Want> Wants(const Site& site, const Point&) {
  std::vector<Want> wants = {{site.node().inputs[0], {}}};
  WantPlainResults(site, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  const int64_t rows = RowsOf(site), n = site.Sizes(site.input(0)).back();
  WorkDescription work;
  const double operations = site.node().op == OpKind::kSoftmax ? 12 : 4;
  AddRowWork(&work, site.machine, rows, n, ValueOf(point, "threads"), 3, operations);
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

Operand BuildLayerNorm(Group& group, const OpContext& op, const Operand& x) {
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
                     BroadcastAt(As(kF32, op.in[1]), i, x.dims);
            return op.Has(2) ? y + BroadcastAt(As(kF32, op.in[2]), i, x.dims) : y;
          }};
}

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  Operand x = As(kF32, op.in[0]);
  if (ValueOf(point, "held") != 0) {
    x = Read(te::Compute(group.Mark(op.name + "_held", BlockRole::kMove), x.dims,
                         [&x](const Indices& i) { return x.at(i); }));
  }
  const bool holds = ValueOf(point, "held") != 0;
  return As(op.out.dtype, node.op == OpKind::kSoftmax ? SoftmaxOfRows(group, op.name, x, holds)
                                                      : BuildLayerNorm(group, op, x));
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine&, const Point& point) {
  ScheduleRows(s, BlocksOf(s, parts, BlockRole::kAcross), OnlyBlock(s, parts, BlockRole::kOutput),
               BlocksOf(s, parts, BlockRole::kMove),
               {ValueOf(point, "vector"), ValueOf(point, "rows")});
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
  constexpr double kMostWarps = 64, kMostBlocks = 32;  // that a multiprocessor has at once
  const auto lanes = static_cast<double>(machine.VectorUnit(kF32).n);
  const double warps = static_cast<double>(threads) / kWarp;
  const double together = std::clamp(static_cast<double>(CeilDiv(rows, machine.workers)), 1.0,
                                     std::clamp(kMostWarps / warps, 1.0, kMostBlocks));
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

// The elements of a row over the threads of a block, so many neighbours each.
static void ShareRow(Schedule& s, const std::string& along, int64_t vector, bool vectorize) {
  if (vector == 1) {
    s.Bind(s.SplitBy(along, {"-1", "$threads"})[1], ThreadAxis::kThreadIdxX);
    return;
  }
  const Names parts = s.SplitBy(along, {"-1", "$threads", std::to_string(vector)});
  s.Bind(parts[1], ThreadAxis::kThreadIdxX);
  s.Unroll(parts[0]);
  if (vectorize)
    s.Vectorize(parts[2]);
  else
    s.Unroll(parts[2]);
}

void ScheduleRows(Schedule& s, const Names& reductions, const std::string& store, const Names& held,
                  const RowShape& shape) {
  const int64_t vector = shape.vector;
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
  if (shape.rows > 1) {
    const Names parts = s.SplitBy(row, {"-1", "$rows"});
    s.Bind(parts[0], ThreadAxis::kBlockIdxX);
    s.Bind(parts[1], ThreadAxis::kThreadIdxY);
    row = parts[1];
  } else {
    s.Bind(row, ThreadAxis::kBlockIdxX);
  }
  ShareRow(s, along, vector, true);
  const auto is_in = [](const Names& list, const std::string& block) {
    return std::find(list.begin(), list.end(), block) != list.end();
  };
  // From the last to the first: what reads a block is in its place then.
  const Names blocks = s.GetBlocks();
  for (auto it = blocks.rbegin(); it != blocks.rend() && s.ok(); ++it) {
    const bool reduces = is_in(reductions, *it);
    if (!reduces && !is_in(held, *it)) continue;
    s.SetScope(WrittenBuffer(s, *it), Scope::kLocal);  // of a reduction each thread has the result
    s.ComputeAt(*it, row);
    const InnerLoops in = LoopsInside(s, *it, row);
    const Names& own = reduces ? in.reduce : in.spatial;
    if (s.ok() && !own.empty()) ShareRow(s, own.back(), vector, !reduces);
  }
}

Operand SoftmaxOfRows(Group& group, const std::string& name, const Operand& x, bool holds) {
  const te::Tensor most =
      Reduce(group, name + "_max", x, true,
             [&](const Indices& row, const Expr& j) { return x.at(InRow(row, j)); });
  Operand grown{x.dtype, x.dims, [x, most](const Indices& i) {
                  return Call::Make(Intrinsic::kExp, {x.at(i) - most.At(RowOf(i))});
                }};
  if (holds) {
    grown = Read(te::Compute(group.Mark(name + "_grown", BlockRole::kMove), x.dims,
                             [at = grown.at](const Indices& i) { return at(i); }));
  }
  const te::Tensor sum =
      Reduce(group, name + "_sum", x, false,
             [&](const Indices& row, const Expr& j) { return grown.at(InRow(row, j)); });
  return {x.dtype, x.dims, [grown, sum](const Indices& i) {
            const Expr total = sum.At(RowOf(i));
            return grown.at(i) * (MakeConst(total->dtype, 1) / total);
          }};
}

extern const Algorithm kThreadRows;
const Algorithm kThreadRows = {"thread_rows", kOps,  IsFor,      SpaceOf, Wants,
                               Work,          Build, ScheduleIt, 3};

}  // namespace tenon::ops

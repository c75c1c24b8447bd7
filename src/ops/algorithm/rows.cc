// Operators along the last axis of row-major tensors: softmax and layer norm. Rows are shared out;
// every step of a row runs under its row, so that the row stays in the nearest cache from one step
// to the next. Rows of halves are computed in f32 and rounded once; what is kept of them is f32.
#include <algorithm>
#include <cmath>

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

// Floats of 8 bits are far to convert from: they are once, by the definition. So are open rows of
// halves in a softmax: what is cut off of them is read lane by lane, in code for each rest of rows.
bool IsRowOf(const graph::TensorType& x, OpKind op) {
  if (x.dtype == kF32) return true;
  if (graph::AccumulatorOf(x.dtype) != kF32 || x.dtype.bits < 16) return false;
  return op == OpKind::kLayerNorm || graph::StaticCount(x.dims).has_value();
}

bool IsFor(const Site& site) {
  const graph::TensorType& x = site.input(0);
  if (x.dims.empty() || !IsRowOf(x, site.node().op) || site.machine.warp != 0) return false;
  for (graph::ValueId v : site.region.outputs) {
    const graph::TensorType& y = site.region.type(v);
    if (y.rank() != x.rank() || !graph::ProveEqual(y.dims.back(), x.dims.back())) return false;
  }
  const int64_t lanes = site.machine.Lanes(kF32);
  return site.node().attrs.GetInt("axis") == x.rank() - 1 &&
         ((x.rank() > 1 && lanes > 1) ||
          (AsInt(x.dims.back()) != 1 && site.Sizes(x).back() >= lanes));
}

int64_t VectorsIn(int64_t n, int64_t lanes) { return CeilDiv(std::max<int64_t>(n, 1), lanes); }

// Powers of two up to `most`, and to `cap`.
std::vector<int64_t> PowersUpTo(int64_t most, int64_t cap) {
  std::vector<int64_t> out = {1};
  while (out.back() * 2 <= std::min(most, cap)) out.push_back(out.back() * 2);
  return out;
}

// Whether lanes run across rows: where these may be shorter than a vector, and where they are
// single elements.
std::vector<int64_t> WaysOfLanes(const Site& site) {
  const graph::TensorType& x = site.input(0);
  if (AsInt(x.dims.back()) == 1) return {1};
  const bool may_be_short = x.rank() > 1 && site.LeastSizes(x).back() < site.machine.Lanes(kF32);
  return may_be_short ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0};
}

bool IsAcross(const Point& point) { return ValueOf(point, "lanes_across_rows") == 1; }

// Rows that are computed together wait for each other's chains (across the lanes of a maximum, of a
// sum, the quotient) no longer; vectors of partial results hide the latency of one addition, and
// several vectors in a turn that of the exponential. Short rows want fewer of the latter two: what
// is beyond their end is computed, too.
Space SpaceOf(const Site& site) {
  constexpr int64_t kMostRows = 4, kMostVectors = 4;
  const std::vector<int64_t> x = site.Sizes(site.input(0));
  const int64_t vectors = VectorsIn(x.back(), site.machine.Lanes(kF32));
  Space space;
  const Expr rows =
      space.Add({"rows", PowersUpTo(x.size() > 1 ? x[x.size() - 2] : 1, kMostRows), false, true});
  const Expr partial =
      space.Add({"partial_vectors", PowersUpTo(vectors, kMostVectors), false, true});
  const Expr along = space.Add({"vectors", PowersUpTo(vectors, kMostVectors), false, true});
  const Expr across = space.Add({"lanes_across_rows", WaysOfLanes(site), false, true});
  const Expr one = IndexConst(1);
  space.Require(
      Or(Eq(across, IndexConst(0)), And(Eq(rows, one), And(Eq(partial, one), Eq(along, one)))));
  space.Require(Le(rows * partial, IndexConst(site.machine.registers / 2)));
  return space;
}

std::vector<Want> Wants(const Site& site, const Point&) {
  std::vector<Want> wants = {{site.node().inputs[0], {}}};
  WantPlainResults(site, &wants);
  return wants;
}

// Each element is read three times and written once, lane by lane, and its exponential computed
// twice, which is less than to keep it.
WorkDescription WorkAcross(const Site& site) {
  const std::vector<int64_t> x = site.Sizes(site.input(0));
  const int64_t lanes = site.machine.Lanes(kF32);
  double elements = static_cast<double>(CeilDiv(x[x.size() - 2], lanes) * lanes);
  for (size_t i = 0; i < x.size(); ++i)
    elements *= i + 2 == x.size() ? 1 : static_cast<double>(x[i]);
  WorkDescription work;
  work.vector_ops =
      elements * (site.node().op == OpKind::kSoftmax ? 28 : 8) + EpilogueElements(site);
  work.scalar_ops = 4 * elements;
  const double bytes = BorderBytes(site.region);
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = bytes;
  work.team = site.machine.workers;
  work.tiles = std::max<int64_t>(
      1, static_cast<int64_t>(elements) / (lanes * std::max<int64_t>(1, x.back())));
  return work;
}

WorkDescription Work(const Site& site, const Point& point) {
  if (IsAcross(point)) return WorkAcross(site);
  const Machine& machine = site.machine;
  const std::vector<int64_t> x = site.Sizes(site.input(0));
  const auto together = static_cast<double>(ValueOf(point, "rows"));
  const int64_t partial = ValueOf(point, "partial_vectors"), vectors = ValueOf(point, "vectors");
  const int64_t lanes = machine.Lanes(kF32);
  double rows = 1;
  for (size_t i = 0; i + 1 < x.size(); ++i) rows *= static_cast<double>(x[i]);
  const ComputeUnit& unit = machine.VectorUnit(kF32);
  const double per_cycle = unit.per_second / machine.cycles_per_second;
  const auto turns = [&](int64_t width) {
    return static_cast<double>(CeilDiv(std::max<int64_t>(x.back(), 1), width * lanes));
  };
  // Two reductions, a maximum and a sum or two sums; the exponential, or a square, and the result.
  const bool softmax = site.node().op == OpKind::kSoftmax;
  const double reductions = 2 * turns(partial) *
                            std::max(static_cast<double>(partial) / per_cycle + machine.loop_cycles,
                                     machine.fma_latency_cycles / together);
  const double along =
      turns(vectors) * (static_cast<double>(vectors) * (softmax ? 13 : 6) / per_cycle +
                        (softmax ? 2 : 1) * machine.loop_cycles);
  // What shows of a row's chains behind the work of others, and the ends of its loops: partial
  // results are set and combined, turns drain, registers run short.
  const double ends = 16 / together + together + 4 * static_cast<double>(partial) / per_cycle +
                      static_cast<double>(vectors);
  WorkDescription work;
  work.vector_ops = rows * (reductions + along + ends) * per_cycle * static_cast<double>(lanes) +
                    EpilogueElements(site);
  const double bytes = BorderBytes(site.region);
  work.bytes[machine.LevelFor(static_cast<int64_t>(bytes))] = bytes;
  // Rows are read again, and what is kept of them is written, read and overwritten.
  const double row_bytes = static_cast<double>(x.back() * kF32.Bytes());
  work.bytes[machine.LevelFor(static_cast<int64_t>(together * row_bytes))] += 4 * rows * row_bytes;
  work.team = machine.workers;
  work.tiles = static_cast<int64_t>(rows / together + 0.999);
  return work;
}

Operand BuildSoftmax(Group& group, const OpContext& op, const std::vector<Expr>& rows,
                     const Expr& n, int64_t width) {
  const Operand& x = op.in[0];
  Operand m = ReduceRow(group, op.name + "_max", rows, n, width, BinaryOp::kMax,
                        [&](const Indices& row, const Expr& j) { return x.at(InRow(row, j)); });
  Operand e{x.dtype, x.dims,
            [x, m](const Indices& i) { return WeightOf(x.at(i) - m.at(RowOf(i))); }};
  if (width > 0) e = Read(te::Compute(group.Mark(op.name + "_exp", BlockRole::kRow), x.dims, e.at));
  Operand s = ReduceRow(group, op.name + "_sum", rows, n, width, BinaryOp::kAdd,
                        [&](const Indices& row, const Expr& j) { return e.at(InRow(row, j)); });
  return {x.dtype, x.dims, [e, s](const Indices& i) {
            Expr sum = s.at(RowOf(i));
            return e.at(i) * (MakeConst(sum->dtype, 1) / sum);
          }};
}

// The mean of equal numbers is that number where it is divided by their count, which it is for the
// sake of halves: what a product with the inverse leaves, 1e-5 of a result, f32 cannot tell from
// its own errors.
Operand BuildLayerNorm(Group& group, const OpContext& op, const std::vector<Expr>& rows,
                       const Expr& n, int64_t width, DType type) {
  const Operand& x = op.in[0];
  Expr scale = AsInt(n) ? MakeConst(x.dtype, 1.0 / static_cast<double>(*AsInt(n)))
                        : MakeConst(x.dtype, 1) / CastExpr::Make(x.dtype, n);
  const bool divides = type != kF32;
  const auto mean_of = [=](const Expr& sum) {
    return divides ? sum / CastExpr::Make(sum->dtype, n) : sum * scale;
  };
  Operand sum = ReduceRow(group, op.name + "_sum", rows, n, width, BinaryOp::kAdd,
                          [&](const Indices& row, const Expr& j) { return x.at(InRow(row, j)); });
  Operand squares = ReduceRow(group, op.name + "_var", rows, n, width, BinaryOp::kAdd,
                              [&](const Indices& row, const Expr& j) {
                                Expr d = x.at(InRow(row, j)) - mean_of(sum.at(row));
                                return d * d;
                              });
  double epsilon = op.node->attrs.GetFloat("epsilon");
  Operand factor = Read(te::Compute(
      group.Mark(op.name + "_factor", BlockRole::kAcross), rows, [&](const Indices& row) {
        Expr var = mean_of(squares.at(row));
        return MakeConst(var->dtype, 1) /
               Call::Make(Intrinsic::kSqrt, {var + MakeConst(var->dtype, epsilon)});
      }));
  return {x.dtype, x.dims, [op, x, sum, factor, mean_of](const Indices& i) {
            Expr y = (x.at(i) - mean_of(sum.at(RowOf(i)))) * factor.at(RowOf(i)) *
                     BroadcastAt(op.in[1], i, x.dims);
            return op.Has(2) ? y + BroadcastAt(op.in[2], i, x.dims) : y;
          }};
}

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const DType type = op.in[0].dtype;
  for (Operand& x : op.in) {
    if (x.at) x = Memo(As(kF32, std::move(x)));
  }
  std::vector<Expr> rows(op.in[0].dims.begin(), op.in[0].dims.end() - 1);
  const Expr& n = op.in[0].dims.back();
  const int64_t width =
      IsAcross(point) ? 0 : ValueOf(point, "partial_vectors") * group.site().machine.Lanes(kF32);
  return As(type, node.op == OpKind::kSoftmax ? BuildSoftmax(group, op, rows, n, width)
                                              : BuildLayerNorm(group, op, rows, n, width, type));
}

// Vectorizes the loop of a block that runs along the row; a tail is masked.
void VectorizeAlong(Schedule& s, const std::string& loop, int64_t width) {
  if (s.GetExtent(loop) == width) {
    s.Vectorize(loop);
  } else {
    s.Vectorize(s.Tile(loop, width)[1]);
  }
}

struct RowLoops {
  std::string at;        // of rows that are computed together; "" where there is one row
  bool several = false;  // whether more than one is
  bool open = false;     // whether there may be any number of them: each has its own code
};

// Of a block's loops inside, that over the rows that are computed together: what each of them has
// stays in registers, so they are written out.
void UnrollRows(Schedule& s, const RowLoops& rows, const Names& spatial, size_t behind) {
  if (rows.several && spatial.size() > behind) s.Unroll(spatial[spatial.size() - 1 - behind]);
}

void ScheduleLanes(Schedule& s, const std::string& block, const RowLoops& rows) {
  const InnerLoops in = LoopsInside(s, block, rows.at);
  if (!in.reduce.empty()) {  // more than one vector in a row
    const Names own =
        rows.several ? Names(in.spatial.end() - 2, in.spatial.end()) : Names{in.spatial.back()};
    s.Reorder(Concat({{in.reduce[0]}, own}));
    const Names init = s.GetLoops(s.DecomposeReduction(block, in.reduce[0]));
    UnrollRows(s, rows, init, 1);
    s.Vectorize(init.back());
  }
  UnrollRows(s, rows, in.spatial, 1);
  s.Vectorize(in.spatial.back());
}

void ScheduleAcross(Schedule& s, const std::string& block, const RowLoops& rows) {
  const InnerLoops in = LoopsInside(s, block, rows.at);
  if (!in.reduce.empty()) {
    s.DecomposeReduction(block, in.reduce[0]);
    s.Vectorize(in.reduce[0]);
  }
  UnrollRows(s, rows, in.spatial, 0);
}

void ScheduleStep(Schedule& s, const std::string& block, BlockRole role, const RowLoops& rows,
                  int64_t width) {
  s.SetScope(WrittenBuffer(s, block), role == BlockRole::kRow ? Scope::kLocal : Scope::kRegister);
  if (!rows.at.empty()) s.ComputeAt(block, rows.at);
  if (!s.ok()) return;
  if (role == BlockRole::kLanes) {
    ScheduleLanes(s, block, rows);
  } else if (role == BlockRole::kAcross) {
    ScheduleAcross(s, block, rows);
  } else {
    const Names spatial = LoopsInside(s, block, rows.at).spatial;
    VectorizeAlong(s, spatial.back(), width);
    // What goes along one row after the other need not be written out for the sake of registers.
    if (!rows.open) UnrollRows(s, rows, spatial, 1);
  }
}

// Loops of rows in whole vectors inside all others.
void ScheduleAcrossRows(Schedule& s, const Parts& parts, const Machine& machine) {
  const std::string output = OnlyBlock(s, parts, BlockRole::kOutput);
  Names outer = s.GetLoops(output);
  const std::string along = outer.back();
  outer.pop_back();
  while (outer.size() > 1 && s.GetExtent(outer.back()) == 1) {  // rows are those of the axes around
    const std::string one = outer.back();
    outer.pop_back();
    outer.back() = s.Fuse({outer.back(), one});
  }
  const Names split = s.Split(outer.back(), {-1, machine.Lanes(kF32)});
  outer.back() = split[0];
  s.Reorder({along, split[1]});
  const std::string at = outer.size() == 1 ? outer[0] : s.Fuse(outer);
  const Names steps = BlocksOf(s, parts, BlockRole::kAcross);
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
    s.SetScope(WrittenBuffer(s, *it), Scope::kRegister);
    s.ComputeAt(*it, at);
    const InnerLoops in = LoopsInside(s, *it, at);
    if (!s.ok()) return;
    if (in.spatial.empty()) continue;  // there is one row
    if (!in.reduce.empty()) {
      s.Reorder({in.reduce[0], in.spatial.back()});
      s.Vectorize(s.GetLoops(s.DecomposeReduction(*it, in.reduce[0])).back());
    }
    s.Vectorize(in.spatial.back());
  }
  s.Vectorize(split[1]);
  s.Parallel(at);
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  if (IsAcross(point)) return ScheduleAcrossRows(s, parts, machine);
  const int64_t width = ValueOf(point, "vectors") * machine.Lanes(kF32);
  Names axes = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput));
  Names outer(axes.begin(), axes.end() - 1);
  std::string along = axes.back();
  Names steps;
  for (const std::string& b : s.GetBlocks()) {
    const BlockRole role = PartOf(parts, b).role;
    if (role == BlockRole::kLanes || role == BlockRole::kAcross || role == BlockRole::kRow)
      steps.push_back(b);
  }
  RowLoops rows;
  std::string own;  // over rows that are computed together
  if (ValueOf(point, "rows") > 1) {
    rows.open = s.GetExtent(outer.back()) < 0;
    const Names split = s.SplitBy(outer.back(), {"-1", "$rows"});
    outer.back() = split[0];
    own = split[1];
    rows.several = true;
  }
  if (!outer.empty()) rows.at = outer.size() == 1 ? outer[0] : s.Fuse(outer);
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
    ScheduleStep(s, *it, PartOf(parts, *it).role, rows, width);
    if (!s.ok()) return;
  }
  VectorizeAlong(s, along, width);
  if (!own.empty() && !rows.open) s.Unroll(own);
  if (!rows.at.empty()) s.Parallel(rows.at);
}

constexpr OpKind kOps[] = {OpKind::kSoftmax, OpKind::kLayerNorm};

}  // namespace

extern const Algorithm kRows;
const Algorithm kRows = {"rows", kOps, IsFor, SpaceOf, Wants, Work, Build, ScheduleIt, 4};

}  // namespace tenon::ops

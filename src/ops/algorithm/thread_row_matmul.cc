// Products of a few rows and a matrix where threads run together: what takes the time is reading
// the matrix, so each of its elements is read once, in whole vectors, by as many threads as there
// can be. The matrix lies with its k next to each other. A block has a few columns; the threads
// along x of each take its k by turns and meet at the end.
//
//   out[i, j]  →  blocks over columns / ($groups · $columns):
//                   threads y over $groups, threads x:
//                     for steps of k: vectors of $columns columns and of all rows to registers
//                       sums[rows, $columns] += a[rows, vector] · b[$columns, vector]
//                     threads x: their sums are combined
//                   store the sums, with what follows the product
//
// Sums of the rows that these are computed with, such as a norm's, each block makes for itself
// before: its threads x share them, too.
//
// Columns behind the end are the first ones once more, and are not stored. Rows that are computed
// in the kernel each thread computes piece by piece, for all columns that it has.
#include <algorithm>

#include "ops/algorithm/thread_tile.h"
#include "ops/algorithm/warp_tile.h"
#include "ops/group.h"
#include "ops/micro_kernel.h"
#include "ops/operations.h"
#include "ops/scheduling.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);
// More rows are tiles'.
constexpr int64_t kMostRows = 8, kMostSums = 16;

std::optional<ProductShape> FewRows(const Site& site) {
  if (site.machine.warp == 0 || !AreNumbers(site.input(0))) return std::nullopt;
  auto s = ReadProductOfRows(site);
  if (!s || !IsTiled(s->a) || s->a != s->b || s->types.accumulator != kF32) return std::nullopt;
  if (s->Lead() != 1 || s->m < 1 || s->m > kMostRows || s->k < 2) return std::nullopt;
  return s;
}

bool IsFor(const Site& site) { return FewRows(site).has_value(); }

// Neighbours along k that a thread reads at once.
int64_t VectorOf(const Site& site, const ProductShape& p) {
  int64_t vector = std::max<int64_t>(1, site.machine.vector_bits / p.b.StorageBits());
  while (p.k % vector != 0) vector /= 2;
  return vector;
}

Space SpaceOf(const Site& site) {
  constexpr int64_t kLeastThreads = 64, kMostThreads = 256;
  const ProductShape p = *FewRows(site);
  const int64_t most = std::min(kMostThreads, site.machine.target->gpu().max_threads_per_block);
  Space space;
  const Expr threads = space.Add({"threads", {32, 64, 128, 256}, false, true});
  const Expr groups = space.Add({"groups", {1, 2, 4, 8}, false, true});
  const Expr columns = space.Add({"columns", {1, 2, 4, 8}, false, true});
  space.Add({"vector", {VectorOf(site, p)}, false, true});
  space.Require(Le(threads * groups, IndexConst(most)));
  space.Require(Le(IndexConst(std::min(kLeastThreads, most)), threads * groups));
  space.Require(Le(columns * IndexConst(p.m), IndexConst(kMostSums)));
  // Columns that begin anew behind the end are no neighbours: what holds several would hold all.
  space.Require(
      Or(Eq(columns, IndexConst(1)), Eq(IndexConst(p.n) % (groups * columns), IndexConst(0))));
  // Each of a block's elements has a thread.
  space.Require(Or(Eq(columns, IndexConst(1)), Le(groups * columns * IndexConst(p.m), threads)));
  // So that all sums of a block meet at once.
  space.Require(Le(threads * groups * columns * IndexConst(p.m), IndexConst(2048)));
  return space;
}

std::vector<Want> Wants(const Site& site, const Point&) {
  std::vector<Want> wants = {{site.node().inputs[0], {}}, {site.node().inputs[1], {}}};
  if (!ReadProduct(site)->trans_b) wants[1].desc.order = {1, 0};
  WantPlainResults(site, &wants);
  return wants;
}

// What blocks add up for themselves, all of it by each of their groups.
void AddSums(const Site& site, double blocks, double groups, double together,
             WorkDescription* work) {
  constexpr double kMeetCycles = 600;
  const auto lanes = static_cast<double>(site.machine.VectorUnit(kF32).n);
  for (graph::NodeId n = 0; n < site.anchor; ++n) {
    const graph::Node& node = site.region.node(n);
    if (HasElementDefinition(node.op)) continue;
    const double elements = blocks * groups * OperationsOf(site.region, node);
    work->vector_ops += 3 * elements + blocks * kMeetCycles * lanes / together;
    work->bytes[0] +=
        elements * static_cast<double>(site.region.type(node.inputs[0]).dtype.Bytes());
  }
}

// Whether the matrix is there when the rows are: a thread has each of its columns in one piece,
// which it loads in front of the wait for the launch before (order_launches), and all blocks fit on
// the device beside those of that launch (overlap_launches).
bool IsThereBefore(const Machine& machine, const ProductShape& p, int64_t threads, int64_t vector,
                   double in_all) {
  constexpr double kThreadsAtOnce = 1024;
  return machine.target->CanInPart(Ability::kDependentLaunches) && threads * vector >= p.k &&
         in_all <= kThreadsAtOnce * static_cast<double>(machine.workers);
}

// The matrix comes from memory as fast as threads ask for it: on an H200 a piece takes each of them
// 500 cycles, whether it has one column or four, so that 1,000 threads of a multiprocessor are
// needed to be as fast as a copy. Where it is there before, what is left is that a block's warps
// begin, one after the other on a multiprocessor, and that sums of columns meet.
WorkDescription Work(const Site& site, const Point& point) {
  constexpr double kPieceCycles = 500, kBlockCycles = 1000, kThreadsTogether = 2048;
  constexpr double kWarpCycles = 40, kColumnCycles = 100;  // to begin, and to meet
  const ProductShape p = *FewRows(site);
  const Machine& machine = site.machine;
  const int64_t threads = ValueOf(point, "threads"), groups = ValueOf(point, "groups");
  const int64_t columns = ValueOf(point, "columns"), vector = ValueOf(point, "vector");
  const int64_t blocks = CeilDiv(p.n, groups * columns);
  const auto pieces = static_cast<double>(CeilDiv(p.k, threads * vector) * columns);
  const auto in_block = static_cast<double>(threads * groups);
  const auto lanes = static_cast<double>(machine.VectorUnit(kF32).n);
  const double together =
      std::clamp(static_cast<double>(blocks) / static_cast<double>(machine.workers), 1.0,
                 std::max(1.0, kThreadsTogether / in_block));
  // Each element of the matrix is widened, and so are the rows' for each piece of all columns.
  const double narrow = p.b == kF32 ? 0 : 1, rows = static_cast<double>(p.m);
  const double each = rows + narrow + (narrow + 0.25) * rows / static_cast<double>(columns);
  WorkDescription work;
  work.team = machine.workers;
  work.tiles = blocks;
  const auto all = static_cast<double>(blocks);
  const double waits = IsThereBefore(machine, p, threads, vector, all * in_block)
                           ? in_block / static_cast<double>(machine.warp) * kWarpCycles +
                                 pieces * kColumnCycles / together
                           : (pieces * kPieceCycles + kBlockCycles) / together;
  work.vector_ops = all * (in_block * pieces * static_cast<double>(vector) * each + waits * lanes) +
                    EpilogueElements(site);
  // What blocks read of the rows comes from the cache beside them.
  work.bytes[0] = all * static_cast<double>(groups * (p.m + columns) * p.k * p.b.Bytes());
  work.bytes[1] = all * static_cast<double>(p.m * p.k * p.a.Bytes());
  work.bytes[2] = BorderBytes(site.region);
  AddSums(site, all, static_cast<double>(groups), together, &work);
  return work;
}

// Whether a thread widens its part of the matrix as soon as it is there, while the rows are still
// on their way. It has all of it at once then; where sums come between, wide numbers would fill the
// registers all the time.
bool WidensFirst(const Site& site, const ProductShape& p, const Point& point) {
  for (graph::NodeId n = 0; n < site.anchor; ++n) {
    if (!HasElementDefinition(site.region.node(n).op)) return false;
  }
  return ValueOf(point, "threads") * ValueOf(point, "vector") >= p.k;
}

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const ProductShape p = *FewRows(group.site());
  const int64_t tile = ValueOf(point, "groups") * ValueOf(point, "columns");
  const Expr whole = IndexConst(CeilDiv(p.n, tile) * tile);
  const std::vector<Expr> dims = op.out.dims;
  // Both as a thread has them: along k, which is how they lie.
  const auto held = [&](const char* name, const std::vector<Expr>& shape,
                        const std::function<Expr(const Indices&)>& at) {
    return Read(te::Compute(group.Mark(op.name + name, BlockRole::kMove), shape, at));
  };
  const auto wide = [](const Expr& e) { return e->dtype == kF32 ? e : CastExpr::Make(kF32, e); };
  const bool first = WidensFirst(group.site(), p, point);
  const Operand rows = held("_rows", op.in[0].dims, op.in[0].at);
  const Operand matrix = held("_matrix", {whole, IndexConst(p.k)}, [&](const Indices& i) {
    const Expr column = Around(i[0], p.n, tile, 1);
    const Expr e = op.in[1].at(p.trans_b ? Indices{column, i[1]} : Indices{i[1], column});
    return first ? wide(e) : e;
  });
  const te::Tensor sums = te::Compute(
      group.Mark(op.name, BlockRole::kAcross), {IndexConst(p.m), whole}, [&](const Indices& i) {
        te::Axis k = te::ReduceAxis("k", IndexConst(p.k));
        Indices row = Delinearize(i[0], {dims.begin(), dims.end() - 1});
        row.push_back(k.var);
        return te::Sum(wide(rows.at(row)) * wide(matrix.at({i[1], k.var})), {k});
      });
  return As(op.out.dtype,
            {kF32, dims, [sums, dims](const Indices& i) {
               const Indices row(i.begin(), i.end() - 1);
               return sums.At({Linearize(row, {dims.begin(), dims.end() - 1}), i.back()});
             }});
}

// Loops over columns of what has them innermost: blocks, the groups of one, and columns of a group.
Names SplitColumns(Schedule& s, const std::string& columns) {
  const Names j = s.SplitBy(columns, {"-1", "$groups", "$columns"});
  s.Bind(j[0], ThreadAxis::kBlockIdxX);
  return j;
}

// The three below return the loop over groups. Where these have one column each, what follows goes
// on with what a thread has.
std::string PlaceByColumn(Schedule& s, const std::string& sums, const std::string& out) {
  const Names axes = s.GetLoops(out);
  if (!s.ok()) return "";
  const Names rows(axes.begin(), axes.end() - 1);
  const Names j = SplitColumns(s, axes.back());
  s.Bind(j[1], ThreadAxis::kThreadIdxY);
  s.Reorder(Concat({{j[0], j[1]}, rows, {j[2]}}));
  for (const std::string& row : rows) s.Unroll(row);
  s.Unroll(j[2]);
  s.SetScope(WrittenBuffer(s, sums), Scope::kLocal);
  s.ComputeAt(sums, j[1]);
  return j[1];
}

std::string PlaceByResult(Schedule& s, const std::string& sums, const std::string& out) {
  const Names axes = s.GetLoops(out);
  if (!s.ok()) return "";
  const Names rows(axes.begin(), axes.end() - 1);
  const Names j = SplitColumns(s, axes.back());
  s.Reorder(Concat({{j[0]}, rows, {j[1], j[2]}}));
  // Threads have elements of their own, and find the sums in the block's memory.
  const Names elements = Concat({rows, {j[1], j[2]}});
  s.Bind(s.Fuse(elements), ThreadAxis::kThreadIdxX);
  s.SetScope(WrittenBuffer(s, sums), Scope::kShared);
  s.ComputeAt(sums, j[0]);
  const InnerLoops in = LoopsInside(s, sums, j[0]);
  if (!s.ok()) return "";
  const Names of_block = s.SplitBy(in.spatial.back(), {"-1", "$columns"});
  if (!s.ok()) return "";
  s.Bind(of_block[0], ThreadAxis::kThreadIdxY);
  const Names own_rows(in.spatial.begin(), in.spatial.end() - 1);
  s.Reorder(Concat({{of_block[0]}, own_rows, {of_block[1]}, in.reduce}));
  return of_block[0];
}

// Several results follow the sums that all of them read, each at its elements.
std::string PlaceBySums(Schedule& s, const Parts& parts, const std::string& sums,
                        const Names& out) {
  const Names axes = s.GetSpatialLoops(sums), reduce = s.GetReduceLoops(sums);
  if (!s.ok()) return "";
  const Names rows(axes.begin(), axes.end() - 1);
  const Names j = SplitColumns(s, axes.back());
  s.Bind(j[1], ThreadAxis::kThreadIdxY);
  s.Reorder(Concat({{j[0], j[1]}, rows, {j[2]}, reduce}));
  Schedule tried = s;
  for (const std::string& block : out) {
    tried.ReverseComputeAt(block, j[0]);
    const InnerLoops in = LoopsInside(tried, block, j[0]);
    if (!tried.ok()) break;
    if (in.spatial.empty()) continue;  // one element
    const std::string all = in.spatial.size() > 1 ? tried.Fuse(in.spatial) : in.spatial[0];
    const Names split = tried.SplitBy(all, {"-1", "$threads"});
    if (!tried.ok()) break;
    tried.Unroll(split[0]);
    tried.Bind(split[1], ThreadAxis::kThreadIdxX);
  }
  if (tried.ok()) {
    s = std::move(tried);
    s.SetScope(WrittenBuffer(s, sums), Scope::kShared);
  } else {  // they find them in memory
    for (const std::string& block : out) ShareAmongThreads(s, parts, block);
  }
  return j[1];
}

// Each of the threads has their results.
void ScheduleSums(Schedule& s, const Names& blocks, const std::string& at) {
  for (auto it = blocks.rbegin(); it != blocks.rend() && s.ok(); ++it) {
    s.SetScope(WrittenBuffer(s, *it), Scope::kLocal);
    s.ComputeAt(*it, at);
    const InnerLoops in = LoopsInside(s, *it, at);
    if (!s.ok()) return;
    for (const std::string& loop : in.spatial) s.Unroll(loop);
    if (in.reduce.empty()) continue;
    const std::string k = in.reduce.size() > 1 ? s.Fuse(in.reduce) : in.reduce[0];
    const Names split = s.SplitBy(k, {"-1", "$threads"});
    s.Bind(split[1], ThreadAxis::kThreadIdxX);
    s.Unroll(split[0]);
  }
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine&, const Point& point) {
  const std::string sums = OnlyBlock(s, parts, BlockRole::kAcross);
  const Names out = BlocksOf(s, parts, BlockRole::kOutput);
  const bool by_column = ValueOf(point, "columns") == 1;
  const std::string group = out.size() != 1 ? PlaceBySums(s, parts, sums, out)
                            : by_column     ? PlaceByColumn(s, sums, out[0])
                                            : PlaceByResult(s, sums, out[0]);
  if (!s.ok()) return;
  const InnerLoops in = LoopsInside(s, sums, group);
  if (!s.ok()) return;
  const Names k = s.SplitBy(in.reduce.back(), {"-1", "$threads", "$vector"});
  s.Reorder(Concat({{k[0], k[1]}, in.spatial, {k[2]}}));
  s.Bind(k[1], ThreadAxis::kThreadIdxX);
  for (const std::string& loop : in.spatial) s.Unroll(loop);
  s.Unroll(k[2]);
  for (const std::string& block : BlocksOf(s, parts, BlockRole::kMove)) {
    s.SetScope(WrittenBuffer(s, block), Scope::kLocal);
    s.ComputeAt(block, k[1]);
    const Names loops = LoopsInside(s, block, k[1]).spatial;
    if (!s.ok()) return;
    const bool whole = ValueOf(point, "vector") > 1;
    if (whole) s.Vectorize(loops.back());
    for (size_t l = 0; l + (whole ? 1 : 0) < loops.size(); ++l) s.Unroll(loops[l]);
  }
  ScheduleSums(s, BlocksOf(s, parts, BlockRole::kAnchor), group);
}

constexpr OpKind kOps[] = {OpKind::kMatMul};

}  // namespace

extern const Algorithm kThreadRowMatMul;
const Algorithm kThreadRowMatMul = {"thread_row_matmul", kOps, IsFor, SpaceOf, Wants, Work, Build,
                                    ScheduleIt,          5,    true};

}  // namespace tenon::ops

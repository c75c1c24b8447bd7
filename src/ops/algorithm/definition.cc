// The definition, on any machine and in any layout but for what vectors reduce: each block by
// itself, outer loops parallel, the loop that runs along memory in vectors; where threads run
// together, an element for each thread, or a vector where there are many. Element operators by
// themselves have no other algorithm.
#include <algorithm>

#include "graph/dims.h"
#include "ops/called_function.h"
#include "ops/group.h"
#include "ops/held_rows.h"
#include "ops/operations.h"
#include "ops/scheduling.h"
#include "ops/tiling.h"

namespace tenon::ops {

namespace {

bool IsFor(const Site&) { return true; }

Space SpaceOf(const Site&) { return {}; }

// Rows of what a node reduces are long enough for vectors: along them, or of several columns.
bool ReducesVectors(const Site& site, const graph::Node& node) {
  if (node.op != graph::OpKind::kReduce || site.machine.warp != 0) return false;
  const graph::TensorType& x = site.region.type(node.inputs[0]);
  return x.rank() > 0 && site.Sizes(x).back() >= 2 * site.machine.Lanes(x.dtype);
}

// Whether vectors run along what a node reduces (ScheduleReduction).
bool ReducesRows(const Site& site, const graph::Node& node) {
  if (!ReducesVectors(site, node)) return false;
  const std::vector<int64_t> axes = node.attrs.GetInts("axes");
  const int64_t last = site.region.type(node.inputs[0]).rank() - 1;
  return std::find(axes.begin(), axes.end(), last) != axes.end();
}

// Functions of users know nothing of layouts. Vectors along a row want it in one piece: of channel
// blocks each would gather its elements one by one.
std::vector<Want> Wants(const Site& site, const Point&) {
  std::vector<Want> wants;
  if (site.anchor == graph::kNoNode) return wants;
  const graph::Node& node = site.region.node(site.anchor);
  if (ReducesRows(site, node)) {
    const std::vector<Expr>& dims = site.region.type(node.inputs[0]).dims;
    for (graph::ValueId v : site.region.inputs) {
      const graph::TensorType& type = site.region.type(v);
      if (type.layout) continue;  // somebody gave it that
      if (std::equal(type.dims.begin(), type.dims.end(), dims.begin(), dims.end(),
                     graph::ProveEqual))
        wants.push_back({v, {}});
    }
  }
  if (node.op != graph::OpKind::kCall) return wants;
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (graph::ValueId v : *values) wants.push_back({v, {}});
  }
  return wants;
}

// Along its axis each step waits for the one before it, and where threads run together each has one
// line alone.
void AddSteps(const Site& site, WorkDescription* work) {
  constexpr double kStepCycles = 30;     // of a thread
  constexpr int64_t kTurnsOfWarps = 16;  // that a worker has while one of them waits
  const std::vector<int64_t> sizes = site.Sizes(site.result());
  const size_t axis = AxisOf(site.node());
  const int64_t steps = std::max<int64_t>(sizes[axis], 1), lines = LinesAlong(sizes, axis);
  if (site.machine.warp == 0) {
    work->tiles = std::min(lines, kEnoughParts);
    return;
  }
  const int64_t at_once = site.machine.warp * kTurnsOfWarps;
  work->tiles = (lines + at_once - 1) / at_once;
  work->scalar_ops = static_cast<double>(work->tiles * steps) * kStepCycles *
                     site.machine.VectorUnit(work->type).per_second /
                     site.machine.cycles_per_second;
}

// Whether it is all pairs, by many threads.
bool ComparesPairs(const Site& site) {
  return site.anchor != graph::kNoNode && site.machine.warp > 0 &&
         (site.node().op == graph::OpKind::kTopK || site.node().op == graph::OpKind::kScatter);
}

void AddPairs(const Site& site, WorkDescription* work) {
  constexpr double kRanked = 24, kUpdated = 16;  // operations of a pair
  const bool ranks = site.node().op == graph::OpKind::kTopK;
  work->vector_ops += (ranks ? kRanked : kUpdated) * OperationsOf(site.region, site.node());
  work->tiles = kEnoughParts * site.machine.workers;
  work->barriers = ranks ? 2 : 1;
}

// What reduces otherwise goes through memory at each step, an element at a time; everything else is
// a vector's work.
WorkDescription Work(const Site& site, const Point&) {
  constexpr double kMemoryStep = 4, kMeetCycles = 600;
  const auto lanes = static_cast<double>(site.machine.VectorUnit(DType::Float(32)).n);
  constexpr double kSoftmaxStep = 28;  // with an exponential that is no vector's
  WorkDescription work;
  work.tiles = kEnoughParts;
  for (size_t i = 0; i < site.region.nodes.size(); ++i) {
    const graph::Node& n = site.region.nodes[i];
    const double operations = OperationsOf(site.region, n);
    if (static_cast<graph::NodeId>(i) == site.anchor && ComparesPairs(site)) {
      AddPairs(site, &work);
    } else if (!HasElementDefinition(n.op) && static_cast<graph::NodeId>(i) < site.anchor) {
      // By the threads of a row, in step (held_rows.h).
      work.vector_ops += 2 * operations + kEnoughParts * kMeetCycles * lanes;
    } else if (HasElementDefinition(n.op) || ReducesVectors(site, n)) {
      work.vector_ops += operations;
    } else if (n.op == graph::OpKind::kSoftmax && site.machine.warp == 0) {
      work.scalar_ops += kSoftmaxStep * operations;
    } else {
      work.scalar_ops += kMemoryStep * operations;
    }
  }
  if (site.anchor != graph::kNoNode && site.node().op == graph::OpKind::kCumSum)
    AddSteps(site, &work);
  const double bytes = BorderBytes(site.region);
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = bytes;
  work.team = site.machine.workers;
  return work;
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point&) {
  if (IsScheduled(*s.func())) return;
  if (machine.warp > 0 && (ReduceBeforeResult(s, machine) || ScheduleHeldRows(s, parts, machine)))
    return;
  ScheduleBlocks(s, parts, machine);
}

}  // namespace

extern const Algorithm kDefinition;
const Algorithm kDefinition = {"definition", {},      IsFor,      SpaceOf, Wants,
                               Work,         nullptr, ScheduleIt, 1,       true};

}  // namespace tenon::ops

// Updates in their order, each at the place that its index says:
//
//   for i in 0..n { y[i] = x[i] }
//   for j in 0..m { if (0 <= at[j] < n) y[at[j]] = y[at[j]] + updates[j] }
//
// m steps in place of n·m. Columns have places of their own and are shared out; where a row of
// updates goes to a row, steps have vectors. Where threads run together updates are sorted
// (sorted_scatter.cc), or the definition looks at all of them for each element.
#include <algorithm>

#include "ops/group.h"
#include "ops/operations.h"
#include "ops/scheduling.h"
#include "ops/steps_schedule.h"
#include "ops/tiling.h"

namespace tenon::ops {

using te::Indices;

namespace {

constexpr graph::OpKind kOps[] = {graph::OpKind::kScatter};

bool IsFor(const Site& site) {
  return site.machine.warp == 0 && !IsZero(site.input(2).dims[AxisOf(site.node())]);
}

Space SpaceOf(const Site&) { return {}; }

std::vector<Want> Wants(const Site&, const Point&) { return {}; }

WorkDescription Work(const Site& site, const Point&) {
  constexpr double kStep = 6;  // scalar operations
  const std::vector<int64_t> updates = site.Sizes(site.input(2));
  double steps = 1;
  for (int64_t size : updates) steps *= static_cast<double>(std::max<int64_t>(size, 1));
  const auto in_order = static_cast<double>(std::max<int64_t>(updates[AxisOf(site.node())], 1));
  WorkDescription work;
  work.scalar_ops = kStep * steps;
  work.vector_ops = EpilogueElements(site);
  const double bytes = BorderBytes(site.region);
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = bytes;
  work.team = site.machine.workers;
  work.tiles = std::min(static_cast<int64_t>(steps / in_order), kEnoughParts);
  work.barriers = 1;
  return work;
}

// Sums and products of narrow floats are rounded once.
DType WorkType(DType type, const std::string& reduction) {
  return reduction == "add" || reduction == "mul" ? graph::AccumulatorOf(type) : type;
}

Operand Build(Group& group, const graph::Node& node, const Point&) {
  const OpContext op = group.Context(node);
  const size_t axis = AxisOf(node);
  const std::string reduction = node.attrs.GetString("reduction");
  const DType wide = WorkType(op.out.dtype, reduction);
  const Operand x = As(wide, op.in[0]), &indices = op.in[1], updates = As(wide, op.in[2]);
  std::vector<Expr> columns = updates.dims;
  columns.erase(columns.begin() + static_cast<long>(axis));
  const te::Axis step = te::ReduceAxis("j", updates.dims[axis]);
  // One place for all of a row of updates, which is a row of memory.
  const bool by_rows = axis + 1 < x.dims.size() && IsOne(indices.dims.back());
  const BlockRole role = by_rows ? BlockRole::kRowUpdates : BlockRole::kUpdates;
  const te::Tensor begun = te::Compute(group.Mark(op.name + "_begun", BlockRole::kAnchor),
                                       op.out.dims, [&](const Indices& i) { return x.at(i); });
  const te::Tensor updated = te::Scatter(
      group.Mark(op.name + "_updated", role), begun, columns, step,
      [&](const Indices& column) -> te::ScatterBody {
        Indices from = column;
        from.insert(from.begin() + static_cast<long>(axis), step.var);
        const Expr at = FromEnd(BroadcastAt(indices, from, updates.dims), x.dims[axis]);
        Indices to = from;
        to[axis] = at;
        const auto next = [&, from](const Expr& before) {
          const Expr update = updates.at(from);
          return reduction == "none" ? update : Binary::Make(CombinerOf(reduction), before, update);
        };
        return {to, And(Ge(at, IndexConst(0)), Lt(at, x.dims[axis])), next};
      });
  return As(op.out.dtype, Read(updated));
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point&) {
  ScheduleInOrder(s, parts, machine);
}

}  // namespace

extern const Algorithm kOrderedScatter;
const Algorithm kOrderedScatter = {"ordered_scatter", kOps, IsFor, SpaceOf, Wants, Work, Build,
                                   ScheduleIt};

}  // namespace tenon::ops

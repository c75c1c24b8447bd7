// Sums, or products, along an axis where threads run together: those of the last 1, 2, 4, …
// elements (Hillis and Steele 1986), n log n operations in place of n, but all of a step at once.
//
//   t1_sums2[i] = in0[i] + in0[i - 1]           where there is an i - 1
//   t1_sums4[i] = t1_sums2[i] + t1_sums2[i - 2]  …
//
// Each step is a launch. Of many short rows each is a thread's by the definition, which is then
// cheaper.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "graph/dims.h"
#include "ops/group.h"
#include "ops/operations.h"
#include "ops/scheduling.h"
#include "ops/tiling.h"

namespace tenon::ops {

using te::Indices;

namespace {

constexpr graph::OpKind kOps[] = {graph::OpKind::kCumSum};

bool IsFor(const Site& site) { return site.machine.warp > 0; }

Space SpaceOf(const Site&) { return {}; }

std::vector<Want> Wants(const Site&, const Point&) { return {}; }

// The powers of two below `size`, rising.
std::vector<int64_t> Doublings(int64_t size) {
  std::vector<int64_t> out;
  for (int64_t step = 1; step < size && step <= std::numeric_limits<int32_t>::max(); step *= 2)
    out.push_back(step);
  return out;
}

WorkDescription Work(const Site& site, const Point&) {
  const int64_t size = site.Sizes(site.result())[AxisOf(site.node())];
  const auto steps = static_cast<double>(Doublings(std::max<int64_t>(size, 2)).size());
  WorkDescription work;
  const double elements = OperationsOf(site.region, site.node());
  work.vector_ops = 4 * steps * elements;
  const double bytes = 1.5 * BorderBytes(site.region);  // a step reads two elements for each
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = steps * bytes;
  work.team = site.machine.workers;
  work.tiles = kEnoughParts * site.machine.workers;
  work.barriers = static_cast<int64_t>(steps);
  return work;
}

Operand Build(Group& group, const graph::Node& node, const Point&) {
  const OpContext op = group.Context(node);
  const size_t axis = AxisOf(node);
  const bool reverse = node.attrs.Get<bool>("reverse", false),
             product = node.attrs.GetString("kind") == "prod";
  const DType wide = graph::AccumulatorOf(op.out.dtype);
  Operand sums = As(wide, op.in[0]);
  const Expr size = sums.dims[axis];
  // The element `step` before this one in the order of adding, or what changes nothing where there
  // is none.
  const auto before = [&](const Operand& x, const Indices& out, int64_t step) {
    Indices in = out;
    const Expr at = reverse ? out[axis] + step : out[axis] - step;
    in[axis] = reverse ? Min(at, size - 1) : Max(at, IndexConst(0));
    const Expr there = reverse ? Lt(at, size) : Ge(at, IndexConst(0));
    return Select::Make(there, x.at(in), MakeConst(x.dtype, product ? 1 : 0));
  };
  for (int64_t step : Doublings(graph::DimRange(size).max)) {
    const Operand last = sums;
    sums = Read(te::Compute(fmt::format("{}_sums{}", op.name, 2 * step), op.out.dims,
                            [&](const Indices& out) {
                              const Expr here = last.at(out), more = before(last, out, step);
                              return product ? here * more : here + more;
                            }));
  }
  if (node.attrs.Get<bool>("exclusive", false)) {
    const Operand all = sums;
    sums = Read(te::Compute(op.name + "_before", op.out.dims,
                            [&](const Indices& out) { return before(all, out, 1); }));
  }
  return As(op.out.dtype, sums);
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point&) {
  for (const std::string& block : s.GetBlocks()) {
    if (!ShareVectors(s, parts, machine, block)) ShareAmongThreads(s, parts, block);
  }
}

}  // namespace

extern const Algorithm kDoublingScan;
const Algorithm kDoublingScan = {"doubling_scan", kOps, IsFor, SpaceOf,
                                 Wants,           Work, Build, ScheduleIt};

}  // namespace tenon::ops

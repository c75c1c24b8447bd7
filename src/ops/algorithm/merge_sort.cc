// The first elements of a row by merging, where threads run together (merge_sort.h): n log n
// comparisons in place of n^2, and of few among many about as many as there are elements.
#include <algorithm>

#include "graph/dims.h"
#include "ops/group.h"
#include "ops/merge_sort.h"
#include "ops/ranked.h"
#include "ops/scheduling.h"
#include "ops/sort_keys.h"
#include "ops/tiling.h"

namespace tenon::ops {

using te::Indices;

namespace {

constexpr graph::OpKind kOps[] = {graph::OpKind::kTopK};

bool IsFor(const Site& site) {
  return site.machine.warp > 0 && IsMerged(site.input(0).dims[AxisOf(site.node())]);
}

Space SpaceOf(const Site&) { return {}; }

std::vector<Want> Wants(const Site&, const Point&) { return {}; }

WorkDescription Work(const Site& site, const Point&) {
  const std::vector<int64_t> sizes = site.Sizes(site.input(0));
  const size_t axis = AxisOf(site.node());
  const int64_t rows = LinesAlong(sizes, axis);
  WorkDescription work;
  work.team = site.machine.workers;
  work.tiles = kEnoughParts * site.machine.workers;
  work.vector_ops = EpilogueElements(site);
  const double bytes = BorderBytes(site.region);
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = bytes;
  AddMerging(&work, site.machine, rows, std::max<int64_t>(sizes[axis], 1),
             std::max<int64_t>(site.Sizes(site.result())[axis], 1),
             SortKeyType(site.input(0).dtype));
  return work;
}

Operand Build(Group& group, const graph::Node& node, const Point&) {
  const OpContext op = group.Context(node);
  const size_t axis = AxisOf(node);
  const Operand x = op.in[0];
  const bool largest = node.attrs.Get<bool>("largest", true);
  std::vector<Expr> rows = x.dims;
  rows.erase(rows.begin() + static_cast<long>(axis));
  const auto in_row = [axis](Indices row, const Expr& j) {
    row.insert(row.begin() + static_cast<long>(axis), j);
    return row;
  };
  const SortedRows sorted =
      SortByMerging(group, {op.name, rows, x.dims[axis], op.out.dims[axis], SortKeyType(x.dtype),
                            [&](const Indices& row, const Expr& j) {
                              return SortKeyOf(x.at(in_row(row, j)), largest);
                            }});
  return ElementsByRank(
      group, node, [sorted](const Indices& row, const Expr& rank) { return sorted.at(row, rank); });
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point&) {
  const Names done = ScheduleMerging(s, parts, machine);
  for (const std::string& block : BlocksOf(s, parts, BlockRole::kOutput)) {
    if (std::find(done.begin(), done.end(), block) == done.end())
      ShareAmongThreads(s, parts, block);
  }
}

}  // namespace

extern const Algorithm kMergeSort;
const Algorithm kMergeSort = {"merge_sort", kOps, IsFor, SpaceOf, Wants, Work, Build, ScheduleIt};

}  // namespace tenon::ops

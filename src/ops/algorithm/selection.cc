// A few first elements of a row, one after another:
//
//   keys[i]    what stands in the order which is asked for, and i behind it: no two are equal
//   found0     the least of keys
//   found1     the least of those beyond found0, and so on
//
// Each is a reduction of whole vectors. Sorting looks at an element a few times, too, but one at a
// time, and at as many counts as digits have values for each row, however short.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "graph/dims.h"
#include "ops/group.h"
#include "ops/ranked.h"
#include "ops/scheduling.h"
#include "ops/sort_keys.h"
#include "ops/tiling.h"

namespace tenon::ops {

using te::Indices;

namespace {

constexpr graph::OpKind kOps[] = {graph::OpKind::kTopK};
constexpr int64_t kMost = 8;
// The low bits of a key, with the place; together they are no more than what i64 has above 0.
constexpr int64_t kPlaceBits = 31;

int64_t Asked(const Site& site) {
  return AsInt(site.result().dims[AxisOf(site.node())]).value_or(0);
}

bool IsFor(const Site& site) {
  const graph::TensorType& x = site.input(0);
  const int64_t k = Asked(site);
  return site.machine.warp == 0 && k >= 1 && k <= kMost && SortKeyType(x.dtype).bits <= 32 &&
         graph::DimRange(x.dims[AxisOf(site.node())]).max < int64_t{1} << kPlaceBits;
}

Space SpaceOf(const Site&) { return {}; }

std::vector<Want> Wants(const Site&, const Point&) { return {}; }

WorkDescription Work(const Site& site, const Point&) {
  constexpr double kKey = 12, kStep = 8, kRow = 24;  // operations of vectors of 32 bits
  const std::vector<int64_t> sizes = site.Sizes(site.input(0));
  const size_t axis = AxisOf(site.node());
  const auto rows = static_cast<double>(LinesAlong(sizes, axis));
  const double elements = rows * static_cast<double>(std::max<int64_t>(sizes[axis], 1));
  const auto k = static_cast<double>(Asked(site));
  WorkDescription work;
  work.vector_ops = elements * (kKey + k * kStep) + EpilogueElements(site);
  work.scalar_ops = rows * k * kRow;
  const double bytes = BorderBytes(site.region) + 8 * elements;
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = bytes * (1 + k);
  work.team = site.machine.workers;
  work.tiles = kEnoughParts;
  work.barriers = 2 + Asked(site);
  return work;
}

Operand Build(Group& group, const graph::Node& node, const Point&) {
  const OpContext op = group.Context(node);
  const size_t axis = AxisOf(node);
  const DType i64 = DType::Int(64);
  const Operand& x = op.in[0];
  const Expr size = x.dims[axis], places = MakeIntConst(i64, int64_t{1} << kPlaceBits);
  const auto name = [&](const std::string& what) {
    return group.Mark(op.name + "_" + what, BlockRole::kAnchor);
  };
  std::vector<Expr> rows = op.out.dims;
  rows.erase(rows.begin() + static_cast<long>(axis));
  const auto with = [](Indices row, const Expr& last) {
    row.push_back(last);
    return row;
  };
  const bool largest = op.node->attrs.Get<bool>("largest", true);
  const te::Tensor keys = te::Compute(name("keys"), with(rows, size), [&](Indices at) -> te::Body {
    const Expr i = at.back();
    at.pop_back();
    at.insert(at.begin() + static_cast<long>(axis), i);
    return CastExpr::Make(i64, SortKeyOf(x.at(at), largest)) * places + CastExpr::Make(i64, i);
  });
  std::vector<te::Tensor> found;
  const int64_t k = *AsInt(op.out.dims[axis]);
  for (int64_t j = 0; j < k; ++j) {
    found.push_back(
        te::Compute(name(fmt::format("found{}", j)), rows, [&](const Indices& row) -> te::Body {
          const te::Axis i = te::ReduceAxis("i", size);
          Expr key = keys.At(with(row, i.var));
          if (j > 0) {
            const Expr none = MakeIntConst(i64, std::numeric_limits<int64_t>::max());
            key = Select::Make(Gt(key, found.back().At(row)), key, none);
          }
          return te::MinOf(key, {i});
        }));
  }
  return ElementsByRank(group, node, [found, places](const Indices& row, const Expr& rank) {
    Expr key = found.back().At(row);
    for (size_t j = found.size() - 1; j-- > 0;)
      key = Select::Make(Eq(rank, IndexConst(static_cast<int64_t>(j))), found[j].At(row), key);
    return key % places;
  });
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point&) {
  ScheduleBlocks(s, parts, machine);
}

}  // namespace

extern const Algorithm kSelection;
const Algorithm kSelection = {"selection", kOps, IsFor, SpaceOf, Wants, Work, Build, ScheduleIt};

}  // namespace tenon::ops

// A few first elements of a row, one after another:
//
//   keys[i]    what stands in the order which is asked for
//   best0      the least of keys
//   place0     where it first is
//   best1      the least of those that come later in the order: a larger key, or the same behind
//              place0. And so on
//
// Each is a reduction of whole vectors. Sorting looks at an element a few times, too, but one at a
// time, and at as many counts as digits have values for each row, however short.
#include <fmt/format.h>

#include <algorithm>

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

int64_t Asked(const Site& site) {
  return AsInt(site.result().dims[AxisOf(site.node())]).value_or(0);
}

bool IsFor(const Site& site) {
  const int64_t k = Asked(site);
  return site.machine.warp == 0 && k >= 1 && k <= kMost;
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
  work.barriers = 2 + 2 * Asked(site);
  return work;
}

Operand Build(Group& group, const graph::Node& node, const Point&) {
  const OpContext op = group.Context(node);
  const size_t axis = AxisOf(node);
  const DType i64 = DType::Int(64);
  const Operand& x = op.in[0];
  const Expr size = x.dims[axis];
  const auto name = [&](const std::string& what, int64_t rank) {
    return group.Mark(fmt::format("{}_{}{}", op.name, what, rank), BlockRole::kAnchor);
  };
  std::vector<Expr> rows = op.out.dims;
  rows.erase(rows.begin() + static_cast<long>(axis));
  const auto with = [](Indices row, const Expr& last) {
    row.push_back(last);
    return row;
  };
  const bool largest = op.node->attrs.Get<bool>("largest", true);
  const te::Tensor keys = te::Compute(group.Mark(op.name + "_keys", BlockRole::kAnchor),
                                      with(rows, size), [&](Indices at) -> te::Body {
                                        const Expr i = at.back();
                                        at.pop_back();
                                        at.insert(at.begin() + static_cast<long>(axis), i);
                                        return SortKeyOf(x.at(at), largest);
                                      });
  std::vector<te::Tensor> best, place;
  // Whether key i of the row comes later in the order than what has been found.
  const auto is_later = [&](const Indices& row, const Expr& key, const Expr& i) -> Expr {
    if (place.empty()) return BoolConst(true);
    const Expr last = best[place.size() - 1].At(row);
    return Or(Gt(key, last), And(Eq(key, last), Gt(CastExpr::Make(i64, i), place.back().At(row))));
  };
  const int64_t k = *AsInt(op.out.dims[axis]);
  for (int64_t j = 0; j < k; ++j) {
    best.push_back(te::Compute(name("best", j), rows, [&](const Indices& row) -> te::Body {
      const te::Axis i = te::ReduceAxis("i", size);
      const Expr key = keys.At(with(row, i.var));
      return te::MinOf(Select::Make(is_later(row, key, i.var), key, HighestOf(key->dtype)), {i});
    }));
    place.push_back(te::Compute(name("place", j), rows, [&](const Indices& row) -> te::Body {
      const te::Axis i = te::ReduceAxis("i", size);
      const Expr key = keys.At(with(row, i.var));
      const Expr is_it = And(is_later(row, key, i.var), Eq(key, best.back().At(row)));
      return te::MinOf(Select::Make(is_it, CastExpr::Make(i64, i.var), HighestOf(i64)), {i});
    }));
  }
  return ElementsByRank(group, node, [place](const Indices& row, const Expr& rank) {
    Expr at = place.back().At(row);
    for (size_t j = place.size() - 1; j-- > 0;)
      at = Select::Make(Eq(rank, IndexConst(static_cast<int64_t>(j))), place[j].At(row), at);
    return at;
  });
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point&) {
  ScheduleBlocks(s, parts, machine);
}

}  // namespace

extern const Algorithm kSelection;
const Algorithm kSelection = {"selection", kOps, IsFor, SpaceOf, Wants, Work, Build, ScheduleIt, 2};

}  // namespace tenon::ops

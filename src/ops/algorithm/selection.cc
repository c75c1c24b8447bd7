// A few first elements of a row, one after another:
//
//   keys[i]    what stands in the order which is asked for, and i behind it: no two are equal
//   found0     the least of keys
//   found1     the least of those beyond found0, and so on
//
// Each is a reduction of whole vectors. Sorting looks at an element a few times, too, but one at a
// time, and at as many counts as digits have values for each row, however short. Where a key and a
// place do not fit into one number, and for a single element, for which that is not worth it, there
// are two reductions for each: the least key beyond the last one found, or the same further behind,
// and the first place that has it.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

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

// Whether a key has its place behind it.
bool HasPlaces(const Site& site) {
  const graph::TensorType& x = site.input(0);
  return Asked(site) > 1 && SortKeyType(x.dtype).bits <= 32 &&
         graph::DimRange(x.dims[AxisOf(site.node())]).max < int64_t{1} << kPlaceBits;
}

bool IsFor(const Site& site) {
  const int64_t k = Asked(site);
  return site.machine.warp == 0 && k >= 1 && k <= kMost;
}

Space SpaceOf(const Site&) { return {}; }

std::vector<Want> Wants(const Site&, const Point&) { return {}; }

WorkDescription Work(const Site& site, const Point&) {
  constexpr double kKey = 12, kRow = 24;  // operations of vectors of 32 bits
  const double kStep = HasPlaces(site) ? 8 : 20;
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
  work.barriers = 2 + (HasPlaces(site) ? 1 : 2) * Asked(site);
  return work;
}

// The least value of each row among those that are left (null: all are), by one reduction.
te::Tensor Least(const std::string& name, const std::vector<Expr>& rows, const Expr& size,
                 const std::function<Expr(const Indices& row, const Expr& i)>& value,
                 const std::function<Expr(const Indices& row, const Expr& i)>& is_left) {
  return te::Compute(name, rows, [&](const Indices& row) -> te::Body {
    const te::Axis i = te::ReduceAxis("i", size);
    Expr v = value(row, i.var);
    if (const Expr left = is_left(row, i.var)) v = Select::Make(left, v, HighestOf(v->dtype));
    return te::MinOf(v, {i});
  });
}

Operand Build(Group& group, const graph::Node& node, const Point&) {
  const OpContext op = group.Context(node);
  const size_t axis = AxisOf(node);
  const DType i64 = DType::Int(64);
  const Operand& x = op.in[0];
  const Expr size = x.dims[axis], places = MakeIntConst(i64, int64_t{1} << kPlaceBits);
  const bool has_places = HasPlaces(group.site());
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
    const Expr key = SortKeyOf(x.at(at), largest);
    return has_places ? CastExpr::Make(i64, key) * places + CastExpr::Make(i64, i) : key;
  });
  const auto key_at = [&](const Indices& row, const Expr& i) { return keys.At(with(row, i)); };
  std::vector<te::Tensor> found, at;  // of each rank; places where keys have none
  // Whether key i of the row comes later in the order than what has been found; null: nothing was.
  const auto is_left = [&](const Indices& row, const Expr& i) -> Expr {
    const size_t ranks = has_places ? found.size() : at.size();
    if (ranks == 0) return nullptr;
    const Expr key = key_at(row, i), last = found[ranks - 1].At(row);
    if (has_places) return Gt(key, last);
    return Or(Gt(key, last), And(Eq(key, last), Gt(CastExpr::Make(i64, i), at.back().At(row))));
  };
  const int64_t k = *AsInt(op.out.dims[axis]);
  for (int64_t j = 0; j < k; ++j) {
    found.push_back(Least(name(fmt::format("found{}", j)), rows, size, key_at, is_left));
    if (has_places) continue;
    at.push_back(Least(
        name(fmt::format("at{}", j)), rows, size,
        [&](const Indices&, const Expr& i) { return CastExpr::Make(i64, i); },
        [&](const Indices& row, const Expr& i) {
          const Expr is_it = Eq(key_at(row, i), found.back().At(row)), left = is_left(row, i);
          return left ? And(left, is_it) : is_it;
        }));
  }
  return ElementsByRank(group, node, [=](const Indices& row, const Expr& rank) {
    const std::vector<te::Tensor>& by_rank = has_places ? found : at;
    Expr place = by_rank.back().At(row);
    for (size_t j = by_rank.size() - 1; j-- > 0;)
      place =
          Select::Make(Eq(rank, IndexConst(static_cast<int64_t>(j))), by_rank[j].At(row), place);
    return has_places ? place % places : place;
  });
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point&) {
  ScheduleBlocks(s, parts, machine);
}

}  // namespace

extern const Algorithm kSelection;
const Algorithm kSelection = {"selection", kOps, IsFor, SpaceOf, Wants, Work, Build, ScheduleIt};

}  // namespace tenon::ops

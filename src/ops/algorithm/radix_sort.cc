// The first elements of a row by sorting all of it, digit by digit, the lowest first (LSD radix
// sort; Knuth, The Art of Computer Programming 3, 5.2.5):
//
//   keys[j]            numbers without sign that stand in the order which is asked for
//   counts[d, v]       how many keys have v as their digit d
//   starts[d, v]       how many have a smaller one
//   at[j]              starts[0, digit 0 of keys[j]], which is one more then
//   order1[at[j]] = j  and so on, digit by digit, in the order that there is
//
// Two steps an element and digit in place of one for each other element. Rows have places of their
// own and are shared out. Where threads run together the definition compares all pairs at once.
#include <fmt/format.h>

#include <limits>

#include "graph/dims.h"
#include "ops/group.h"
#include "ops/operations.h"
#include "ops/ranked.h"
#include "ops/scheduling.h"
#include "ops/sort_keys.h"
#include "ops/steps_schedule.h"
#include "ops/tiling.h"

namespace tenon::ops {

using te::Indices;

namespace {

constexpr graph::OpKind kOps[] = {graph::OpKind::kTopK};
constexpr const char* kDigit = "digit_bits";

int64_t Digits(DType type, int64_t digit_bits) {
  return CeilDiv(SortKeyType(type).bits, digit_bits);
}

bool IsFor(const Site& site) {
  return site.machine.warp == 0 && !IsZero(site.input(0).dims[AxisOf(site.node())]);
}

Space SpaceOf(const Site& site) {
  Space space;
  std::vector<int64_t> bits = {8};
  if (SortKeyType(site.input(0).dtype).bits > 16) bits.push_back(11);
  space.Add({.name = kDigit, .domain = bits, .structural = true});
  return space;
}

std::vector<Want> Wants(const Site&, const Point&) { return {}; }

WorkDescription Work(const Site& site, const Point& point) {
  constexpr double kStep = 6, kValue = 3;  // scalar operations
  constexpr double kCountBytes = 4;
  const std::vector<int64_t> sizes = site.Sizes(site.input(0));
  const size_t axis = AxisOf(site.node());
  const int64_t size = std::max<int64_t>(sizes[axis], 1), rows = LinesAlong(sizes, axis);
  const int64_t bits = graph::ValueOf(point, kDigit);
  const auto digits = static_cast<double>(Digits(site.input(0).dtype, bits));
  const auto values = static_cast<double>(int64_t{1} << bits);
  WorkDescription work;
  work.scalar_ops = static_cast<double>(rows) * digits *
                    (3 * kStep * static_cast<double>(size) + kValue * values);
  work.vector_ops = EpilogueElements(site);
  // Of each row the counts, and for each digit places and an order; all of them are there at once.
  const double bytes = BorderBytes(site.region) + kCountBytes * static_cast<double>(rows) * digits *
                                                      (2 * static_cast<double>(size) + values);
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = bytes;
  work.team = site.machine.workers;
  work.tiles = std::min(rows, kEnoughParts);
  work.barriers = 2 + 2 * static_cast<int64_t>(digits);
  return work;
}

// Sorts the rows of what the anchor reads, their axis being the last one in all that is made.
class Sorter {
 public:
  Sorter(Group& group, const graph::Node& node, int64_t digit_bits)
      : group_(group),
        op_(group.Context(node)),
        bits_(digit_bits),
        digits_(Digits(op_.in[0].dtype, digit_bits)),
        rows_(op_.out.dims),
        step_(te::ReduceAxis("j", op_.in[0].dims[AxisOf(node)])),
        count_(graph::DimRange(step_.extent).max <= std::numeric_limits<int32_t>::max()
                   ? DType::Int(32)
                   : DType::Int(64)) {
    rows_.erase(rows_.begin() + static_cast<long>(AxisOf(node)));
  }

  // The places of the first elements: [rows…, first].
  te::Tensor Run(const Expr& first) {
    MakeKeys();
    te::Tensor starts = Starts(), order;
    for (int64_t d = 0; d < digits_; ++d) {
      const te::Scattered places = Places(starts, order, d);
      const bool is_last = d + 1 == digits_;
      order = Ordered(places.before, order, d, is_last ? first : step_.extent);
      starts = places.after;
    }
    return order;
  }

 private:
  std::string Name(const std::string& what, BlockRole role = BlockRole::kAnchor) {
    return group_.Mark(op_.name + "_" + what, role);
  }
  static Indices With(Indices row, const Expr& last) {
    row.push_back(last);
    return row;
  }

  void MakeKeys() {
    const Operand& x = op_.in[0];
    const size_t axis = AxisOf(*op_.node);
    const bool largest = op_.node->attrs.Get<bool>("largest", true);
    keys_ = te::Compute(Name("keys"), With(rows_, step_.extent), [&](Indices at) -> te::Body {
      const Expr j = at.back();
      at.pop_back();
      at.insert(at.begin() + static_cast<long>(axis), j);
      return SortKeyOf(x.at(at), largest);
    });
  }

  Expr Digit(const Indices& key, const Expr& d) const {
    const DType type = keys_.dtype();
    const Expr shift = CastExpr::Make(type, d * IndexConst(bits_));
    const Expr mask = MakeIntConst(type, (int64_t{1} << bits_) - 1);
    return CastExpr::Make(
        DType::Index(),
        Binary::Make(BinaryOp::kBitAnd, Binary::Make(BinaryOp::kShr, keys_.At(key), shift), mask));
  }

  // How many keys have a smaller digit: [rows…, digits, values].
  te::Tensor Starts() {
    const Indices digits = With(rows_, IndexConst(digits_));
    const Indices all = With(digits, IndexConst(int64_t{1} << bits_));
    const te::Tensor none =
        te::Compute(Name("none"), all, [&](const Indices&) { return MakeIntConst(count_, 0); });
    const te::Tensor counts =
        te::Scatter(Name("counts", BlockRole::kCounts), none, digits, step_,
                    [&](const Indices& at) -> te::ScatterBody {
                      const Indices row(at.begin(), at.end() - 1);
                      return {With(at, Digit(With(row, step_.var), at.back())), nullptr, OneMore()};
                    });
    return te::WhileStepping(
        Name("starts"), all, all.size() - 1, true, [&](const Indices& at) -> te::StepsBody {
          return {MakeIntConst(count_, 0),
                  [&, at](const Expr& before) { return before + counts.At(at); }};
        });
  }

  std::function<Expr(const Expr&)> OneMore() const {
    return [one = MakeIntConst(count_, 1)](const Expr& before) { return before + one; };
  }

  // The element that stands at `step` in the order so far.
  Expr Element(const te::Tensor& order, const Indices& row) const {
    if (!order) return step_.var;
    return CastExpr::Make(DType::Index(), order.At(With(row, step_.var)));
  }

  te::Scattered Places(const te::Tensor& starts, const te::Tensor& order, int64_t d) {
    const Expr digit = IndexConst(d);
    return te::ScatterKeeping(Name(fmt::format("places{}", d), BlockRole::kUpdates), starts, rows_,
                              step_, [&](const Indices& row) -> te::ScatterBody {
                                const Expr value = Digit(With(row, Element(order, row)), digit);
                                return {With(With(row, digit), value), nullptr, OneMore()};
                              });
  }

  // Of the order by one digit more as much as is asked for.
  te::Tensor Ordered(const te::Tensor& places, const te::Tensor& order, int64_t d,
                     const Expr& size) {
    const te::Tensor blank = te::Compute(Name(fmt::format("blank{}", d)), With(rows_, size),
                                         [&](const Indices&) { return MakeIntConst(count_, 0); });
    const bool all = graph::ProveEqual(size, step_.extent);
    return te::Scatter(
        Name(fmt::format("order{}", d), BlockRole::kUpdates), blank, rows_, step_,
        [&](const Indices& row) -> te::ScatterBody {
          const Expr at = CastExpr::Make(DType::Index(), places.At(With(row, step_.var)));
          return {With(row, at), all ? nullptr : Lt(at, size),
                  [&, row](const Expr&) { return CastExpr::Make(count_, Element(order, row)); }};
        });
  }

  Group& group_;
  const OpContext op_;
  const int64_t bits_, digits_;
  std::vector<Expr> rows_;
  const te::Axis step_;
  const DType count_;
  te::Tensor keys_;
};

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  const OpContext op = group.Context(node);
  const size_t axis = AxisOf(node);
  const te::Tensor order =
      Sorter(group, node, graph::ValueOf(point, kDigit)).Run(op.out.dims[axis]);
  return ElementsByRank(group, node, [order](Indices row, const Expr& rank) {
    row.push_back(rank);
    return order.At(row);
  });
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point&) {
  ScheduleInOrder(s, parts, machine);
}

}  // namespace

extern const Algorithm kRadixSort;
const Algorithm kRadixSort = {"radix_sort", kOps,  IsFor,      SpaceOf, Wants,
                              Work,         Build, ScheduleIt, 3};

}  // namespace tenon::ops

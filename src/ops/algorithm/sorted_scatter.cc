// Updates where threads run together: they are brought into the order of the places to which they
// go (merge_sort.h), so that those of one place stand in a row, in their own order.
//
//   places[p], from[p]   the updates by their place; those outside are the last
//   begin[i]             how many go to places before i
//
// Of them the last one counts: from[begin[i + 1] - 1]. Or all are combined:
//
//   end[p]       =  begin[places[p] + 1]
//   runs16[p]    =  updates[from[p]] + … + updates[from[p + 15]], as far as end[p]
//   runs256[p]   =  runs16[p] + runs16[p + 16] + … + runs16[p + 240], likewise, and so on
//   y[i]         =  x[i] + the longest of them at begin[i], if that is not begin[i + 1]
//
// m log m comparisons in place of n · m. What is added up, and in which order, depends on the
// places alone, not on how threads run: two calls give the same bits. One place for a row of
// updates is one number to be sorted.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "graph/dims.h"
#include "ops/group.h"
#include "ops/merge_sort.h"
#include "ops/operations.h"
#include "ops/scheduling.h"
#include "ops/tiling.h"

namespace tenon::ops {

using te::Indices;

namespace {

constexpr graph::OpKind kOps[] = {graph::OpKind::kScatter};
constexpr int64_t kPart = 16;

bool IsFor(const Site& site) {
  const size_t axis = AxisOf(site.node());
  return site.machine.warp > 0 && IsMerged(site.input(2).dims[axis]) &&
         !IsZero(site.input(0).dims[axis]);
}

Space SpaceOf(const Site&) { return {}; }

std::vector<Want> Wants(const Site&, const Point&) { return {}; }

// How often runs are made of runs.
int64_t RunLevels(int64_t steps) {
  int64_t levels = 0;
  for (int64_t width = 1; width < steps; width *= kPart) ++levels;
  return levels;
}

WorkDescription Work(const Site& site, const Point&) {
  constexpr double kStep = 6;
  const size_t axis = AxisOf(site.node());
  const std::vector<int64_t> indices = site.Sizes(site.input(1)), x = site.Sizes(site.result()),
                             updates = site.Sizes(site.input(2));
  const int64_t steps = std::max<int64_t>(updates[axis], 1);
  const bool combines = site.node().attrs.GetString("reduction") != "none";
  WorkDescription work;
  work.team = site.machine.workers;
  work.tiles = kEnoughParts * site.machine.workers;
  double halvings = 1;
  for (int64_t n = 1; n <= steps; n *= 2) ++halvings;
  const int64_t levels = combines ? RunLevels(steps) : 0;
  work.vector_ops =
      EpilogueElements(site) +
      kStep * halvings * static_cast<double>(LinesAlong(indices, axis) * (x[axis] + 1)) +
      kStep * static_cast<double>(LinesAlong(updates, axis) * steps * levels * kPart);
  const double bytes = 2 * BorderBytes(site.region);
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = bytes;
  work.barriers = 1 + levels + (combines ? 1 : 0);
  AddMerging(&work, site.machine, LinesAlong(indices, axis), steps, steps, DType::UInt(32));
  return work;
}

class SortedScatter {
 public:
  SortedScatter(Group& group, const graph::Node& node)
      : group_(group),
        op_(group.Context(node)),
        axis_(AxisOf(node)),
        reduction_(node.attrs.GetString("reduction")),
        x_(op_.in[0]),
        indices_(op_.in[1]),
        updates_(op_.in[2]),
        size_(x_.dims[axis_]),
        steps_(updates_.dims[axis_]) {
    // An index for a row of updates has an axis of one element there.
    columns_ = updates_.dims;
    const size_t lead = updates_.dims.size() - indices_.dims.size();
    for (size_t a = 0; a < columns_.size(); ++a) {
      if (a < lead || IsOne(indices_.dims[a - lead])) columns_[a] = IndexConst(1);
    }
    columns_.erase(columns_.begin() + static_cast<long>(axis_));
    const bool is_short = LongestRow(size_) < std::numeric_limits<int32_t>::max();
    key_ = DType::UInt(is_short ? 32 : 64);
  }

  Operand Run() {
    const SortedRows sorted = SortByMerging(
        group_, {op_.name, columns_, steps_, steps_, key_,
                 [&](const Indices& column, const Expr& j) { return KeyOf(column, j); }});
    begin_ = Begins(sorted);
    return reduction_ == "none" ? Last(sorted) : Combined(sorted);
  }

 private:
  Indices WithAxis(Indices column, const Expr& at) const {
    column.insert(column.begin() + static_cast<long>(axis_), at);
    return column;
  }

  // The place of update j, or behind all places.
  Expr KeyOf(const Indices& column, const Expr& j) const {
    const Expr at = FromEnd(BroadcastAt(indices_, WithAxis(column, j), updates_.dims), size_);
    const Expr inside = And(Ge(at, IndexConst(0)), Lt(at, size_));
    return CastExpr::Make(key_, Select::Make(inside, at, size_));
  }

  // The column whose updates go to the column of `out`; of one that there are none for, some.
  Indices ColumnOf(const Indices& out) const {
    Indices column;
    for (size_t a = 0; a < out.size(); ++a) {
      if (a != axis_) column.push_back(Max(Min(out[a], updates_.dims[a] - 1), IndexConst(0)));
    }
    return column;
  }
  Indices SortedColumnOf(Indices column) const {
    for (size_t a = 0; a < column.size(); ++a) {
      if (IsOne(columns_[a])) column[a] = IndexConst(0);
    }
    return column;
  }

  // By halving, as search_sorted does: [columns…, places and one more].
  te::Tensor Begins(const SortedRows& sorted) {
    const DType i32 = DType::Int(32);
    int64_t bits = 0;
    while (LongestRow(steps_) >> bits != 0) ++bits;
    const te::Axis step = te::ReduceAxis("step", IndexConst(std::max<int64_t>(bits, 1)));
    std::vector<Expr> dims = columns_;
    dims.push_back(size_ + 1);
    return te::AfterSteps(
        group_.Mark(op_.name + "_begin", BlockRole::kAnchor), dims, step,
        [&](const Indices& at) -> te::StepsBody {
          return {MakeIntConst(i32, 0), [&, at](const Expr& here) {
                    const Indices column(at.begin(), at.end() - 1);
                    const Expr bit = Binary::Make(
                        BinaryOp::kShr,
                        MakeIntConst(i32, int64_t{1} << (std::max<int64_t>(bits, 1) - 1)),
                        CastExpr::Make(i32, step.var));
                    const Expr more = CastExpr::Make(DType::Index(), here + bit);
                    const Expr rank = Max(Min(more, steps_) - 1, IndexConst(0));
                    const Expr comes_before =
                        Lt(sorted.key(column, rank), CastExpr::Make(key_, at.back()));
                    // Of no updates none is read.
                    const Expr takes =
                        Select::Make(Le(more, steps_), comes_before, BoolConst(false));
                    return Select::Make(takes, here + bit, here);
                  }};
        });
  }

  // Where what goes to `out` begins and ends; nothing where no column of updates is for it.
  struct Span {
    Expr begin, end;
  };
  Span SpanOf(const Indices& out) const {
    Indices at = SortedColumnOf(ColumnOf(out)), next = at;
    at.push_back(out[axis_]);
    next.push_back(out[axis_] + 1);
    Expr is_there;
    for (size_t a = 0; a < out.size(); ++a) {
      if (a != axis_ && !graph::ProveEqual(updates_.dims[a], x_.dims[a]))
        is_there =
            is_there ? And(is_there, Lt(out[a], updates_.dims[a])) : Lt(out[a], updates_.dims[a]);
    }
    const Expr begin = CastExpr::Make(DType::Index(), begin_.At(at));
    const Expr end = CastExpr::Make(DType::Index(), begin_.At(next));
    return {begin, is_there ? Select::Make(is_there, end, begin) : end};
  }

  Expr UpdateAt(const SortedRows& sorted, const Indices& column, const Expr& rank) const {
    const Expr held = Max(Min(rank, steps_ - 1), IndexConst(0));
    const Expr from = CastExpr::Make(DType::Index(), sorted.at(SortedColumnOf(column), held));
    return updates_.at(WithAxis(column, Max(Min(from, steps_ - 1), IndexConst(0))));
  }

  Operand Last(const SortedRows& sorted) const {
    return {op_.out.dtype, op_.out.dims, [*this, sorted](const Indices& out) {
              const Span span = SpanOf(out);
              const Expr update = UpdateAt(sorted, ColumnOf(out), span.end - 1);
              return Select::Make(Lt(span.begin, span.end), update, x_.at(out));
            }};
  }

  // Of each update the combination of those from it on that go to the same place, of at most
  // `width`: [columns…, ranks].
  using Runs = std::function<Expr(const Indices& column, const Expr& rank)>;

  Operand Combined(const SortedRows& sorted) {
    const bool sums = reduction_ == "add" || reduction_ == "mul";
    const DType wide = sums ? graph::AccumulatorOf(op_.out.dtype) : op_.out.dtype;
    const BinaryOp combiner = CombinerOf(reduction_);
    const te::Tensor ends = Ends(sorted);
    std::vector<Expr> dims = updates_.dims;
    dims.erase(dims.begin() + static_cast<long>(axis_));
    dims.push_back(steps_);
    Runs runs = [*this, sorted, wide](const Indices& column, const Expr& rank) {
      return CastExpr::Make(wide, UpdateAt(sorted, column, rank));
    };
    for (int64_t width = 1; width < LongestRow(steps_); width *= kPart) {
      const te::Tensor longer = te::Compute(
          group_.Mark(fmt::format("{}_runs{}", op_.name, width * kPart), BlockRole::kAnchor), dims,
          [&](const Indices& at) {
            const te::Axis r = te::ReduceAxis("r", IndexConst(kPart - 1));
            const Indices column(at.begin(), at.end() - 1);
            const Expr rank = at.back() + (r.var + 1) * width;
            Indices place = SortedColumnOf(column);
            place.push_back(at.back());
            const Expr there = Lt(rank, CastExpr::Make(DType::Index(), ends.At(place)));
            const Expr more = runs(column, Min(rank, steps_ - 1));
            return te::Body(Select::Make(there, more, NothingFor(combiner, wide)), {r}, combiner,
                            runs(column, at.back()));
          });
      runs = [longer](Indices column, const Expr& rank) {
        column.push_back(rank);
        return longer.At(column);
      };
    }
    return As(op_.out.dtype,
              {wide, op_.out.dims, [*this, runs, wide, combiner](const Indices& out) {
                 const Span span = SpanOf(out);
                 const Expr first = Max(Min(span.begin, steps_ - 1), IndexConst(0));
                 const Expr here = CastExpr::Make(wide, x_.at(out));
                 return Select::Make(Lt(span.begin, span.end),
                                     Binary::Make(combiner, here, runs(ColumnOf(out), first)),
                                     here);
               }});
  }

  static Expr NothingFor(BinaryOp combiner, DType type) {
    if (combiner == BinaryOp::kMax) return LowestOf(type);
    if (combiner == BinaryOp::kMin) return HighestOf(type);
    return MakeConst(type, combiner == BinaryOp::kMul ? 1 : 0);
  }

  // Where the updates end that go to the place of each: [columns…, ranks].
  te::Tensor Ends(const SortedRows& sorted) {
    std::vector<Expr> dims = columns_;
    dims.push_back(steps_);
    return te::Compute(group_.Mark(op_.name + "_end", BlockRole::kAnchor), dims,
                       [&](const Indices& at) -> te::Body {
                         Indices place(at.begin(), at.end() - 1);
                         const Expr key =
                             CastExpr::Make(DType::Index(), sorted.key(place, at.back()));
                         place.push_back(Max(Min(key + 1, size_), IndexConst(0)));
                         return begin_.At(place);
                       });
  }

  Group& group_;
  const OpContext op_;
  const size_t axis_;
  const std::string reduction_;
  const Operand x_, indices_, updates_;
  const Expr size_, steps_;
  std::vector<Expr> columns_;
  DType key_;
  te::Tensor begin_;
};

Operand Build(Group& group, const graph::Node& node, const Point&) {
  return SortedScatter(group, node).Run();
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point&) {
  ScheduleMerging(s, parts, machine);
  for (const std::string& block : BlocksOf(s, parts, BlockRole::kAnchor))
    ShareAmongThreads(s, parts, block);
  for (const std::string& block : BlocksOf(s, parts, BlockRole::kOutput))
    ShareAmongThreads(s, parts, block);
}

}  // namespace

extern const Algorithm kSortedScatter;
const Algorithm kSortedScatter = {"sorted_scatter", kOps, IsFor, SpaceOf, Wants, Work, Build,
                                  ScheduleIt};

}  // namespace tenon::ops

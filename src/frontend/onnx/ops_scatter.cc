// Operators that put elements into a tensor, and those that pick as many as the data say.
//
// Everything that is put somewhere is the graph's scatter, which works along one axis. ScatterND's
// coordinates become one number, the place among the axes that they cover:
//
//   ScatterND(x: [4, 5, 6], indices: [7, 2], updates: [7, 6])
//
// is a scatter into [20, 6] of the rows 5 · i + j. Which elements are picked (NonZero, Compress,
// Unique) is known when they are counted: the count defines a dim, and the j-th element picked is
// found by searching the sums of the mask so far.
#include <algorithm>
#include <limits>

#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

constexpr DType kI64 = DType::Int(64);

Expected<std::string> ReadReduction(OpContext& c) {
  TN_ASSIGN_OR_RETURN(const std::string reduction, c.String("reduction", "none"));
  for (const char* known : {"none", "add", "mul", "max", "min"}) {
    if (reduction == known) return reduction;
  }
  return c.Error("expected reduction none, add, mul, max or min, but got {}",
                 graph::Quoted(reduction));
}

// Of bools, adding is or, the larger one, and multiplying is and, the smaller one.
Val ScatterInto(const Val& x, const Val& at, const Val& updates, int64_t axis,
                const std::string& reduction) {
  if (!x || !updates || !x.dtype().IsBool() || !updates.dtype().IsBool() || reduction == "none")
    return Scatter(x, at, updates, axis, reduction);
  const DType byte = DType::UInt(8);
  const bool is_or = reduction == "add" || reduction == "max";
  return Cast(Scatter(Cast(x, byte), at, Cast(updates, byte), axis, is_or ? "max" : "min"),
              x.dtype());
}

Status ImportScatterElements(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 3));
  TN_ASSIGN_OR_RETURN(const int64_t axis, c.AxisAttr("axis", 0, c.Rank(0)));
  std::string reduction = "none";
  if (c.opset >= 16) {
    TN_ASSIGN_OR_RETURN(reduction, ReadReduction(c));
  }
  const Formula f(c);
  const Val at = IndicesInto(c, 1, f.In(1), 0, axis), updates = f.In(2);
  if (at && at.rank() != updates.rank())
    return c.Error("expected indices and updates of one shape, but got {} and {}",
                   c.Type(1).ToString(), c.Type(2).ToString());
  return f.Result(ScatterInto(f.In(0), at, Conformed(updates, c.Dims(1)), axis, reduction));
}

Status ImportScatterNd(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 3));
  std::string reduction = "none";
  if (c.opset >= 16) {
    TN_ASSIGN_OR_RETURN(reduction, ReadReduction(c));
  }
  // The updates' rank tells how many coordinates there are.
  if (const int64_t left = c.Rank(1) - 1 + c.Rank(0) - c.Rank(2); left >= 1)
    TN_RETURN_IF_ERROR(c.Fix(1, -1, left));
  const Formula f(c);
  const Val x = f.In(0), updates = f.In(2), indices = CoordinatesIn(c, 1, f.In(1), 0, 0);
  const std::optional<int64_t> depth =
      indices.rank() > 0 ? AsInt(indices.dim(-1)) : std::optional<int64_t>();
  if (!depth || *depth < 1 || *depth > x.rank() ||
      updates.rank() != indices.rank() - 1 + x.rank() - *depth) {
    return c.Error(
        "expected indices of up to {} coordinates, and updates for each, but got {} and "
        "{} for {}",
        x.rank(), c.Type(1).ToString(), c.Type(2).ToString(), c.Type(0).ToString());
  }
  const Dims all = x.dims(), count = indices.dims();
  const std::span<const Expr> dims(all);
  const Expr rest = graph::DimProduct(dims.subspan(static_cast<size_t>(*depth)));
  const Expr rows = graph::DimProduct(std::span(count).first(count.size() - 1));
  // One coordinate outside, where nobody has refused it, must not be another's place inside: then
  // the row is none at all.
  Val place, inside;
  for (int64_t k = 0; k < *depth; ++k) {
    const Val raw = Cast(Element(indices, -1, k), kI64), size = Size(x, k);
    const Val at = Where(raw < 0, raw + size, raw);
    const Val fits = (at >= 0) & (at < size);
    place = place ? place * size + at : at;
    inside = inside ? inside & fits : fits;
  }
  place = Where(inside, place, INT32_MIN);
  const Val flat = ScatterInto(
      Reshape(x, {graph::DimProduct(dims.first(static_cast<size_t>(*depth))), rest}),
      Reshape(place, {rows, IndexConst(1)}), Reshape(updates, {rows, rest}), 0, reduction);
  return f.Result(Reshape(flat, all));
}

// The rows of a cache from write_indices on, per batch, are replaced.
Status ImportTensorScatter(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 3));
  TN_ASSIGN_OR_RETURN(const int64_t axis, c.AxisAttr("axis", -2, c.Rank(0)));
  TN_ASSIGN_OR_RETURN(const std::string mode, c.String("mode", "linear"));
  if (mode != "linear" && mode != "circular")
    return c.Error("expected mode linear or circular, but got {}", graph::Quoted(mode));
  if (axis == 0) return c.Error("expected an axis other than that of batches, but got 0");
  const Formula f(c);
  const Val cache = f.In(0), update = f.In(1);
  if (update.rank() != cache.rank())
    return c.Error("expected an update of the cache's rank, but got {} and {}",
                   c.Type(1).ToString(), c.Type(0).ToString());
  Dims shape(cache.dims().size(), IndexConst(1));
  shape[static_cast<size_t>(axis)] = update.dim(axis);
  Val at = Reshape(f.Iota(update.dim(axis)), shape);
  if (Val begin = f.In(2)) {
    const Expr one = IndexConst(1), room = graph::DimSub(cache.dim(axis), update.dim(axis));
    begin = InRange(c, 2, begin, mode == "circular" ? cache.dim(axis) : graph::DimAdd(room, one));
    shape[static_cast<size_t>(axis)] = IndexConst(1);
    shape[0] = begin.dim(0);
    at = at + Reshape(begin, shape);
  }
  if (mode == "circular") at = Mod(at, Size(cache, axis));
  return f.Result(Scatter(cache, at, update, axis));
}

// Elements go back to where MaxPool found them: places in a whole tensor of the pooled one's shape.
Status ImportMaxUnpool(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 3));
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> kernel, c.Ints("kernel_shape"));
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> strides, c.Ints("strides"));
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> pads, c.Ints("pads"));
  const size_t n = c.Dims(0).size() < 3 ? 0 : c.Dims(0).size() - 2;
  if (n == 0 || !kernel || kernel->size() != n || (strides && strides->size() != n) ||
      (pads && pads->size() != 2 * n)) {
    return c.Error("expected kernel_shape, strides and pads for the spatial axes of {}",
                   c.Type(0).ToString());
  }
  Dims inferred = {c.Dims(0)[0], c.Dims(0)[1]};
  for (size_t i = 0; i < n; ++i) {
    const Expr steps = graph::DimMul(graph::DimSub(c.Dims(0)[i + 2], IndexConst(1)),
                                     IndexConst(strides ? (*strides)[i] : 1));
    const int64_t edge = (*kernel)[i] - (pads ? (*pads)[i] + (*pads)[n + i] : 0);
    inferred.push_back(graph::DimAdd(steps, IndexConst(edge)));
  }
  Dims shape = inferred;
  if (c.Has(2)) {
    TN_ASSIGN_OR_RETURN(shape, SizesOf(c, 2, "an output shape", c.Rank(0)));
    if (shape.size() != inferred.size())
      return c.Error("expected an output shape of {} dims, but got {}", inferred.size(),
                     shape.size());
  }
  const Formula f(c);
  const Expr count = graph::DimProduct(c.Dims(0));
  const Val none = Expand(f.Number(c.Type(0).dtype, 0), {graph::DimProduct(inferred)});
  const Val places = InRange(c, 1, f.In(1), graph::DimProduct(inferred));
  Val y = Scatter(none, Reshape(places, {count}), Reshape(f.In(0), {count}), 0);
  y = Reshape(y, inferred);
  for (size_t i = 0; i < shape.size(); ++i) {  // the rest of a larger output is zero
    const std::optional<int64_t> more = AsInt(graph::DimSub(shape[i], inferred[i]));
    if (more && *more < 0)
      return c.Error("expected an output shape of at least {}, but got {}",
                     graph::DimsText(inferred), graph::DimsText(shape));
    if (!more) {
      c.b.Require(Ge(shape[i], inferred[i]));
      y = Cut(y, static_cast<int64_t>(i), f.Number(DType::Int(64), 0), shape[i]);
    } else if (*more > 0)
      y = Pad(y, static_cast<int64_t>(i), 0, *more);
  }
  return f.Result(y);
}

// ---- What the data pick ----

// A coordinate of each place of a row-major tensor of x's shape.
Val Coordinate(const Val& x, const Val& place, int64_t axis) {
  Val stride, size = Size(x, axis);
  for (int64_t a = axis + 1; a < x.rank(); ++a) stride = stride ? stride * Size(x, a) : Size(x, a);
  return Mod(stride ? place / stride : place, size);
}

Status ImportNonZero(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  const Formula f(c);
  const Val x = f.In(0);
  const Val mask = x.dtype().IsBool() ? x : Not(Equal(x, 0));
  const Val at = PlacesOf(Reshape(mask, {graph::DimProduct(x.dims())}), c.node.outputs[0]);
  // Of a scalar there are no coordinates.
  if (x.rank() == 0) return f.Result(Slice(Unsqueeze(at, 0), 0, IndexConst(0), IndexConst(0)));
  std::vector<Val> rows;
  for (int64_t axis = 0; axis < x.rank(); ++axis) rows.push_back(Coordinate(x, at, axis));
  return f.Result(Stack(rows, 0));
}

// The node's axis; without one it is about all elements in their order, which x becomes.
Expected<int64_t> AxisOrFlat(OpContext& c, Val* x) {
  if (c.HasAttr("axis")) return c.AxisAttr("axis", std::nullopt, c.Rank(0));
  *x = Reshape(*x, {graph::DimProduct(x->dims())});
  return 0;
}

Status ImportCompress(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  const Formula f(c);
  Val x = f.In(0);
  TN_ASSIGN_OR_RETURN(const int64_t axis, AxisOrFlat(c, &x));
  if (c.Rank(1) != 1 || !c.Type(1).dtype.IsBool())
    return c.Error("expected a list of bools to pick by, but got {}", c.Type(1).ToString());
  Val at = PlacesOf(f.In(1), c.node.outputs[0]);
  if (!graph::ProveEqual(f.In(1).dim(0), x.dim(axis)))
    at = NoneOf(c, 1, at, at >= Size(x, axis), "places beyond the axis");
  return f.Result(Gather(x, at, axis));
}

// ---- Unique ----

// For rows of [n, m], whether row j differs from row i, and whether it comes before it: the order
// of their first elements that differ, NaN being the largest and equal to itself. [n, n]
struct Comparison {
  Val differs, before;
};
Comparison CompareRows(const Val& i, const Val& j) {
  const bool is_float = i.dtype().IsFloat();
  const auto is_nan = [](const Val& v) { return Apply(OpKind::kIsNan, v); };
  Val differs = Not(Equal(i, j)), before = j < i;
  if (is_float) {
    differs = differs & Not(is_nan(i) & is_nan(j));
    before = before | (is_nan(i) & Not(is_nan(j)));
  }
  if (IsOne(i.dim(-1))) return {Squeeze(differs, -1), Squeeze(before, -1)};
  const Val first = ArgReduce("max", Cast(differs, DType::Int(32)), -1);
  return {Reduce("any", differs, {-1}, false), Squeeze(GatherElements(before, first, -1), -1)};
}

// The rows' numbers in their order, equal ones by their number. Rows of several elements are ranked
// by counting those that come before.
Val OrderOf(const Val& rows, const Val& number) {
  const Expr n = rows.dim(0);
  if (IsOne(rows.dim(-1))) return TopK(Squeeze(rows, -1), 0, n, false).second;
  const Comparison pairs = CompareRows(Unsqueeze(rows, 1), Unsqueeze(rows, 0));
  const Val comes_before =
      pairs.before | (Not(pairs.differs) & (Unsqueeze(number, 0) < Unsqueeze(number, 1)));
  const Val rank = Sum(Cast(comes_before, kI64), {1}, false);
  return Scatter(Expand(rows.formula().Number(kI64, 0), {n}), rank, number, 0);
}

// In the rows' order a row that differs from the one before begins a group.
struct UniqueRows {
  Val values, first, inverse, counts;
};
UniqueRows FindUnique(const OpContext& c, const Val& x, int64_t axis, bool sorted) {
  const Formula& f = x.formula();
  const Val front = Swap(x, 0, axis);
  const Dims dims = front.dims();
  const Expr n = front.dim(0), one = IndexConst(1);
  const Expr width = dims.empty() ? one : graph::DimProduct(std::span(dims).subspan(1));
  Val rows = Reshape(front, {n, width});
  if (rows.dtype().IsBool()) rows = Cast(rows, DType::UInt(8));
  const Val number = f.Iota(n);
  const Val order = OrderOf(rows, number);  // the row of each rank
  const Val none = Expand(f.Number(kI64, 0), {n});
  const Val ordered = Gather(rows, order, 0);
  const Val last = Max(number - 1, 0);
  const Val begins = Equal(number, 0) | CompareRows(ordered, Gather(ordered, last, 0)).differs;
  const Val group = CumSum(Cast(begins, kI64), 0) - 1;  // of each rank
  const Val group_of = Scatter(none, order, group, 0);  // of each row
  const auto many = [&](const Val& groups) {            // rows in each of these groups
    return f.Emit(OpKind::kSearchSorted, {group, groups}) -
           f.Emit(OpKind::kSearchSorted, {group, groups - 1});
  };
  if (sorted) {
    const Val starts = PlacesOf(begins, c.node.outputs[0]);
    const Val first = Gather(order, starts, 0);
    return {Gather(x, first, axis), first, group_of, many(Gather(group, starts, 0))};
  }
  // By the number of a group's first row: among all rows the groups' first ones are marked.
  const Val is_first = Scatter(none, order, Cast(begins, kI64), 0);
  const Val first = PlacesOf(Equal(is_first, 1), c.node.outputs[0]);
  const Val place = CumSum(is_first, 0) - 1;
  // The rank at which a rank's group begins: as many ranks as belong to groups before.
  const Val start = f.Emit(OpKind::kSearchSorted, {group, group_of - 1});
  const Val inverse = Gather(place, Gather(order, start, 0), 0);
  return {Gather(x, first, axis), first, inverse, many(Gather(group_of, first, 0))};
}

Status ImportUnique(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const bool sorted, c.Bool("sorted", true));
  const Formula f(c);
  Val x = f.In(0);
  TN_ASSIGN_OR_RETURN(const int64_t axis, AxisOrFlat(c, &x));
  const UniqueRows u = FindUnique(c, x, axis, sorted);
  return f.Result({u.values, u.first, u.inverse, u.counts});
}

// In the order in which they come; without the places of the first ones.
Status ImportContribUnique(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  if (c.Rank(0) != 1) return c.Error("expected a list, but got {}", c.Type(0).ToString());
  const Formula f(c);
  const UniqueRows u = FindUnique(c, f.In(0), 0, false);
  return f.Result({u.values, u.inverse, u.counts});
}

// ---- NonMaxSuppression ----

// Corners in any order, or centres and sizes, as corners: [y1, x1, y2, x2], each [B, C, N].
std::vector<Val> Corners(const Val& boxes, bool centers) {
  std::vector<Val> e;
  for (int64_t k = 0; k < 4; ++k) e.push_back(Element(boxes, -1, k));
  if (centers) {
    const Val half_w = e[2] / 2, half_h = e[3] / 2;
    return {e[1] - half_h, e[0] - half_w, e[1] + half_h, e[0] + half_w};
  }
  return {Min(e[0], e[2]), Min(e[1], e[3]), Max(e[0], e[2]), Max(e[1], e[3])};
}

// Boxes by falling score, as far as some class has boxes whose score suffices. In each round every
// class keeps its first box that is left, and those that overlap it by more than the threshold are
// left no longer: there are as many rounds as boxes may be kept.
Status ImportNonMaxSuppression(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 5));
  TN_ASSIGN_OR_RETURN(const bool centers, c.Bool("center_point_box", false));
  TN_RETURN_IF_ERROR(c.Fix(0, 2, 4));
  if (c.Rank(0) != 3 || c.Rank(1) != 3 || AsInt(c.Dims(0)[2]) != 4) {
    return c.Error("expected boxes [B, N, 4] and scores [B, C, N], but got {} and {}",
                   c.Type(0).ToString(), c.Type(1).ToString());
  }
  const Formula f(c);
  const Val boxes = f.In(0), scores = f.In(1);
  const DType type = scores.dtype(), i32 = DType::Int(32);
  const auto scalar = [&](size_t i, DType dtype) {
    return f.In(i) ? Cast(Reshape(f.In(i), {}), dtype) : f.Number(dtype, 0);
  };
  const Val overlap = scalar(3, type);
  const Expr batches = scores.dim(0), classes = scores.dim(1), all = scores.dim(2);
  const Val least = f.In(4) ? scalar(4, type) : Val();
  Expr n = all;
  Val ordered = scores;
  if (least) {
    const Val suffices = scores > least;  // not NaN, which TopK puts first
    n = graph::DimMin(
        SizeOf(Reduce("max", Sum(Cast(suffices, kI64), {2}, false), {0, 1}, false), all), all);
    ordered = Where(suffices, scores, -std::numeric_limits<double>::infinity());
  }
  const auto [ranked, order] = TopK(ordered, 2, n);
  const Val good = least ? ranked > least : Equal(ranked, ranked);
  const Expr rounds = SizeOf(Min(Max(scalar(2, kI64), 0), NumberOf(f, n)), n);
  const auto corners_of = [&](const Val& x, int64_t axis, const Expr& size) {
    return Expand(Unsqueeze(x, axis), {batches, classes, size, IndexConst(4)});
  };
  const Val by_score = GatherElements(corners_of(boxes, 1, all), corners_of(order, 3, n), 2);
  std::vector<Val> captured = Corners(by_score, centers);
  captured.push_back(overlap);
  const auto round = [&](const Val& i, const std::vector<Val>& carried,
                         const std::vector<Val>& in) -> std::vector<Val> {
    constexpr double kNone = std::numeric_limits<int32_t>::max();
    const Val& left = carried[0];
    const Val number = i.formula().Iota(n, i32);
    const Val first = Reduce("min", Where(left, number, kNone), {2}, true);
    const Val is_one = first < kNone, at = Cast(Where(is_one, first, 0), kI64);  // [B, C, 1]
    std::vector<Val> here;
    for (size_t k = 0; k < 4; ++k) here.push_back(GatherElements(in[k], at, 2));
    const auto area = [](const Val& y1, const Val& x1, const Val& y2, const Val& x2) {
      return (y2 - y1) * (x2 - x1);
    };
    const Val height = Max(Min(in[2], here[2]) - Max(in[0], here[0]), 0);
    const Val width = Max(Min(in[3], here[3]) - Max(in[1], here[1]), 0);
    const Val common = height * width;
    const Val together =
        area(in[0], in[1], in[2], in[3]) + area(here[0], here[1], here[2], here[3]) - common;
    const Val hidden = (common > 0) & (common / together > in[4]);
    return {left & (number > first) & Not(hidden), Squeeze(Where(is_one, first, -1), 2)};
  };
  const Val kept = Loop(f, rounds, {good}, captured, round)[1];  // [rounds, B, C]
  const Val by_class = Transpose(kept, {1, 2, 0});
  const Expr count = graph::DimProduct(by_class.dims());
  const Val at = PlacesOf(Reshape(by_class >= 0, {count}), c.node.outputs[0]);
  const Val box = GatherElements(order, Cast(Max(by_class, 0), kI64), 2);
  return f.Result(Stack({Coordinate(by_class, at, 0), Coordinate(by_class, at, 1),
                         Gather(Reshape(box, {count}), at, 0)},
                        1));
}

constexpr OpRow kRows[] = {
    {"Scatter", 9, ImportScatterElements},
    {"ScatterElements", 11, ImportScatterElements},
    {"ScatterND", 11, ImportScatterNd},
    {"TensorScatter", 24, ImportTensorScatter},
    {"MaxUnpool", 9, ImportMaxUnpool},
    {"NonZero", 9, ImportNonZero},
    {"Compress", 9, ImportCompress},
    {"Unique", 11, ImportUnique},
    {.name = "Unique", .since = 1, .import = ImportContribUnique, .domain = "com.microsoft"},
    {"NonMaxSuppression", 10, ImportNonMaxSuppression},
};

}  // namespace

std::span<const OpRow> ScatterRows() { return kRows; }

}  // namespace tenon::onnx

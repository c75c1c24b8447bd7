// What moves elements by arguments that come with the call: the rules of ops_movement.cc as nodes.
#include "frontend/onnx/movement_by_call.h"

#include <algorithm>

#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/index_checks.h"

namespace tenon::onnx {

// A shape that comes with the call; 0 and -1 mean what they mean in a known one.
Status ReshapeByCall(OpContext& c, bool allow_zero) {
  if (const auto known_rank = c.DeclaredRank(0); known_rank && c.Rank(1) == 1)
    TN_RETURN_IF_ERROR(c.Fix(1, 0, *known_rank));
  const Formula f(c);
  const Val x = f.In(0), shape = Cast(f.In(1), DType::Int(64)), own = ShapeOf(x);
  const std::optional<int64_t> rank = AsInt(shape.dim(0));
  if (shape.rank() != 1 || !rank || *rank > graph::Limits::kRank)
    return c.Error("expected a shape of known length, but got {}", c.Type(1).ToString());
  Val sizes = shape;
  if (!allow_zero) {
    Val copied = Slice(own, 0, IndexConst(0), IndexConst(std::min(*rank, x.rank())));
    if (*rank > x.rank()) copied = Pad(copied, 0, 0, *rank - x.rank());
    sizes = Where(Equal(sizes, 0), copied, sizes);
  }
  const Val inferred = sizes < 0;
  const Val others = Reduce("prod", Where(inferred, 1, sizes), {0}, false);
  const Val all = Reduce("prod", own, {0}, false);
  return f.Result(Reshape(x, SizesIn(Where(Equal(sizes, -1), all / others, sizes))));
}

Status SqueezeByCall(OpContext& c) {
  const Formula f(c);
  const Val x = f.In(0), axes = AxesOf(c, 1, f.In(1), x.rank(), true);
  const int64_t left = x.rank() - *AsInt(axes.dim(0));
  if (left < 0)
    return c.Error("expected at most {} axes, but got {}", x.rank(), *AsInt(axes.dim(0)));
  return f.Result(Reshape(x, SizesIn(Without(ShapeOf(x), IsAmong(axes, x.rank()), left))));
}

Status UnsqueezeByCall(OpContext& c) {
  const Formula f(c);
  const Val x = f.In(0);
  const int64_t rank = x.rank() + *AsInt(c.Dims(1)[0]);
  const Val axes = AxesOf(c, 1, f.In(1), rank, true);
  if (rank > graph::Limits::kRank)
    return f.Result(Reshape(x, Dims(static_cast<size_t>(rank), IndexConst(1))));
  const Val is_new = IsAmong(axes, rank);
  if (x.rank() == 0) return f.Result(Reshape(x, SizesIn(Cast(is_new, DType::Int(64)))));
  const Val from = CumSum(Cast(Not(is_new), DType::Int(64)), 0, true);
  const Val sizes = Gather(ShapeOf(x), Min(from, static_cast<double>(x.rank() - 1)), 0);
  return f.Result(Reshape(x, SizesIn(Where(is_new, 1, sizes))));
}

static constexpr double kFarAway = 0x1p62;

// Bounds that come with the call: Python's rules as arithmetic on lists, and a gather along each
// axis that they are about.
Status SliceByCall(OpContext& c) {
  const Formula f(c);
  const Val x = f.In(0);
  const int64_t rank = x.rank();
  for (size_t i = 1; i < c.num_inputs(); ++i) {
    if (!c.Has(i)) continue;
    if (c.Rank(i) != 1 || graph::ProveDifferent(c.Dims(i)[0], c.Dims(1)[0]) ||
        AsInt(c.Dims(i)[0]).value_or(0) > rank)
      return c.Error("expected starts, ends, axes and steps of one length, but got {}",
                     c.Type(i).ToString());
    c.b.Require(Eq(c.Dims(i)[0], c.Dims(1)[0]));
    c.b.Require(Le(c.Dims(i)[0], IndexConst(rank)));
  }
  const std::optional<Axes> axes = c.Has(3) ? c.b.KnownInts(c.In(3)) : std::nullopt;
  if (axes) TN_RETURN_IF_ERROR(c.NormalizeAxes(*axes, rank, "axes"));
  const Val checked = AxesOf(c, 3, f.In(3), rank, true);
  const auto entry = [&](size_t input, double otherwise) {
    Val list = f.In(input);
    if (input == 4 && list) list = NoneOf(c, 4, list, Equal(list, 0), "zeros");
    return list ? PerAxis(list, checked, rank, otherwise)
                : Expand(f.Number(DType::Int(64), otherwise), {IndexConst(rank)});
  };
  const Val zero = f.Number(DType::Int(64), 0), sizes = ShapeOf(x);
  const Val step = Max(Min(entry(4, 1), 0x1p40), -0x1p40), back = step < 0;
  const Val last = Where(back, sizes - 1, sizes);
  const auto clamped = [&](const Val& bound, const Val& least) {
    return Max(Min(Where(bound < 0, bound + sizes, bound), last), least);
  };
  const Val from = clamped(entry(1, 0), zero);
  const Val to = clamped(entry(2, kFarAway), Where(back, -1, zero));
  // Of an empty axis that is walked backwards both ends are -1, though no start is below 0.
  const Val far = Where(back, Min(from, last) - to, to - from), by = Abs(step);
  const Val count = Max((far + by - 1) / Max(by, 1), 0);
  Val y = x;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const bool named = axes ? std::any_of(axes->begin(), axes->end(),
                                          [&](int64_t a) { return (a < 0 ? a + rank : a) == axis; })
                            : c.Has(3) || axis < AsInt(c.Dims(1)[0]).value_or(rank);
    if (!named) continue;
    const Expr size = SizeOf(ElementOf(count, axis), x.dim(axis));
    y = Gather(y, ElementOf(from, axis) + f.Iota(size) * ElementOf(step, axis), axis);
  }
  return f.Result(y);
}

// A pad that may be negative. A size that comes with the call is none, but two are.
static Expr PadOf(const OpContext& c, const Val& pad) {
  if (const auto* known = c.b.Known(pad.id())) return known->front();
  return graph::DimSub(SizeOf(Max(pad, 0)), SizeOf(Max(-pad, 0)));
}

// Padding that comes with the call.
Status PadByCall(OpContext& c) {
  TN_ASSIGN_OR_RETURN(std::string mode, c.String("mode", "constant"));
  const Formula f(c);
  const Val x = f.In(0), pads = f.In(1);
  const int64_t rank = x.rank();
  const Expr half = c.Has(3) ? c.Dims(3)[0] : IndexConst(rank);
  const Expr twice = graph::DimMul(half, IndexConst(2));
  if (rank == 0 || c.Rank(1) != 1 || graph::ProveDifferent(pads.dim(0), twice))
    return c.Error("expected two pads for each axis, but got {}", c.Type(1).ToString());
  c.b.Require(Eq(pads.dim(0), twice));
  const Val axes = AxesOf(c, 3, f.In(3), rank, true);
  const auto side = [&](const Expr& first) {
    return PerAxis(Slice(pads, 0, first, half), axes, rank, 0);
  };
  const Val before = side(IndexConst(0)), after = side(half);
  Dims all;
  for (const Val& list : {before, after}) {
    for (int64_t axis = 0; axis < rank; ++axis) all.push_back(PadOf(c, ElementOf(list, axis)));
  }
  for (int64_t axis = 0; axis < rank; ++axis) {
    const size_t at = static_cast<size_t>(axis), end = static_cast<size_t>(rank + axis);
    const Expr size = graph::DimAdd(x.dim(axis), graph::DimAdd(all[at], all[end]));
    if (graph::DimRange(size).min < 0) c.b.Require(Ge(size, IndexConst(0)));
  }
  const Val value = f.In(2) ? Reshape(f.In(2), {}) : Val{};
  return f.Result(Pad(x, std::move(all), std::move(mode), value));
}

}  // namespace tenon::onnx

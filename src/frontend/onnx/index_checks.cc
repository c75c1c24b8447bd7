#include "frontend/onnx/index_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/onnx/call_sizes.h"

namespace tenon::onnx {
namespace {

constexpr DType kI64 = DType::Int(64);

/// least <= element < end. The elements of an axis, where `axis` is one.
struct Bounds {
  Expr least, end;
  Val shift;  // `least` as a scalar of i64; left out where it is 0
  std::string because;
  int64_t axis = -1;
  std::string what = "elements of";  // the input: what is checked
};

/// Whether every element is known and inside. One that is known to be outside is an error.
bool IsKnownInside(const Val& checked, const Bounds& bounds) {
  const Formula& f = checked.formula();
  const Elements* known = f.builder().Known(checked.id());
  if (!known) return false;
  const std::optional<int64_t> least = AsInt(bounds.least), end = AsInt(bounds.end);
  bool inside = true;
  for (const Expr& e : *known) {
    const std::optional<int64_t> i = AsInt(e);
    if (i && least && end && *end > *least && (*i < *least || *i >= *end)) {
      f.Fail(MakeError(
          bounds.axis >= 0
              ? fmt::format("expected indices in {}..{} into axis {}, but got {}", *least, *end - 1,
                            bounds.axis, *i)
              : fmt::format("expected values in {}..{}, but got {}", *least, *end - 1, *i)));
      return true;
    }
    inside = inside && graph::DimRange(graph::DimSub(e, bounds.least)).min >= 0 &&
             graph::DimRange(graph::DimSub(bounds.end, e)).min > 0;
  }
  return inside;
}

// Less the least, as unsigned numbers, those that are too small are too large as well: one
// comparison each, and one number says it of all.
Val Require(const OpContext& c, size_t i, const Val& v, const Val& checked, const Bounds& bounds) {
  if (!v || !checked || !checked.dtype().IsInt()) return v;  // of other types others complain
  if (IsKnownInside(checked, bounds)) return v;
  const Val wide = Cast(checked, kI64), moved = bounds.shift ? wide - bounds.shift : wide;
  const Val worst = Reduce("max", Cast(moved, DType::UInt(64)), AxesFrom(moved, 0), false);
  const std::string what =
      fmt::format("node {} ({}): expected {} {}", graph::Quoted(c.name()), c.node.op_type,
                  bounds.what, graph::Quoted(c.node.inputs[i]));
  return v.formula().Emit(OpKind::kRequire, {v, worst},
                          {{"what", what}, {"because", bounds.because}},
                          {{"least", {bounds.least}}, {"end", {bounds.end}}});
}

Bounds OfAxis(const OpContext& c, const Formula& f, size_t of, int64_t axis) {
  const Val x = f.In(of);
  const int64_t at = x.At(axis);
  const Expr size = x.dim(at);
  return {graph::DimSub(IndexConst(0), size), size, -Size(x, at),
          fmt::format("axis {} of {}", at, graph::Quoted(c.node.inputs[of])), at};
}

}  // namespace

Val IndicesInto(const OpContext& c, size_t i, const Val& v, size_t of, int64_t axis) {
  return v ? Require(c, i, v, v, OfAxis(c, v.formula(), of, axis)) : v;
}

Val CoordinatesIn(const OpContext& c, size_t i, const Val& v, size_t of, int64_t first) {
  const std::optional<int64_t> count = v.rank() > 0 ? AsInt(v.dim(-1)) : std::optional<int64_t>();
  Val checked = v;
  for (int64_t k = 0; count && k < std::min(*count, v.formula().In(of).rank() - first); ++k) {
    checked = Require(c, i, checked, Element(v, -1, k), OfAxis(c, v.formula(), of, first + k));
  }
  return checked;
}

Val AxesOf(const OpContext& c, size_t i, const Val& axes, int64_t rank, bool once) {
  if (!axes) return axes;
  const Formula& f = axes.formula();
  const Expr end = IndexConst(rank);
  const Val shift = f.Number(kI64, static_cast<double>(-rank));
  const Val inside = Require(c, i, axes, axes, {IndexConst(-rank), end, shift, "", -1});
  if (!once || axes.rank() != 1 || graph::StaticCount(axes.dims()) == 1) return inside;
  const Val times = Reduce("sum", Cast(AxisMatches(inside, rank), kI64), {0}, false);
  Bounds most{IndexConst(0), IndexConst(2), {}, "", -1, "the number of times that an axis is in"};
  return Require(c, i, inside, times, most);
}

Val NoneOf(const OpContext& c, size_t i, const Val& v, const Val& flags, const char* what) {
  if (!v || !flags) return v;
  const Val count = Reduce("sum", Cast(flags, kI64), AxesFrom(flags, 0), false);
  return Require(
      c, i, v, count,
      {IndexConst(0), IndexConst(1), {}, "", -1, fmt::format("the number of {} in", what)});
}

Val InRange(const OpContext& c, size_t i, const Val& v, const Val& checked, const Expr& end) {
  return v ? Require(c, i, v, checked, {IndexConst(0), end, {}, "", -1}) : v;
}

Status RequireRows(OpContext& c, size_t i, const Expr& count) {
  const Expr& rows = c.Dims(i)[0];
  const std::optional<int64_t> there = AsInt(rows), needed = AsInt(count);
  if (there && needed && *there < *needed) {
    return c.Error("expected at least {} rows in {}, but got {}", *needed,
                   graph::Quoted(c.node.inputs[i]), *there);
  }
  c.b.Require(Le(count, rows));
  return Ok();
}

}  // namespace tenon::onnx

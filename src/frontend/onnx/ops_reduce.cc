// Reductions.
#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/ops.h"
#include "support/check.h"

namespace tenon::onnx {
namespace {

constexpr struct {
  const char* name;
  const char* kind;
} kKinds[] = {{"ReduceSum", "sum"},        {"ReduceMean", "mean"},
              {"ReduceMax", "max"},        {"ReduceMin", "min"},
              {"ReduceProd", "prod"},      {"ReduceL1", "l1"},
              {"ReduceL2", "l2"},          {"ReduceSumSquare", "sum_square"},
              {"ReduceLogSum", "log_sum"}, {"ReduceLogSumExp", "log_sum_exp"}};

std::string KindOf(const OpContext& c) {
  for (const auto& [name, kind] : kKinds) {
    if (std::string_view(name) == c.row.name) return kind;
  }
  TN_UNREACHABLE();
}

// Roots and logarithms of integers are those of floats, cut off.
Val Rooted(const Val& x, const std::string& kind) {
  const bool whole = kind != "l2" && kind != "log_sum" && kind != "log_sum_exp";
  return whole || x.dtype().IsFloat() ? x : Cast(x, DType::Float(64));
}

// No axes mean all of them, unless `noop`: then the reduction is over none.
Status Reduce(OpContext& c, std::vector<int64_t> axes, bool noop) {
  TN_ASSIGN_OR_RETURN(bool keepdims, c.Bool("keepdims", true));
  TN_ASSIGN_OR_RETURN(axes, c.NormalizeAxes(axes, c.Rank(0), "axes"));
  if (axes.empty() && !noop) {
    for (int64_t i = 0; i < c.Rank(0); ++i) axes.push_back(i);
  }
  const std::string kind = KindOf(c);
  const Formula f(c);
  const Val x = Rooted(f.In(0), kind);
  const Val y =
      f.Emit(OpKind::kReduce, {x}, {{"kind", kind}, {"axes", axes}, {"keepdims", keepdims}});
  return f.Result(Cast(y, c.Type(0).dtype));
}

Status ImportReduceAttr(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> axes, c.Ints("axes"));
  return Reduce(c, axes.value_or(std::vector<int64_t>()), false);
}

// What is reduced axis by axis, and what is made of the elements before and of the result after.
struct Steps {
  const char* each;
  Val (*before)(const Val& x);
  Val (*after)(const Val& x);
};

Val Same(const Val& x) { return x; }
Val Square(const Val& x) { return x * x; }

Steps StepsOf(const std::string& kind) {
  if (kind == "l1") return {"sum", Abs, Same};
  if (kind == "l2") return {"sum", Square, Sqrt};
  if (kind == "sum_square") return {"sum", Square, Same};
  if (kind == "log_sum") return {"sum", Same, Log};
  for (const auto& row : kKinds) {
    if (kind == row.kind) return {row.kind, Same, Same};
  }
  TN_UNREACHABLE();
}

// Axes that come with the call. For each axis of x both answers are there, its elements and what
// they reduce to, and the result has as many of it as the axes say: one, or all.
Status ReduceByCall(OpContext& c, bool noop) {
  TN_ASSIGN_OR_RETURN(bool keepdims, c.Bool("keepdims", true));
  if (const auto left = c.DeclaredRank(0); left && !keepdims && c.Rank(1) == 1)
    TN_RETURN_IF_ERROR(c.Fix(1, 0, *left < c.Rank(0) ? c.Rank(0) - *left : 0));
  const Formula f(c);
  const Val x = f.In(0), axes = AxesOf(c, 1, f.In(1), x.rank());
  const int64_t rank = x.rank();
  const std::optional<int64_t> count = AsInt(axes.dim(0));
  if (axes.rank() == 1 && !count && !keepdims) {
    return c.Error(
        "expected to know how many axes there are, since keepdims is 0, but got {}; give the shape "
        "of the axes, or declare the rank of the output",
        c.Type(1).ToString());
  }
  if (axes.rank() != 1) return c.Error("expected a list of axes, but got {}", c.Type(1).ToString());
  if (!keepdims && *count > rank)
    return c.Error("expected at most {} axes, but got {}", rank, c.Type(1).ToString());
  Val reduced = IsAmong(axes, rank);
  if (!count && !noop) reduced = reduced | Equal(Size(axes, 0), 0);  // no axes are all of them
  const Steps steps = StepsOf(KindOf(c));
  Val y = steps.before(Widened(Rooted(x, KindOf(c))));
  for (int64_t axis = 0; axis < rank; ++axis) {
    const Val here = Element(reduced, 0, axis);
    const Expr most = graph::DimMax(x.dim(axis), IndexConst(1));
    const Expr size = SizeOf(Where(here, 1, Size(x, axis)), most);
    y = Where(here, Reduce(steps.each, y, {axis}), Gather(y, f.Iota(size), axis));
  }
  y = Cast(steps.after(y), x.dtype());
  // An axis that is there twice leaves one more, and the sizes do not fit: an error of the call.
  if (!keepdims) y = Reshape(y, SizesIn(Without(ShapeOf(y), reduced, rank - *count)));
  return f.Result(y);
}

Status ImportReduceInput(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 2));
  TN_ASSIGN_OR_RETURN(bool noop, c.Bool("noop_with_empty_axes", false));
  if (c.Has(1) && graph::StaticCount(c.Dims(1)) != 0 && !c.b.Known(c.In(1)))
    return ReduceByCall(c, noop);
  std::vector<int64_t> axes;
  // An axes input without elements is known without being a constant.
  if (c.Has(1) && graph::StaticCount(c.Dims(1)) != 0) {
    TN_ASSIGN_OR_RETURN(axes, c.KnownInts(1, "axes"));
  }
  return Reduce(c, std::move(axes), noop);
}

Status ImportArg(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", 0, c.Rank(0)));
  TN_ASSIGN_OR_RETURN(bool keepdims, c.Bool("keepdims", true));
  bool last = false;
  if (c.opset >= 12) {
    TN_ASSIGN_OR_RETURN(last, c.Bool("select_last_index", false));
  }
  const std::string kind = std::string_view(c.row.name) == "ArgMax" ? "max" : "min";
  return c.Result(OpKind::kArgReduce, {c.In(0)},
                  {{"kind", kind}, {"axis", axis}, {"keepdims", keepdims}, {"select_last", last}});
}

// The axis may come with the call: then sums along all axes are written, and one is taken.
Status ImportCumulative(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(bool exclusive, c.Bool("exclusive", false));
  TN_ASSIGN_OR_RETURN(bool reverse, c.Bool("reverse", false));
  const bool product = std::string_view(c.row.name) == "CumProd";
  TN_RETURN_IF_ERROR(c.FixOne(1));
  const Formula f(c);
  const auto along = [&](int64_t axis) {
    return f.Emit(OpKind::kCumSum, {f.In(0)},
                  {{"axis", axis},
                   {"kind", std::string(product ? "prod" : "sum")},
                   {"exclusive", exclusive},
                   {"reverse", reverse}});
  };
  if (c.b.Known(c.In(1))) {
    TN_ASSIGN_OR_RETURN(int64_t axis, c.KnownInt(1, "axis"));
    TN_ASSIGN_OR_RETURN(axis, c.NormalizeAxis(axis, c.Rank(0), "axis"));
    return f.Result(along(axis));
  }
  if (c.Rank(0) == 0 || graph::StaticCount(c.Dims(1)) != 1)
    return c.Error("expected one axis of {}, but got {}", c.Type(0).ToString(),
                   c.Type(1).ToString());
  const Val raw = Reshape(AxesOf(c, 1, f.In(1), c.Rank(0)), {});
  const Val axis = Where(raw < 0, raw + c.Rank(0), raw);
  Val y = along(0);
  for (int64_t k = 1; k < c.Rank(0); ++k)
    y = Where(Equal(axis, static_cast<double>(k)), along(k), y);
  return f.Result(y);
}

Status EmitTopK(OpContext& c, Expr k, int64_t axis, bool largest) {
  TN_ASSIGN_OR_RETURN(std::vector<ValueId> results,
                      c.EmitAll(OpKind::kTopK, 2, {c.In(0)}, {{"axis", axis}, {"largest", largest}},
                                {{"k", {std::move(k)}}}));
  TN_RETURN_IF_ERROR(c.SetOutput(0, results[0]));
  return c.SetOutput(1, results[1]);
}

// Before opset 10, k is an attribute.
Status ImportTopK1(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", -1, c.Rank(0)));
  TN_ASSIGN_OR_RETURN(int64_t k, c.Int("k", std::nullopt));
  return EmitTopK(c, IndexConst(k), axis, true);
}

Status ImportTopK(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", -1, c.Rank(0)));
  bool largest = true;
  if (c.opset >= 11) {
    TN_ASSIGN_OR_RETURN(largest, c.Bool("largest", true));
    TN_RETURN_IF_ERROR(c.Bool("sorted", true));  // any order will do where it is not
  }
  TN_ASSIGN_OR_RETURN(Elements k, SizesOf(c, 1, "k", 1));
  if (k.size() != 1) return c.Error("expected one element in k, but got {}", k.size());
  return EmitTopK(c, k[0], axis, largest);
}

constexpr OpRow kRows[] = {
    {"ReduceSum", 1, ImportReduceAttr},
    {"ReduceSum", 13, ImportReduceInput},
#define TN_REDUCE(name) \
  {name, 1, ImportReduceAttr}, { name, 18, ImportReduceInput }
    TN_REDUCE("ReduceMean"),
    TN_REDUCE("ReduceMax"),
    TN_REDUCE("ReduceMin"),
    TN_REDUCE("ReduceProd"),
    TN_REDUCE("ReduceL1"),
    TN_REDUCE("ReduceL2"),
    TN_REDUCE("ReduceSumSquare"),
    TN_REDUCE("ReduceLogSum"),
    TN_REDUCE("ReduceLogSumExp"),
#undef TN_REDUCE
    {"ArgMax", 1, ImportArg},
    {"ArgMin", 1, ImportArg},
    {"CumSum", 11, ImportCumulative},
    {"CumProd", 26, ImportCumulative},
    {"TopK", 1, ImportTopK1},
    {"TopK", 10, ImportTopK},
};

}  // namespace

std::span<const OpRow> ReduceRows() { return kRows; }

}  // namespace tenon::onnx

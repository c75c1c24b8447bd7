// Gathers, constants, and operators that speak of shapes.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

Status ImportGather(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", 0, c.Rank(0)));
  const Formula f(c);
  const Val at = IndicesInto(c, 1, f.In(1), 0, axis);
  TN_RETURN_IF_ERROR(f.Done());
  return c.Result(c.row.op, {c.In(0), at.id()}, {{"axis", axis}});
}

Status ImportGatherNd(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  int64_t batch_dims = 0;
  if (c.opset >= 12) {
    TN_ASSIGN_OR_RETURN(batch_dims, c.Int("batch_dims", 0));
  }
  // The result's rank tells how many coordinates there are.
  if (const auto rank = c.DeclaredRank(0)) {
    const int64_t count = c.Rank(1) - 1 + c.Rank(0) - batch_dims - *rank;
    if (count >= 1) TN_RETURN_IF_ERROR(c.Fix(1, -1, count));
  }
  const Formula f(c);
  const bool fits = batch_dims >= 0 && batch_dims < c.Rank(0);  // else the graph says it
  const Val at = fits ? CoordinatesIn(c, 1, f.In(1), 0, batch_dims) : f.In(1);
  TN_RETURN_IF_ERROR(f.Done());
  return c.Result(OpKind::kGatherNd, {c.In(0), at.id()}, {{"batch_dims", batch_dims}});
}

// A bound of Shape: counted from the end where negative, then clamped.
int64_t ClampAxis(int64_t axis, int64_t rank) {
  return std::clamp<int64_t>(axis < 0 ? std::max(axis, -rank) + rank : axis, 0, rank);
}

Status ImportShape(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  const int64_t rank = c.Rank(0);
  int64_t start = 0, end = rank;
  if (c.opset >= 15) {
    TN_ASSIGN_OR_RETURN(start, c.Int("start", 0));
    TN_ASSIGN_OR_RETURN(end, c.Int("end", rank));
  }
  start = ClampAxis(start, rank);
  end = std::max(start, ClampAxis(end, rank));
  return c.Result(OpKind::kShape, {c.In(0)}, {{"start", start}, {"end", end}});
}

// The product of the sizes of some axes of the first input, a scalar of i64.
Expected<ValueId> NumElements(OpContext& c, int64_t start, int64_t end) {
  TN_ASSIGN_OR_RETURN(ValueId shape,
                      c.Emit(OpKind::kShape, {c.In(0)}, {{"start", start}, {"end", end}}));
  return c.Emit(OpKind::kReduce, {shape},
                {{"kind", std::string("prod")}, {"axes", std::vector<int64_t>{0}}});
}

Status ImportSize(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const ValueId size, NumElements(c, 0, c.Rank(0)));
  return c.SetOutput(0, size);
}

Status ImportConstantOfShape(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(std::optional<Tensor> value, c.TensorAttr("value"));
  TN_ASSIGN_OR_RETURN(Elements shape, SizesOf(c, 0, "a shape", c.DeclaredRank(0)));
  if (value && graph::StaticCount(value->type.dims) != 1) {
    return c.Error("expected one element in attribute value, but got {}", value->type.ToString());
  }
  const NarrowType* narrow = value ? value->narrow : nullptr;
  if (value) value->type.dims.clear();
  const ValueId scalar =
      value ? AddConstant(c.b, "", std::move(*value)) : c.Scalar(DType::Float(32), 0);
  TN_RETURN_IF_ERROR(c.Result(OpKind::kExpand, {scalar}, {}, {{"shape", std::move(shape)}}));
  c.SetNarrow(0, narrow);
  return Ok();
}

Status ImportConstant(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(0, 0));
  TN_ASSIGN_OR_RETURN(std::optional<Tensor> value, c.TensorAttr("value"));
  if (!value) {
    TN_ASSIGN_OR_RETURN(value, c.TensorAttr("sparse_value", AttrProtoType::kSparseTensor));
  }
  if (c.node.attributes.size() != 1)
    return c.Error("expected one attribute, but got {}", c.node.attributes.size());
  const std::string name(c.node.outputs.empty() ? "" : c.node.outputs[0]);
  if (value) {
    const NarrowType* narrow = value->narrow;
    TN_RETURN_IF_ERROR(c.SetOutput(0, AddConstant(c.b, name, std::move(*value))));
    c.SetNarrow(0, narrow);
    return Ok();
  }
  auto numbers = [&](DType dtype, auto list, bool scalar) {
    TensorType type{dtype, {}};
    if (!scalar) type.dims = {IndexConst(static_cast<int64_t>(list.size()))};
    using T = typename decltype(list)::value_type;
    return c.SetOutput(0, c.b.Constant(name, std::move(type),
                                       graph::MakePayload(dtype, std::span<const T>(list))));
  };
  if (c.HasAttr("value_int")) {
    TN_ASSIGN_OR_RETURN(int64_t i, c.Int("value_int", std::nullopt));
    return numbers(DType::Int(64), std::vector<int64_t>{i}, true);
  }
  if (c.HasAttr("value_float")) {
    TN_ASSIGN_OR_RETURN(double f, c.Float("value_float", 0));
    return numbers(DType::Float(32), std::vector<double>{f}, true);
  }
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> ints, c.Ints("value_ints"));
  if (ints) return numbers(DType::Int(64), *ints, false);
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<double>> floats, c.Floats("value_floats"));
  if (floats) return numbers(DType::Float(32), *floats, false);
  return c.Error("a constant given by {} is not supported",
                 graph::Quoted(c.node.attributes[0].name));
}

// Up to here all integers are numbers of a float type.
int64_t LargestExact(DType type) {
  switch (type.bits) {
    case 64: return int64_t{1} << 53;
    case 32: return int64_t{1} << 24;
    case 16: return int64_t{1} << (type.code == TypeCode::kBFloat ? 8 : 11);
    default: return 0;
  }
}

// A scalar of floats that is an integer, where that is at most `most` away from 0.
struct WholeNumber {
  Expr value;
  int64_t most = 0;
  bool IsExact() const {
    const Interval range = graph::DimRange(value);
    return range.min >= -most && range.max <= most;
  }
};

// A constant, or what was cast from a known integer, as torch counts in floats along an axis.
std::optional<WholeNumber> WholeIn(const OpContext& c, size_t i) {
  const graph::Graph& g = c.b.graph();
  int64_t most = LargestExact(c.Type(i).dtype);
  for (ValueId v = c.In(i);;) {
    const graph::Value& value = g.value(v);
    if (const auto floats = graph::ReadFloats(value); floats && floats->size() == 1) {
      const double number = floats->front();
      if (number != std::trunc(number) || std::abs(number) > static_cast<double>(most)) return {};
      return WholeNumber{IndexConst(static_cast<int64_t>(number)), most};
    }
    if (value.producer == graph::kNoNode) return {};
    const graph::Node& n = g.node(value.producer);
    if (n.op != OpKind::kCast && n.op != OpKind::kReshape) return {};
    v = n.inputs[0];
    const DType from = g.type(v).dtype;
    if (from.IsFloat()) {
      most = std::min(most, LargestExact(from));
      continue;
    }
    const Elements* known = from.IsInt() ? c.b.Known(v) : nullptr;
    if (!known || known->size() != 1) return {};
    return WholeNumber{known->front(), most};
  }
}

// The ends and the step of a range of floats, where all are integers.
struct WholeSteps {
  Expr start, limit;
  int64_t delta = 0;
};
std::optional<WholeSteps> WholeStepsOf(const OpContext& c) {
  const auto start = WholeIn(c, 0), limit = WholeIn(c, 1), delta = WholeIn(c, 2);
  if (!start || !limit || !delta || !start->IsExact()) return {};
  const std::optional<int64_t> step = AsInt(delta->value);
  if (!step || *step == 0) return {};
  if (!limit->IsExact()) {
    // Of an open axis. A call with so many elements that they cannot be counted in floats fails,
    // rather than that all calls look for their number.
    constexpr int64_t kCountable = int64_t{1} << 24;
    const Interval range = graph::DimRange(limit->value);
    const bool counts = AsInt(start->value) == 0 && *step == 1 && limit->most >= kCountable;
    if (!counts || range.min < 0 || range.min > limit->most || c.b.MentionsLate(limit->value))
      return {};
    c.b.Require(Le(limit->value, IndexConst(limit->most)));
  }
  return WholeSteps{start->value, limit->value, *step};
}

// ceil((limit - start) / delta), at least 0.
Expr CountOfSteps(const Expr& start, const Expr& limit, int64_t delta) {
  const Expr way = delta > 0 ? graph::DimSub(limit, start) : graph::DimSub(start, limit);
  return graph::DimMax(IndexConst(0), graph::DimCeilDiv(way, IndexConst(std::abs(delta))));
}

// The same of known numbers.
Expected<Expr> RangeSize(const OpContext& c) {
  if (c.Type(0).dtype.IsFloat()) {
    TN_ASSIGN_OR_RETURN(std::vector<double> start, c.KnownFloats(0, "start"));
    TN_ASSIGN_OR_RETURN(std::vector<double> limit, c.KnownFloats(1, "limit"));
    TN_ASSIGN_OR_RETURN(std::vector<double> delta, c.KnownFloats(2, "delta"));
    const double size = std::ceil((limit[0] - start[0]) / delta[0]);
    if (!(delta[0] != 0) || !(size < 0x1p40))
      return c.Error("expected a range of finite size, but got delta {}", delta[0]);
    return IndexConst(std::max<int64_t>(0, static_cast<int64_t>(size)));
  }
  TN_ASSIGN_OR_RETURN(Elements start, c.Known(0, "start"));
  TN_ASSIGN_OR_RETURN(Elements limit, c.Known(1, "limit"));
  TN_ASSIGN_OR_RETURN(int64_t delta, c.KnownInt(2, "delta"));
  if (delta == 0) return c.Error("expected a range with a sensible delta, but got {}", delta);
  const std::optional<int64_t> from = AsInt(start[0]), to = AsInt(limit[0]);
  if (from && to) {
    // The way from one end of the integers to the other takes a bit more than they have.
    const __int128 way = static_cast<__int128>(*to) - *from;
    const __int128 size = way / delta + (way % delta != 0 && (way < 0) == (delta < 0) ? 1 : 0);
    return IndexConst(static_cast<int64_t>(std::clamp<__int128>(size, 0, int64_t{1} << 62)));
  }
  if (delta == INT64_MIN)
    return c.Error("expected a range with a sensible delta, but got {}", delta);
  return CountOfSteps(start[0], limit[0], delta);
}

// The same of numbers that come with the call; floats are divided as such.
Status RangeByCall(OpContext& c) {
  const Formula f(c);
  const Val start = Reshape(f.In(0), {}), limit = Reshape(f.In(1), {}),
            delta = Reshape(f.In(2), {});
  Val count;
  if (start.dtype().IsFloat()) {
    const auto wide = [](const Val& v) { return Cast(v, DType::Float(64)); };
    const Val steps = Apply(OpKind::kCeil, (wide(limit) - wide(start)) / wide(delta));
    count = Where(Apply(OpKind::kIsNan, steps), -1, Cast(Max(steps, 0), DType::Int(64)));
  } else {
    // As unsigned numbers, ways and steps are right however far apart the ends are.
    const auto wide = [](const Val& v) { return Cast(v, DType::Int(64)); };
    const auto size = [](const Val& v) { return Cast(v, DType::UInt(64)); };
    const Val from = wide(start), to = wide(limit), by = wide(delta);
    const Val back = by < 0, way = size(Where(back, from - to, to - from)), step = size(Abs(by));
    const Val there = Where(back, to < from, from < to);
    const Val last = Where(Equal(Mod(way, step), 0), 0, f.Number(DType::UInt(64), 1));
    count = Where(there, Cast(way / step + last, DType::Int(64)), 0);
  }
  count = Where(Equal(delta, 0), -1, count);  // no size: the call fails
  return f.Result(f.Emit(OpKind::kRange, {start, delta}, {}, {{"size", {SizeOf(count)}}}));
}

Status ImportRange(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 3));
  if (c.opset >= 27) {
    TN_RETURN_IF_ERROR(c.Int("stash_type", 1));  // how narrow floats are computed
  }
  for (size_t i = 0; i < 3; ++i) {
    TN_RETURN_IF_ERROR(c.FixOne(i));
    if (graph::StaticCount(c.Dims(i)) != 1)
      return c.Error("expected scalars, but got {}", c.Type(i).ToString());
    if (c.Type(i).dtype != c.Type(0).dtype)
      return c.Error("expected scalars of one type, but got {} and {}", c.Type(0).ToString(),
                     c.Type(i).ToString());
  }
  const auto known = [&](size_t i) {
    return c.Type(0).dtype.IsFloat() ? graph::ReadFloats(c.b.graph().value(c.In(i))).has_value()
           : i < 2                   ? c.b.Known(c.In(i)) != nullptr
                                     : c.b.KnownInts(c.In(i)).has_value();
  };
  Expr size;
  if (known(0) && known(1) && known(2)) {
    TN_ASSIGN_OR_RETURN(size, RangeSize(c));
  } else if (const auto steps = c.Type(0).dtype.IsFloat() ? WholeStepsOf(c) : std::nullopt) {
    size = CountOfSteps(steps->start, steps->limit, steps->delta);
  } else {
    return RangeByCall(c);
  }
  TN_ASSIGN_OR_RETURN(ValueId start, c.Reshape(c.In(0), {}));
  TN_ASSIGN_OR_RETURN(ValueId delta, c.Reshape(c.In(2), {}));
  return c.Result(OpKind::kRange, {start, delta}, {}, {{"size", {size}}});
}

Status ImportOneHot(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 3));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", -1, c.Rank(0) + 1));
  TN_RETURN_IF_ERROR(c.Fix(1, 0, 1));
  TN_RETURN_IF_ERROR(c.Fix(2, 0, 2));
  Elements depth;
  const bool floats = c.Type(1).dtype.IsFloat();
  if (floats && !c.b.graph().value(c.In(1)).IsConstant() && graph::StaticCount(c.Dims(1)) == 1) {
    const Formula f(c);
    depth = {SizeOf(Cast(f.In(1), DType::Int(64)))};
    TN_RETURN_IF_ERROR(f.Done());
  } else if (floats) {
    TN_ASSIGN_OR_RETURN(std::vector<double> d, c.KnownFloats(1, "depth"));
    if (d.size() != 1 || !(d[0] >= 0 && d[0] < 0x1p40))
      return c.Error("expected one sensible depth");
    depth = {IndexConst(static_cast<int64_t>(d[0]))};
  } else {
    TN_ASSIGN_OR_RETURN(depth, SizesOf(c, 1, "depth"));
  }
  ValueId indices = c.In(0);
  if (c.Type(0).dtype.IsFloat()) {
    TN_ASSIGN_OR_RETURN(indices, c.Emit(OpKind::kCast, {indices}, {{"to", std::string("i64")}}));
  }
  return c.Result(OpKind::kOneHot, {indices, c.In(2)}, {{"axis", axis}},
                  {{"depth", std::move(depth)}});
}

constexpr OpRow kRows[] = {
    {"Gather", 1, ImportGather, OpKind::kGather},
    {"GatherElements", 11, ImportGather, OpKind::kGatherElements},
    {"GatherND", 11, ImportGatherNd},
    {"Shape", 1, ImportShape},
    {"Size", 1, ImportSize},
    {"ConstantOfShape", 9, ImportConstantOfShape},
    {"Constant", 1, ImportConstant},
    {"Range", 11, ImportRange},
    {"OneHot", 9, ImportOneHot},
};

}  // namespace

std::span<const OpRow> IndexRows() { return kRows; }

}  // namespace tenon::onnx

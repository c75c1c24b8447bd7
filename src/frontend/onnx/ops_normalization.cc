// Normalisations: what is taken off the mean and divided by the deviation, over which axes, and
// what is multiplied and added after.
//
// The graph has batch_norm and layer_norm. All others are written with means, as their formulas
// are; floats of 16 bits are widened first and rounded once in the end, whatever stash_type says to
// be the least.
#include "frontend/onnx/formula.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

Status CheckRank(const OpContext& c, int least) {
  if (c.Rank(0) >= least) return Ok();
  return c.Error("expected an input of rank {} or more, but got {}", least, c.Type(0).ToString());
}

// Of x, over `axes`, which stay as ones.
struct Moments {
  Val mean, distance, variance;  // distance: x - mean

  Moments(const Val& x, const Axes& axes)
      : mean(Mean(x, axes)), distance(x - mean), variance(Mean(distance * distance, axes)) {}
};

// One number per channel beside a tensor whose channels are axis 1: [C, 1, …].
Val PerChannel(const Val& v, int64_t rank) {
  Dims dims(static_cast<size_t>(std::max<int64_t>(rank - 1, 1)), IndexConst(1));
  dims[0] = v.dim(0);
  return Reshape(v, dims);
}

Status ImportBatchNormTraining(OpContext& c, double epsilon, double momentum) {
  Axes axes;
  for (int64_t i = 0; i < c.Rank(0); ++i) {
    if (i != 1) axes.push_back(i);
  }
  TN_RETURN_IF_ERROR(CheckRank(c, 2));
  const Formula f(c);
  const Val x = Widened(f.In(0));
  const Moments m(x, axes);
  const Val y = m.distance / Sqrt(m.variance + epsilon) * PerChannel(Widened(f.In(1)), x.rank()) +
                PerChannel(Widened(f.In(2)), x.rank());
  const auto blended = [&](size_t running, const Val& batch) {
    const Val now = Reshape(batch, {x.dim(1)}) * (1 - momentum);
    return Cast(Widened(f.In(running)) * momentum + now, c.Type(running).dtype);
  };
  return f.Result({Cast(y, c.Type(0).dtype), blended(3, m.mean), blended(4, m.variance)});
}

Status ImportBatchNorm(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(5, 5));
  TN_ASSIGN_OR_RETURN(double epsilon, c.Float("epsilon", 1e-5));
  TN_ASSIGN_OR_RETURN(double momentum, c.Float("momentum", 0.9));
  if (c.opset < 9) {
    TN_ASSIGN_OR_RETURN(bool spatial, c.Bool("spatial", true));
    if (!spatial) return c.Error("batch normalization with spatial 0 is not supported");
  }
  bool training = false;
  if (c.opset >= 14) {
    TN_ASSIGN_OR_RETURN(training, c.Bool("training_mode", false));
  }
  if (training) return ImportBatchNormTraining(c, epsilon, momentum);
  return c.Result(OpKind::kBatchNorm, {c.In(0), c.In(1), c.In(2), c.In(3), c.In(4)},
                  {{"epsilon", epsilon}});
}

Status ImportLayerNorm(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 3));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", -1, c.Rank(0)));
  TN_ASSIGN_OR_RETURN(double epsilon, c.Float("epsilon", 1e-5));
  TN_ASSIGN_OR_RETURN(int64_t stash_type, c.Int("stash_type", 1));
  if (stash_type != 1) return c.Error("expected stash_type 1 (float), but got {}", stash_type);
  std::vector<ValueId> inputs = {c.In(0), c.In(1)};
  if (c.Has(2)) inputs.push_back(c.In(2));
  TN_RETURN_IF_ERROR(
      c.Result(OpKind::kLayerNorm, std::move(inputs), {{"axis", axis}, {"epsilon", epsilon}}));
  if (!c.Wants(1) && !c.Wants(2)) return Ok();
  std::vector<int64_t> axes;
  for (int64_t i = axis; i < c.Rank(0); ++i) axes.push_back(i);
  const Formula f(c);
  const Moments m(Widened(f.In(0)), axes);
  const Val inverse = 1 / Sqrt(m.variance + epsilon);
  TN_RETURN_IF_ERROR(f.Done());
  TN_RETURN_IF_ERROR(c.SetOutput(1, m.mean.id()));
  return c.SetOutput(2, inverse.id());
}

// (x - mean) / √(variance + epsilon)
Val Normalized(const Val& x, const Axes& axes, double epsilon) {
  const Moments m(x, axes);
  return m.distance / Sqrt(m.variance + epsilon);
}

Status CheckPerChannel(const OpContext& c, size_t i) {
  if (c.Rank(i) == 1) return Ok();
  return c.Error("expected one number per channel in input {}, but got {}", i,
                 c.Type(i).ToString());
}

// A tensor of at least that rank with a scale and a bias.
Status CheckScaled(const OpContext& c, int least_rank) {
  TN_RETURN_IF_ERROR(c.Arity(3, 3));
  TN_RETURN_IF_ERROR(CheckRank(c, least_rank));
  TN_RETURN_IF_ERROR(CheckPerChannel(c, 1));
  return CheckPerChannel(c, 2);
}

Status ImportInstanceNorm(OpContext& c) {
  TN_RETURN_IF_ERROR(CheckScaled(c, 3));
  TN_ASSIGN_OR_RETURN(double epsilon, c.Float("epsilon", 1e-5));
  const Formula f(c);
  const Val x = Widened(f.In(0));
  const Val y = Normalized(x, AxesFrom(x, 2), epsilon) * PerChannel(Widened(f.In(1)), x.rank()) +
                PerChannel(Widened(f.In(2)), x.rank());
  return f.Result(Cast(y, c.Type(0).dtype));
}

// Until opset 20, scale and bias are one number per group.
Status ImportGroupNorm(OpContext& c) {
  TN_RETURN_IF_ERROR(CheckScaled(c, 2));
  TN_ASSIGN_OR_RETURN(double epsilon, c.Float("epsilon", 1e-5));
  TN_ASSIGN_OR_RETURN(int64_t groups, c.Int("num_groups", std::nullopt));
  if (c.opset >= 21) TN_RETURN_IF_ERROR(c.Int("stash_type", 1));
  const Dims dims = c.Dims(0);
  const Expr g = IndexConst(groups),
             size = graph::DimFloorDiv(dims[1], IndexConst(std::max<int64_t>(groups, 1)));
  if (groups < 1 || graph::ProveDifferent(graph::DimMul(size, g), dims[1])) {
    return c.Error("expected channels in {} equal groups, but got {}", groups,
                   c.Type(0).ToString());
  }
  c.b.Require(Eq(graph::DimMul(size, g), dims[1]));
  Dims grouped = {dims[0], g, size};
  grouped.insert(grouped.end(), dims.begin() + 2, dims.end());
  const Formula f(c);
  const Val x = Reshape(Widened(f.In(0)), grouped);
  const Val normal = Normalized(x, AxesFrom(x, 2), epsilon);
  const auto per_channel = [&](size_t i) {
    const Val v = Widened(f.In(i));
    return PerChannel(c.opset < 21 ? Repeat(v, 0, grouped[2]) : v, c.Rank(0));
  };
  const Val y = Reshape(normal, dims) * per_channel(1) + per_channel(2);
  return f.Result(Cast(y, c.Type(0).dtype));
}

Status ImportRmsNorm(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", -1, c.Rank(0)));
  TN_ASSIGN_OR_RETURN(double epsilon, c.Float("epsilon", 1e-5));
  TN_RETURN_IF_ERROR(c.Int("stash_type", 1));
  const Formula f(c);
  const Val x = Widened(f.In(0));
  const Val normal = x / Sqrt(Mean(x * x, AxesFrom(x, axis)) + epsilon);
  return f.Result(Cast(normal * Cast(f.In(1), x.dtype()), c.Type(1).dtype));
}

Status ImportLpNorm(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", -1, c.Rank(0)));
  TN_ASSIGN_OR_RETURN(int64_t p, c.Int("p", 2));
  if (p != 1 && p != 2) return c.Error("expected p 1 or 2, but got {}", p);
  const Formula f(c);
  const Val x = f.In(0), norm = Reduce(p == 1 ? "l1" : "l2", x, {axis});
  return f.Result(Where(Equal(norm, 0), 0, x / norm));
}

Status ImportMeanVarianceNorm(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(std::optional<Axes> axes, c.Ints("axes"));
  TN_ASSIGN_OR_RETURN(axes, c.NormalizeAxes(axes.value_or(Axes{0, 2, 3}), c.Rank(0), "axes"));
  const Formula f(c);
  return f.Result(Cast(Normalized(Widened(f.In(0)), *axes, 1e-9), c.Type(0).dtype));
}

// x / (bias + alpha / size · Σ x²)^beta, the sum over `size` channels around each.
Status ImportLrn(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_RETURN_IF_ERROR(CheckRank(c, 3));
  TN_ASSIGN_OR_RETURN(int64_t size, c.Int("size", std::nullopt));
  TN_ASSIGN_OR_RETURN(double alpha, c.Float("alpha", 1e-4));
  TN_ASSIGN_OR_RETURN(double beta, c.Float("beta", 0.75));
  TN_ASSIGN_OR_RETURN(double bias, c.Float("bias", 1));
  if (size < 1 || size > 1 << 20)
    return c.Error("expected size in 1..{}, but got {}", 1 << 20, size);
  const Formula f(c);
  const Val x = Widened(f.In(0));
  // A mean along the channels, as of the pixels of an image: [N, 1, C, rest]. It counts the
  // padding.
  const Dims dims = x.dims();
  const Val rows = Reshape(
      x * x, {dims[0], IndexConst(1), dims[1], graph::DimProduct(std::span(dims).subspan(2))});
  const Val mean = f.Emit(OpKind::kAvgPool, {rows},
                          {{"kernel", Axes{size, 1}},
                           {"pads", Axes{(size - 1) / 2, 0, size / 2, 0}},
                           {"count_include_pad", true}});
  const Val y = x / Pow(Reshape(mean, dims) * alpha + bias, beta);
  return f.Result(Cast(y, c.Type(0).dtype));
}

constexpr OpRow kRows[] = {
    {"BatchNormalization", 7, ImportBatchNorm},
    {"LayerNormalization", 1, ImportLayerNorm},  // before opset 17 as ONNX Runtime has it
    {.name = "LayerNormalization",
     .since = 1,
     .import = ImportLayerNorm,
     .domain = "com.microsoft"},
    {"InstanceNormalization", 6, ImportInstanceNorm},
    {"GroupNormalization", 18, ImportGroupNorm},
    {"RMSNormalization", 23, ImportRmsNorm},
    {"LpNormalization", 1, ImportLpNorm},
    {"MeanVarianceNormalization", 9, ImportMeanVarianceNorm},
    {"LRN", 1, ImportLrn},
};

}  // namespace

std::span<const OpRow> NormalizationRows() { return kRows; }

}  // namespace tenon::onnx

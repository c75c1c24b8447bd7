// Normalisations: what is taken off the mean and divided by the deviation, over which axes, and
// what is multiplied and added after.
//
// The graph has batch_norm and layer_norm. All others are written with means, as their formulas
// are; floats of 16 bits are widened first and rounded once in the end, whatever stash_type says to
// be the least.
#include <algorithm>

#include "frontend/onnx/call_sizes.h"
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

// How a batch is normalized: per channel or, not spatial, per element of a sample; and in training
// by its own mean and variance.
struct BatchNorm {
  double epsilon, momentum;
  bool spatial = true, training = false;
};

// Statistics may be wider than what they are of, or narrower: the widest is computed in.
DType WidestOf(const OpContext& c) {
  int bits = 32;
  for (size_t i = 0; i < 5; ++i) bits = std::max<int>(bits, c.Type(i).dtype.bits);
  return DType::Float(bits);
}

Status BatchNormTraining(OpContext& c, const BatchNorm& n) {
  Axes axes;
  for (int64_t i = 0; i < c.Rank(0); ++i) {
    if (i == 0 || (n.spatial && i != 1)) axes.push_back(i);
  }
  const Formula f(c);
  const DType type = WidestOf(c);
  const Val x = Cast(f.In(0), type);
  const auto beside = [&](size_t i) {
    const Val v = Cast(f.In(i), type);
    return n.spatial ? PerChannel(v, x.rank()) : v;
  };
  const Moments m(x, axes);
  const Val y = m.distance / Sqrt(m.variance + n.epsilon) * beside(1) + beside(2);
  const auto saved = [&](size_t running, const Val& batch) {
    return Reshape(batch, c.Dims(running));
  };
  const auto blended = [&](size_t running, const Val& batch) {
    const Val now = saved(running, batch) * (1 - n.momentum);
    return Cast(Cast(f.In(running), type) * n.momentum + now, c.Type(running).dtype);
  };
  const Val results[] = {Cast(y, c.Type(0).dtype), blended(3, m.mean), blended(4, m.variance),
                         Cast(saved(3, m.mean), c.Type(3).dtype),
                         Cast(saved(4, m.variance), c.Type(4).dtype)};
  TN_RETURN_IF_ERROR(f.Done());
  for (size_t i = 0; i < std::min(c.num_outputs(), std::size(results)); ++i)
    TN_RETURN_IF_ERROR(c.SetOutput(i, results[i].id()));
  return Ok();
}

// Before opset 14 a node is in training where it has more than one output, and before opset 7 where
// it does not say that it is not.
Expected<BatchNorm> ReadBatchNorm(OpContext& c) {
  BatchNorm n{};
  TN_ASSIGN_OR_RETURN(n.epsilon, c.Float("epsilon", 1e-5));
  TN_ASSIGN_OR_RETURN(n.momentum, c.Float("momentum", 0.9));
  n.spatial = true;
  if (c.opset < 9) {
    TN_ASSIGN_OR_RETURN(n.spatial, c.Bool("spatial", true));
  }
  if (c.opset >= 14) {
    TN_ASSIGN_OR_RETURN(n.training, c.Bool("training_mode", false));
  } else if (c.opset >= 7) {
    for (size_t i = 1; i < c.num_outputs(); ++i) n.training |= c.Wants(i);
  } else {
    TN_ASSIGN_OR_RETURN(const bool test, c.Bool("is_test", false));
    n.training = !test;
  }
  return n;
}

Status ImportBatchNorm(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(5, 5));
  TN_ASSIGN_OR_RETURN(const BatchNorm n, ReadBatchNorm(c));
  if (n.training || !n.spatial) TN_RETURN_IF_ERROR(CheckRank(c, 2));
  if (n.training) return BatchNormTraining(c, n);
  const Formula f(c);
  if (!n.spatial) {
    const auto wide = [&](size_t i) { return Cast(f.In(i), WidestOf(c)); };
    const Val normal = (wide(0) - wide(3)) / Sqrt(wide(4) + n.epsilon);
    const Val y = normal * wide(1) + wide(2);
    return f.Result(Conformed(Cast(y, c.Type(0).dtype), c.Dims(0)));
  }
  DType type = c.Type(0).dtype;
  for (size_t i = 1; i < 5; ++i) {
    if (!(c.Type(i).dtype == type)) type = WidestOf(c);
  }
  std::vector<Val> operands;
  for (size_t i = 0; i < 5; ++i) operands.push_back(Cast(f.In(i), type));
  if (c.Rank(0) == 1) operands[0] = Unsqueeze(operands[0], 1);  // one channel
  const Val y =
      Cast(f.Emit(OpKind::kBatchNorm, operands, {{"epsilon", n.epsilon}}), c.Type(0).dtype);
  return f.Result(c.Rank(0) == 1 ? Squeeze(y, 1) : y);
}

// The float that is to be computed in, and in which what is computed besides is given. Narrow ones
// are the least: sums are f32 or wider whatever they say.
Expected<DType> ReadStashType(OpContext& c) {
  TN_ASSIGN_OR_RETURN(const int64_t code, c.Int("stash_type", 1));
  TN_ASSIGN_OR_RETURN(const DType type,
                      ToDType(static_cast<int32_t>(std::clamp<int64_t>(code, 0, INT32_MAX))));
  if (type.IsFloat()) return type;
  return c.Error("expected a float as stash_type, but got {}", type.ToString());
}

// x as wide as that, unless it is no wider anyway.
Val Stashed(const Val& x, DType stash) {
  return stash.bits > std::max<int>(x.dtype().bits, 32) ? Cast(x, stash) : x;
}

Status ImportLayerNorm(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 3));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", -1, c.Rank(0)));
  TN_ASSIGN_OR_RETURN(double epsilon, c.Float("epsilon", 1e-5));
  TN_ASSIGN_OR_RETURN(const DType stash, ReadStashType(c));
  const Formula f(c);
  const Val x = Stashed(f.In(0), stash);
  std::vector<Val> inputs = {x, Cast(f.In(1), x.dtype())};
  if (c.Has(2)) inputs.push_back(Cast(f.In(2), x.dtype()));
  const Val y = f.Emit(OpKind::kLayerNorm, inputs, {{"axis", axis}, {"epsilon", epsilon}});
  const DType type = c.Type(0).dtype;
  if (!c.Wants(1) && !c.Wants(2)) return f.Result(Cast(y, type));
  const Val wide = Widened(x);
  const Moments m(wide, AxesFrom(wide, axis));
  const Val inverse = 1 / Sqrt(m.variance + epsilon);
  return f.Result({Cast(y, type), Cast(m.mean, stash), Cast(inverse, stash)});
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
  const auto per_channel = [&](size_t i) {
    return PerChannel(Conformed(Widened(f.In(i)), {x.dim(1)}), x.rank());
  };
  const Val y = Normalized(x, AxesFrom(x, 2), epsilon) * per_channel(1) + per_channel(2);
  return f.Result(Cast(y, c.Type(0).dtype));
}

// Until opset 20, scale and bias are one number per group.
Status ImportGroupNorm(OpContext& c) {
  TN_RETURN_IF_ERROR(CheckScaled(c, 2));
  TN_ASSIGN_OR_RETURN(double epsilon, c.Float("epsilon", 1e-5));
  TN_ASSIGN_OR_RETURN(int64_t groups, c.Int("num_groups", std::nullopt));
  DType stash = DType::Float(32);
  if (c.opset >= 21) {
    TN_ASSIGN_OR_RETURN(stash, ReadStashType(c));
  }
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
  const Val x = Reshape(Stashed(Widened(f.In(0)), stash), grouped);
  const Val normal = Normalized(x, AxesFrom(x, 2), epsilon);
  const auto per_channel = [&](size_t i) {
    const Val v = Conformed(Cast(f.In(i), x.dtype()), {c.opset < 21 ? g : dims[1]});
    return PerChannel(c.opset < 21 ? Repeat(v, 0, size) : v, c.Rank(0));
  };
  const Val y = Reshape(normal, dims) * per_channel(1) + per_channel(2);
  return f.Result(Cast(y, c.Type(0).dtype));
}

Status ImportRmsNorm(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", -1, c.Rank(0)));
  TN_ASSIGN_OR_RETURN(double epsilon, c.Float("epsilon", 1e-5));
  TN_ASSIGN_OR_RETURN(const DType stash, ReadStashType(c));
  const Formula f(c);
  const Val x = Stashed(Widened(f.In(0)), stash);
  const Val normal = x / Sqrt(Mean(x * x, AxesFrom(x, axis)) + epsilon);
  const Val scale = Beside(Cast(f.In(1), x.dtype()), x.dims());
  return f.Result(Cast(normal * scale, c.Type(1).dtype));
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
    {"BatchNormalization", 1, ImportBatchNorm},
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

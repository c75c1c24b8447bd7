// Activations, products and normalisations of the domain com.microsoft: what ONNX Runtime's
// optimiser makes of patterns, written as the patterns again, which the graph's passes find.
#include <cmath>
#include <numbers>

#include "frontend/onnx/formula.h"
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/quantize.h"
#include "frontend/onnx/window.h"

namespace tenon::onnx {
namespace {

// ---- Activations ----

Val GeluOf(const Val& x, const char* approximate) {
  return x ? x.formula().Emit(OpKind::kGelu, {x}, {{"approximate", std::string(approximate)}}) : x;
}

Status ImportContribGelu(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  const Formula f(c);
  return f.Result(GeluOf(f.In(0), "none"));
}

Status ImportBiasGelu(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  const Formula f(c);
  return f.Result(GeluOf(f.In(0) + f.In(1), "none"));
}

Status ImportFastGelu(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 2));
  const Formula f(c);
  return f.Result(GeluOf(f.In(1) ? f.In(0) + f.In(1) : f.In(0), "tanh"));
}

Status ImportQuickGelu(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const double alpha, c.Float("alpha", 1.702));
  const Formula f(c);
  const Val x = f.In(0), wide = Widened(x);
  return f.Result(Cast(wide * Sigmoid(wide * alpha), x.dtype()));
}

// ---- Products and convolutions ----

// [d0, d1, …, dn, k] as [d1, …, dn, d0, k].
Val FirstAxisInside(const Val& x) {
  Axes perm = AxesFrom(x, 1);
  if (x.rank() < 3) return x;
  perm.insert(perm.end() - 1, 0);
  return Transpose(x, perm);
}

Status ImportFusedMatMul(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(const double alpha, c.Float("alpha", 1));
  TN_ASSIGN_OR_RETURN(const bool trans_a, c.Bool("transA", false));
  TN_ASSIGN_OR_RETURN(const bool trans_b, c.Bool("transB", false));
  TN_ASSIGN_OR_RETURN(const bool batch_a, c.Bool("transBatchA", false));
  TN_ASSIGN_OR_RETURN(const bool batch_b, c.Bool("transBatchB", false));
  TN_ASSIGN_OR_RETURN(const Matrices m, AsMatrices(c));
  const Formula f(c);
  const Val a = f.Of(m.a), b = f.Of(m.b);
  // A vector has no axes to exchange.
  const Val y = ScaledMatMul(batch_a ? FirstAxisInside(a) : a, batch_b ? FirstAxisInside(b) : b,
                             trans_a && !m.row, trans_b && !m.column, alpha);
  TN_RETURN_IF_ERROR(f.Done());
  return SetProduct(c, m, y.id());
}

// The activation of that name ("" for none) with its numbers, those that are given.
Status SetActivated(OpContext& c, const Formula& f, const Val& y, const std::string& name,
                    const std::vector<double>& numbers) {
  const auto number = [&](size_t i, double fallback) {
    return i < numbers.size() ? numbers[i] : fallback;
  };
  if (name.empty()) return f.Result(y);
  if (name == "Relu") return f.Result(Apply(OpKind::kRelu, y));
  if (name == "Tanh") return f.Result(Tanh(y));
  if (name == "Sigmoid") return f.Result(Sigmoid(y));
  if (name == "LeakyRelu") return f.Result(Where(y < 0, y * number(0, 0.01), y));
  if (name == "Clip") {
    const double lo = number(0, -INFINITY), hi = number(1, INFINITY);
    return f.Result(f.Emit(OpKind::kClip, {y}, {{"lo", lo}, {"hi", hi}}));
  }
  if (name == "HardSigmoid") {
    return f.Result(
        f.Emit(OpKind::kHardSigmoid, {y}, {{"alpha", number(0, 0.2)}, {"beta", number(1, 0.5)}}));
  }
  return c.Error(
      "expected activation Relu, Tanh, Sigmoid, LeakyRelu, Clip or HardSigmoid, but got {}",
      graph::Quoted(name));
}

// activation(conv(x, w) + bias + z)
Status ImportFusedConv(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 4));
  TN_ASSIGN_OR_RETURN(const std::string name, c.String("activation", ""));
  TN_ASSIGN_OR_RETURN(const auto given, c.Floats("activation_params"));
  TN_ASSIGN_OR_RETURN(ConvAttrs conv, ReadConv(c));
  const Formula f(c);
  std::vector<Val> operands = {Padded(f.In(0), conv.by_call, 0), f.In(1)};
  if (c.Has(2)) operands.push_back(f.In(2));
  Val y = f.Emit(OpKind::kConv, operands, std::move(conv.attrs));
  if (c.Has(3)) y = y + f.In(3);
  return SetActivated(c, f, y, name, given.value_or(std::vector<double>()));
}

// activation(alpha a b + beta c)
Status ImportFusedGemm(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 3));
  TN_ASSIGN_OR_RETURN(const std::string name, c.String("activation", ""));
  TN_ASSIGN_OR_RETURN(const double alpha, c.Float("alpha", 1));
  TN_ASSIGN_OR_RETURN(const double beta, c.Float("beta", 1));
  TN_ASSIGN_OR_RETURN(const bool trans_a, c.Bool("transA", false));
  TN_ASSIGN_OR_RETURN(const bool trans_b, c.Bool("transB", false));
  std::vector<double> numbers;
  for (const char* key : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (!c.HasAttr(key)) break;
    TN_ASSIGN_OR_RETURN(const double number, c.Float(key, 0));
    numbers.push_back(number);
  }
  if (c.Rank(0) != 2 || c.Rank(1) != 2)
    return c.Error("expected two matrices, but got {} and {}", c.Type(0).ToString(),
                   c.Type(1).ToString());
  const Formula f(c);
  Val y = ScaledMatMul(f.In(0), f.In(1), trans_a, trans_b, alpha);
  if (c.Has(2) && beta != 0) y = y + (beta == 1 ? f.In(2) : f.In(2) * beta);
  return SetActivated(c, f, y, name, numbers);
}

// ---- Distances, axes, words ----

// Of each row of a from each of b.
Status ImportCDist(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(const std::string metric, c.String("metric", "sqeuclidean"));
  if (metric != "sqeuclidean" && metric != "euclidean")
    return c.Error("expected metric sqeuclidean or euclidean, but got {}", graph::Quoted(metric));
  if (c.Rank(0) != 2 || c.Rank(1) != 2)
    return c.Error("expected two matrices, but got {} and {}", c.Type(0).ToString(),
                   c.Type(1).ToString());
  const Formula f(c);
  const Val d = Unsqueeze(f.In(0), 1) - Unsqueeze(f.In(1), 0);
  const Val squares = Sum(d * d, {2}, false);
  return f.Result(metric == "euclidean" ? Sqrt(squares) : squares);
}

Status ImportExpandDims(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.KnownInt(1, "axis"));
  TN_ASSIGN_OR_RETURN(axis, c.NormalizeAxis(axis, c.Rank(0) + 1, "axis"));
  const Formula f(c);
  return f.Result(Unsqueeze(f.In(0), axis));
}

// Scores of words that would end a run of n words that there is already: the lowest there are. Each
// place of the sequence at which the last n - 1 words stand forbids the word behind them. A
// sequence shorter than that has places too, which forbid nothing: sizes here are those of the
// operands.
Status ImportNGramRepeatBlock(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(const int64_t n, c.Int("ngram_size", std::nullopt));
  if (c.Rank(0) != 2 || c.Rank(1) != 2 || n < 1 || n > 256) {
    return c.Error(
        "expected words [B, S] and scores [B, V], and ngram_size in 1..256, but got {}, {} "
        "and {}",
        c.Type(0).ToString(), c.Type(1).ToString(), n);
  }
  const Formula f(c);
  const Val words = f.In(0), scores = f.In(1), length = Size(words, 1);
  const Val place = f.Iota(words.dim(1));
  const auto steps_on = [&](int64_t k) {
    return Gather(words, Min(place + static_cast<double>(k), length - 1), 1);
  };
  const double behind = static_cast<double>(n - 1);
  Val forbids = Expand(place < length - behind, words.dims());
  for (int64_t k = 0; k + 1 < n; ++k) {
    const Val at = Max(length - behind + static_cast<double>(k), 0);
    forbids = forbids & Equal(steps_on(k), Gather(words, Expand(at, place.dims()), 1));
  }
  const Val lowest = Expand(f.Number(scores.dtype(), -INFINITY), words.dims());
  return f.Result(Scatter(scores, InRange(c, 0, steps_on(n - 1), scores.dim(1)),
                          Where(forbids, lowest, INFINITY), 1, "min"));
}

// ---- Normalisations of a sum ----

// What is normalised, with its moments where they are wanted.
struct Normal {
  Val y, mean, deviation;  // one over the deviation
};

// Over the last axis: as the mean square (`simple`) or the variance says. Floats of 16 bits are
// widened, and y is rounded once.
Normal NormalizedRows(const OpContext& c, const Val& x, const Val& scale, const Val& bias,
                      double epsilon, bool simple) {
  const Formula& f = x.formula();
  const Val wide = Widened(x);
  const auto widened = [&](const Val& v) { return Cast(v, wide.dtype()); };
  Normal n;
  if (!simple) n.mean = Mean(wide, {-1});
  const Val d = simple ? wide : wide - n.mean;
  n.deviation = 1 / Sqrt(Mean(d * d, {-1}) + epsilon);
  if (simple) {
    n.y = wide / Sqrt(Mean(wide * wide, {-1}) + epsilon) * widened(scale);
    if (bias) n.y = n.y + widened(bias);
  } else {
    std::vector<Val> operands = {wide, widened(scale)};
    if (bias) operands.push_back(widened(bias));
    n.y = f.Emit(OpKind::kLayerNorm, operands, {{"axis", x.rank() - 1}, {"epsilon", epsilon}});
  }
  n.y = Cast(n.y, c.Type(0).dtype);
  return n;
}

// input + skip + bias, normalised. Inputs: input, skip, gamma; beta, where a mean is taken; bias.
Status ImportSkipNorm(OpContext& c) {
  const bool simple = std::string_view(c.row.name) == "SkipSimplifiedLayerNormalization";
  TN_RETURN_IF_ERROR(c.Arity(3, simple ? 4 : 5));
  TN_ASSIGN_OR_RETURN(const double epsilon, c.Float("epsilon", 1e-12));
  if (c.Rank(0) < 2 || c.Rank(1) > c.Rank(0) || c.Rank(2) != 1) {
    return c.Error(
        "expected rows, rows to add to them and one number for each column, but got {}, {} and {}",
        c.Type(0).ToString(), c.Type(1).ToString(), c.Type(2).ToString());
  }
  const Formula f(c);
  const Val bias = f.In(simple ? 3 : 4);
  const Val input = f.In(0);
  Val sum = Widened(input) + Widened(f.In(1));
  if (bias) sum = sum + Widened(bias);
  const Normal n = NormalizedRows(c, sum, f.In(2), simple ? Val() : f.In(3), epsilon, simple);
  return f.Result({n.y, c.Wants(1) ? n.mean : Val(), c.Wants(2) ? n.deviation : Val(),
                   c.Wants(3) ? Cast(sum, input.dtype()) : Val()});
}

// Of the default domain, where ONNX Runtime puts it, and of com.microsoft.
Status ImportSimplifiedLayerNorm(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(const int64_t axis, c.AxisAttr("axis", -1, c.Rank(0)));
  TN_ASSIGN_OR_RETURN(const double epsilon, c.Float("epsilon", 1e-5));
  TN_RETURN_IF_ERROR(c.Int("stash_type", 1));
  const Formula f(c);
  const Val x = Widened(f.In(0)), deviation = Sqrt(Mean(x * x, AxesFrom(x, axis)) + epsilon);
  const Val y = Cast(x / deviation * Cast(f.In(1), x.dtype()), c.Type(1).dtype);
  return f.Result({y, c.Wants(1) ? 1 / deviation : Val()});
}

// The sum of the rows of three tables that a token's word, place and segment say, normalised.
// Of QEmbedLayerNormalization tables and factors are bytes, each with a scale (inputs 8 to 12) and
// a zero point (13 to 17).
Status ImportEmbedLayerNorm(OpContext& c) {
  const bool quantised = std::string_view(c.row.name) == "QEmbedLayerNormalization";
  TN_RETURN_IF_ERROR(quantised ? c.Arity(18, 18, {1, 4, 7, 10, 15}) : c.Arity(7, 9, {1, 4}));
  TN_ASSIGN_OR_RETURN(const double epsilon, c.Float("epsilon", 1e-12));
  const int64_t has_mask = c.Has(7) && !quantised ? 1 : 0;
  TN_ASSIGN_OR_RETURN(const int64_t mask_type,
                      quantised ? Expected<int64_t>(1) : c.Int("mask_index_type", has_mask));
  const Formula f(c);
  const auto numbers = [&](size_t i, const Val& v) {
    if (!quantised) return v;
    return Dequantized(v, Reshape(f.In(i + 6), {}), Reshape(f.In(i + 11), {}));
  };
  const Val words = f.In(0), mask = f.In(7);
  if (words.rank() != 2 || c.Has(1) != c.Has(4)) {
    return c.Error("expected words [B, S], and segments with their table or neither, but got {}",
                   c.Type(0).ToString());
  }
  const bool placed = !quantised && c.Has(8);
  const Val places = placed ? f.In(8) : Unsqueeze(f.Iota(words.dim(1)), 0);
  if (!placed) TN_RETURN_IF_ERROR(RequireRows(c, 3, words.dim(1)));
  const auto rows = [&](size_t table, size_t i, const Val& at) {
    const bool given = i == 8 ? placed : c.Has(i);
    const Val row = Gather(f.In(table), given ? InRange(c, i, at, f.In(table).dim(0)) : at, 0);
    return Widened(numbers(table, row));
  };
  Val sum = rows(2, 0, words) + rows(3, 8, places);
  if (c.Has(1)) sum = sum + rows(4, 1, f.In(1));
  const DType type = quantised ? sum.dtype() : c.Type(2).dtype;
  const Val factors = Cast(numbers(5, f.In(5)), sum.dtype()),
            shifts = Cast(numbers(6, f.In(6)), sum.dtype());
  const Val y = Cast(f.Emit(OpKind::kLayerNorm, {sum, factors, shifts},
                            {{"axis", int64_t{2}}, {"epsilon", epsilon}}),
                     type);
  const DType i32 = DType::Int(32);
  Val counts;
  if (c.Wants(1)) {
    counts = mask && mask_type != 0 ? Sum(Cast(mask > 0, i32), {1}, false)
                                    : Expand(f.Number(i32, 0), {words.dim(0)});
  }
  return f.Result({y, counts, c.Wants(2) ? Cast(sum, type) : Val()});
}

constexpr char kContrib[] = "com.microsoft";
constexpr OpRow kRows[] = {
    {.name = "Gelu", .since = 1, .import = ImportContribGelu, .domain = kContrib},
    {.name = "BiasGelu", .since = 1, .import = ImportBiasGelu, .domain = kContrib},
    {.name = "FastGelu", .since = 1, .import = ImportFastGelu, .domain = kContrib},
    {.name = "QuickGelu", .since = 1, .import = ImportQuickGelu, .domain = kContrib},
    {.name = "FusedMatMul", .since = 1, .import = ImportFusedMatMul, .domain = kContrib},
    {.name = "FusedConv", .since = 1, .import = ImportFusedConv, .domain = kContrib},
    {.name = "FusedGemm", .since = 1, .import = ImportFusedGemm, .domain = kContrib},
    {.name = "CDist", .since = 1, .import = ImportCDist, .domain = kContrib},
    {.name = "ExpandDims", .since = 1, .import = ImportExpandDims, .domain = kContrib},
    {.name = "NGramRepeatBlock", .since = 1, .import = ImportNGramRepeatBlock, .domain = kContrib},
    {.name = "SkipLayerNormalization", .since = 1, .import = ImportSkipNorm, .domain = kContrib},
    {.name = "SkipSimplifiedLayerNormalization",
     .since = 1,
     .import = ImportSkipNorm,
     .domain = kContrib},
    {.name = "SimplifiedLayerNormalization",
     .since = 1,
     .import = ImportSimplifiedLayerNorm,
     .domain = kContrib},
    {.name = "SimplifiedLayerNormalization", .since = 1, .import = ImportSimplifiedLayerNorm},
    {.name = "EmbedLayerNormalization",
     .since = 1,
     .import = ImportEmbedLayerNorm,
     .domain = kContrib},
    {.name = "QEmbedLayerNormalization",
     .since = 1,
     .import = ImportEmbedLayerNorm,
     .domain = kContrib},
};

}  // namespace

std::span<const OpRow> ContribRows() { return kRows; }

}  // namespace tenon::onnx

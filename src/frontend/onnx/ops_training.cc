// Losses, and the steps of optimisers.
#include "frontend/onnx/formula.h"
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

// ---- Losses of classes: one label for each [N, d…] of scores [N, C, d…]. ----

struct LossAttrs {
  std::string reduction;
  std::optional<int64_t> ignored;
};

Expected<LossAttrs> ReadLoss(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 3));
  LossAttrs attrs;
  TN_ASSIGN_OR_RETURN(attrs.reduction, c.String("reduction", "mean"));
  if (attrs.reduction != "none" && attrs.reduction != "sum" && attrs.reduction != "mean") {
    return c.Error("expected reduction none, sum or mean, but got {}",
                   graph::Quoted(attrs.reduction));
  }
  if (c.HasAttr("ignore_index")) {
    TN_ASSIGN_OR_RETURN(attrs.ignored, c.Int("ignore_index", std::nullopt));
  }
  if (c.Rank(0) < 2 || c.Rank(1) != c.Rank(0) - 1) {
    return c.Error("expected scores [N, C, d…] and labels [N, d…], but got {} and {}",
                   c.Type(0).ToString(), c.Type(1).ToString());
  }
  if (c.Has(2) && c.Rank(2) != 1)
    return c.Error("expected one weight per class, but got {}", c.Type(2).ToString());
  return attrs;
}

// -weight[label] · log_prob[label], 0 where the label is the ignored one; reduced. A mean is by
// weights, of which an ignored label has none.
Val Loss(const OpContext& c, const Formula& f, const Val& log_prob, const LossAttrs& attrs) {
  const Val given = f.In(1);
  const Val counted =
      attrs.ignored
          ? Where(Equal(given, f.Number(given.dtype(), static_cast<double>(*attrs.ignored))), 0,
                  given)
          : given;
  const Val labels = InRange(c, 1, given, counted, log_prob.dim(1));
  const Val picked = Squeeze(GatherElements(log_prob, Unsqueeze(labels, 1), 1), 1);
  Val weight = f.In(2) ? Cast(Gather(f.In(2), labels, 0), log_prob.dtype()) : Val();
  if (attrs.ignored) {
    const Val one = weight ? weight : Where(labels < 0, 1, f.Number(log_prob.dtype(), 1));
    weight =
        Where(Equal(labels, f.Number(labels.dtype(), static_cast<double>(*attrs.ignored))), 0, one);
  }
  const Val loss = weight ? -(weight * picked) : -picked;
  if (attrs.reduction == "none") return loss;
  const Axes all = AxesFrom(loss, 0);
  const Val sum = Sum(loss, all, false);
  if (attrs.reduction == "sum") return sum;
  return weight ? sum / Sum(weight, all, false) : Mean(loss, all, false);
}

Status ImportNllLoss(OpContext& c) {
  TN_ASSIGN_OR_RETURN(const LossAttrs attrs, ReadLoss(c));
  const Formula f(c);
  return f.Result(Cast(Loss(c, f, Widened(f.In(0)), attrs), c.Type(0).dtype));
}

Status ImportCrossEntropyLoss(OpContext& c) {
  TN_ASSIGN_OR_RETURN(const LossAttrs attrs, ReadLoss(c));
  const Formula f(c);
  const Val log_prob = LogSoftmax(Widened(f.In(0)), 1);
  const DType type = c.Type(0).dtype;
  return f.Result({Cast(Loss(c, f, log_prob, attrs), type), Cast(log_prob, type)});
}

// ---- Optimisers. Inputs: rate, count of updates so far; then n tensors of each kind. ----

// How many tensors are optimised, where each has `kinds` inputs.
Expected<size_t> CountTensors(OpContext& c, size_t kinds) {
  const size_t given = c.num_inputs();
  if (given < 2 + kinds || (given - 2) % kinds != 0) {
    return c.Error("expected a rate, a count and {} inputs for each tensor, but got {} inputs",
                   kinds, given);
  }
  TN_RETURN_IF_ERROR(c.Arity(given, static_cast<int>(given)));
  for (size_t i = 0; i < 2; ++i) {
    if (c.Rank(i) != 0) return c.Error("expected a scalar, but got {}", c.Type(i).ToString());
  }
  return (given - 2) / kinds;
}

// `step` makes the outputs of one tensor of its inputs, one of each kind.
using Step = std::function<std::vector<Val>(const std::vector<Val>& in)>;
Status ForEachTensor(OpContext& c, const Formula& f, size_t count, size_t kinds, const Step& step) {
  for (size_t t = 0; t < count; ++t) {
    std::vector<Val> in;
    for (size_t k = 0; k < kinds; ++k) in.push_back(f.In(2 + k * count + t));
    const std::vector<Val> out = step(in);
    TN_RETURN_IF_ERROR(f.Done());
    for (size_t k = 0; k < out.size(); ++k)
      TN_RETURN_IF_ERROR(c.SetOutput(k * count + t, out[k].id()));
  }
  return Ok();
}

Status ImportMomentum(OpContext& c) {
  TN_ASSIGN_OR_RETURN(const double alpha, c.Float("alpha", 0));
  TN_ASSIGN_OR_RETURN(const double beta, c.Float("beta", 0));
  TN_ASSIGN_OR_RETURN(const double decay, c.Float("norm_coefficient", 0));
  TN_ASSIGN_OR_RETURN(const std::string mode, c.String("mode", ""));
  if (mode != "standard" && mode != "nesterov")
    return c.Error("expected mode standard or nesterov, but got {}", graph::Quoted(mode));
  TN_ASSIGN_OR_RETURN(const size_t count, CountTensors(c, 3));
  const Formula f(c);
  // The first gradient counts whole.
  const Val fresh = Where(f.In(1) > 0, f.Number(DType::Float(64), beta), 1);
  return ForEachTensor(c, f, count, 3, [&](const std::vector<Val>& in) -> std::vector<Val> {
    const Val &x = in[0], &v = in[2];
    const Val gradient = x * decay + in[1], rate = Cast(f.In(0), x.dtype());
    const Val next = v * alpha + gradient * Cast(fresh, x.dtype());
    return {x - rate * (mode == "standard" ? next : gradient + next * alpha), next};
  });
}

Status ImportAdagrad(OpContext& c) {
  TN_ASSIGN_OR_RETURN(const double rate_decay, c.Float("decay_factor", 0));
  TN_ASSIGN_OR_RETURN(const double epsilon, c.Float("epsilon", 1e-6));
  TN_ASSIGN_OR_RETURN(const double decay, c.Float("norm_coefficient", 0));
  TN_ASSIGN_OR_RETURN(const size_t count, CountTensors(c, 3));
  const Formula f(c);
  return ForEachTensor(c, f, count, 3, [&](const std::vector<Val>& in) -> std::vector<Val> {
    const Val& x = in[0];
    const Val rate = Cast(f.In(0), x.dtype()) / (Cast(f.In(1), x.dtype()) * rate_decay + 1);
    const Val gradient = x * decay + in[1];
    const Val squares = in[2] + gradient * gradient;
    return {x - rate * gradient / (Sqrt(squares) + epsilon), squares};
  });
}

Status ImportAdam(OpContext& c) {
  TN_ASSIGN_OR_RETURN(const double alpha, c.Float("alpha", 0.9));
  TN_ASSIGN_OR_RETURN(const double beta, c.Float("beta", 0.999));
  TN_ASSIGN_OR_RETURN(const double epsilon, c.Float("epsilon", 1e-6));
  TN_ASSIGN_OR_RETURN(const double decay, c.Float("norm_coefficient", 0));
  TN_ASSIGN_OR_RETURN(const double post_decay, c.Float("norm_coefficient_post", 0));
  TN_ASSIGN_OR_RETURN(const size_t count, CountTensors(c, 4));
  const Formula f(c);
  return ForEachTensor(c, f, count, 4, [&](const std::vector<Val>& in) -> std::vector<Val> {
    const Val& x = in[0];
    const Val gradient = x * decay + in[1];
    const Val first = in[2] * alpha + gradient * (1 - alpha);
    const Val second = in[3] * beta + gradient * gradient * (1 - beta);
    const Val rate = Cast(f.In(0), x.dtype()), steps = Cast(f.In(1), x.dtype());
    const Val grown = rate * Sqrt(1 - Pow(f.Number(x.dtype(), beta), steps)) /
                      (1 - Pow(f.Number(x.dtype(), alpha), steps));
    const Val used = Where(f.In(1) > 0, grown, rate);
    const Val next = x - used * first / (Sqrt(second) + epsilon);
    return {next * (1 - post_decay), first, second};
  });
}

constexpr char kPreview[] = "ai.onnx.preview.training";
constexpr OpRow kRows[] = {
    {"NegativeLogLikelihoodLoss", 12, ImportNllLoss},
    {"SoftmaxCrossEntropyLoss", 12, ImportCrossEntropyLoss},
    {.name = "Momentum", .since = 1, .import = ImportMomentum, .domain = kPreview},
    {.name = "Adagrad", .since = 1, .import = ImportAdagrad, .domain = kPreview},
    {.name = "Adam", .since = 1, .import = ImportAdam, .domain = kPreview},
};

}  // namespace

std::span<const OpRow> TrainingRows() { return kRows; }

}  // namespace tenon::onnx

// Linear models, and what classifiers make of scores.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/ops_ml.h"

namespace tenon::onnx {

Val RowsOf(const Val& x) { return x.rank() == 1 ? Unsqueeze(x, 0) : x; }

Expected<Val> PostTransform(OpContext& c, const Val& scores, const std::string& name) {
  if (name == "NONE") return scores;
  if (name == "SOFTMAX") return Softmax(scores, -1);
  if (name == "LOGISTIC") return Sigmoid(scores);
  if (name == "SOFTMAX_ZERO") {  // of what is not 0; that stays
    const Val there = Not(Equal(scores, 0));
    const Val e = Where(there, Exp(scores - Reduce("max", scores, {-1})), 0);
    const Val sum = Sum(e, {-1});
    return e / Where(Equal(sum, 0), 1, sum);
  }
  if (name == "PROBIT") {  // sqrt(2) erfinv(2 x - 1), by Winitzki's formula
    constexpr double kA = 0.147, kPi = 3.14159265358979323846;
    const Val x = scores * 2 - 1;
    const Val log = Log((1 - x) * (1 + x));
    const Val v = log * 0.5 + 2 / (kPi * kA);
    const Val root = Sqrt(Sqrt(v * v - log * (1 / kA)) - v);
    return Where(x < 0, -root, root) * std::sqrt(2.0);
  }
  return c.Error(
      "expected post_transform to be NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT, "
      "but got '{}'",
      name);
}

Expected<Classifier> ReadClassifier(OpContext& c, const char* ints) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  c.Narrow(0);  // strings are among the outputs only
  TN_ASSIGN_OR_RETURN(const auto numbers, c.Ints(ints));
  TN_ASSIGN_OR_RETURN(const auto texts, c.Ints("classlabels_strings"));
  TN_ASSIGN_OR_RETURN(const std::string post_transform, c.String("post_transform", "NONE"));
  const bool has_numbers = numbers && !numbers->empty(), has_texts = texts && !texts->empty();
  if (has_numbers == has_texts) return c.Error("expected either {} or classlabels_strings", ints);
  return Classifier{{has_texts ? *texts : *numbers, has_texts}, post_transform};
}

Status SetClasses(OpContext& c, const ClassLabels& labels, const Val& places, const Val& scores) {
  const Formula& f = scores.formula();
  const Val label = Gather(f.Ints(labels.list), places, 0);
  TN_RETURN_IF_ERROR(f.Done());
  TN_RETURN_IF_ERROR(c.SetOutput(0, label.id()));
  if (labels.are_strings) c.SetNarrow(0, NarrowTypeOf(static_cast<int32_t>(ElemType::kString)));
  return c.Wants(1) ? c.SetOutput(1, scores.id()) : Ok();
}

Status SetBestClass(OpContext& c, const Classifier& classifier, const Val& scores) {
  TN_ASSIGN_OR_RETURN(const Val out, PostTransform(c, scores, classifier.post_transform));
  return SetClasses(c, classifier.labels, Squeeze(ArgReduce("max", scores, -1), -1), out);
}

Status SetTwoClasses(OpContext& c, const Classifier& classifier, const Val& score, bool positive) {
  const std::string& post_transform = classifier.post_transform;
  const Val second = Squeeze(score, -1) > (positive ? 0.5 : 0.0);
  const Val both = positive && post_transform == "NONE" ? Concat({1 - score, score}, -1)
                                                        : Concat({-score, score}, -1);
  TN_ASSIGN_OR_RETURN(const Val scores, PostTransform(c, both, post_transform));
  return SetClasses(c, classifier.labels, Cast(second, DType::Int(64)), scores);
}

namespace {

// x coefficients^T + intercepts: [rows, count] in f32. Of more coefficients than x has features for
// the first ones count, as in ONNX Runtime: converters wrote such files (its own example is one).
Expected<Val> LinearScores(OpContext& c, const Formula& f, int64_t count) {
  TN_ASSIGN_OR_RETURN(const auto coefficients, c.Floats("coefficients"));
  TN_ASSIGN_OR_RETURN(const auto intercepts, c.Floats("intercepts"));
  if (!coefficients || count < 1 || coefficients->size() % static_cast<size_t>(count) != 0)
    return c.Error("expected coefficients for each of {} results", count);
  if (intercepts && !intercepts->empty() && intercepts->size() != static_cast<size_t>(count))
    return c.Error("expected {} intercepts, but got {}", count, intercepts->size());
  const Val x = Cast(RowsOf(f.In(0)), DType::Float(32));
  const auto most = static_cast<int64_t>(coefficients->size()) / count;
  const int64_t features = std::min(AsInt(x.dims().back()).value_or(most), most);
  const std::vector<double> first(coefficients->begin(), coefficients->begin() + count * features);
  const Val w = Reshape(f.Floats(first), {IndexConst(count), IndexConst(features)});
  const Val product = MatMul(x, w, false, true);
  return intercepts && !intercepts->empty() ? product + f.Floats(*intercepts) : product;
}

Status ImportLinearRegressor(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const int64_t targets, c.Int("targets", 1));
  TN_ASSIGN_OR_RETURN(const std::string post_transform, c.String("post_transform", "NONE"));
  const Formula f(c);
  TN_ASSIGN_OR_RETURN(const Val scores, LinearScores(c, f, targets));
  TN_ASSIGN_OR_RETURN(const Val out, PostTransform(c, scores, post_transform));
  return f.Result(out);
}

Status ImportLinearClassifier(OpContext& c) {
  TN_ASSIGN_OR_RETURN(const Classifier classifier, ReadClassifier(c, "classlabels_ints"));
  TN_RETURN_IF_ERROR(c.Int("multi_class", 0));
  TN_ASSIGN_OR_RETURN(const auto intercepts, c.Floats("intercepts"));
  const auto classes = static_cast<int64_t>(classifier.labels.list.size());
  const bool single = classes == 2 && intercepts && intercepts->size() == 1;
  const Formula f(c);
  TN_ASSIGN_OR_RETURN(const Val scores, LinearScores(c, f, single ? 1 : classes));
  return single ? SetTwoClasses(c, classifier, scores, false) : SetBestClass(c, classifier, scores);
}

constexpr OpRow kRows[] = {
    {.name = "LinearRegressor", .since = 1, .import = ImportLinearRegressor, .domain = kMl},
    {.name = "LinearClassifier", .since = 1, .import = ImportLinearClassifier, .domain = kMl},
};

}  // namespace

std::span<const OpRow> MlLinearRows() { return kRows; }

}  // namespace tenon::onnx

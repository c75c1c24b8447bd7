// Operators of the domain ai.onnx.ml.
#include "frontend/onnx/ops_ml.h"

#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

// 1 where an element is above the threshold.
Status ImportBinarizer(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const double threshold, c.Float("threshold", 0));
  const Formula f(c);
  const Val x = f.In(0);
  return f.Result(Cast(x > threshold, x.dtype()));
}

// Picks along the last axis; a vector is one row.
Status ImportArrayFeatureExtractor(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  if (c.Rank(0) < 1) return c.Error("expected rows, but got {}", c.Type(0).ToString());
  const Formula f(c);
  const Val x = c.Rank(0) == 1 ? Unsqueeze(f.In(0), 0) : f.In(0);
  const Val at = IndicesInto(c, 1, f.In(1), 0, -1);
  return f.Result(Gather(x, Reshape(at, {graph::DimProduct(c.Dims(1))}), -1));
}

// x · weight + the offset, a number for all columns or one for each.
Status ImportScaler(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const auto offset, c.Floats("offset"));
  TN_ASSIGN_OR_RETURN(const auto scale, c.Floats("scale"));
  if (!offset || !scale) return c.Error("expected the attributes offset and scale");
  const Formula f(c);
  return f.Result((Cast(f.In(0), DType::Float(32)) - f.Floats(*offset)) * f.Floats(*scale));
}

constexpr OpRow kRows[] = {
    {.name = "Binarizer", .since = 1, .import = ImportBinarizer, .domain = kMl},
    {.name = "ArrayFeatureExtractor",
     .since = 1,
     .import = ImportArrayFeatureExtractor,
     .domain = kMl},
    {.name = "Scaler", .since = 1, .import = ImportScaler, .domain = kMl},
};

}  // namespace

std::span<const OpRow> MlRows() {
  static const std::vector<OpRow> kAll = [] {
    std::vector<OpRow> all(std::begin(kRows), std::end(kRows));
    for (std::span<const OpRow> rows : {MlEncoderRows(), MlLinearRows(), MlSvmRows(), MlTreeRows()})
      all.insert(all.end(), rows.begin(), rows.end());
    return all;
  }();
  return kAll;
}

}  // namespace tenon::onnx

// Operators of the domain ai.onnx.ml by family, and what they share.
//
// Strings are their numbers here: in a part of a program, attributes of strings are lists of
// integers (import_program.cc), and so a model of strings is computed like one of integers.
#pragma once

#include <span>
#include <string>

#include "frontend/onnx/formula.h"
#include "frontend/onnx/narrow.h"
#include "frontend/onnx/op_context.h"

namespace tenon::onnx {

inline constexpr char kMl[] = "ai.onnx.ml";

std::span<const OpRow> MlEncoderRows();
std::span<const OpRow> MlLinearRows();
std::span<const OpRow> MlSvmRows();
std::span<const OpRow> MlTreeRows();

/// Scores as attribute post_transform says: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT. A
/// score's classes are the last axis.
Expected<Val> PostTransform(OpContext& c, const Val& scores, const std::string& name);

/// The labels of classes, from one of two attributes: a list of i64, which are strings or not.
struct ClassLabels {
  std::vector<int64_t> list;
  bool are_strings = false;
};
/// What classifiers have in common, beside their one input.
struct Classifier {
  ClassLabels labels;
  std::string post_transform;
};
/// `ints`: the attribute of labels that are integers.
Expected<Classifier> ReadClassifier(OpContext& c, const char* ints);
/// Sets output 0 to the labels of the largest scores, and output 1 to the scores, transformed.
Status SetBestClass(OpContext& c, const Classifier& classifier, const Val& scores);
/// Sets output 0 to the labels at `places`, and output 1 to the scores.
Status SetClasses(OpContext& c, const ClassLabels& labels, const Val& places, const Val& scores);

/// Labels and scores of two classes, of which one has a score [rows, 1]: above the limit it is the
/// second. `positive`: scores are probabilities already, and the limit is a half.
Status SetTwoClasses(OpContext& c, const Classifier& classifier, const Val& score, bool positive);

/// Rows of features: a vector is one row.
Val RowsOf(const Val& x);

}  // namespace tenon::onnx

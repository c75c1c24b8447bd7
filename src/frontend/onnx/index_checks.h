// Inputs that say where an operator reads or writes: a call in which one of them points elsewhere
// fails, and says at which node, by which tensor and value. What is known while compiling is
// checked then, and what is certain not at all.
#pragma once

#include "frontend/onnx/formula.h"

namespace tenon::onnx {

/// `v`, which is input `i` of the node or was made of it, where every element is an index into an
/// axis of input `of`, in -size..size-1.
Val IndicesInto(const OpContext& c, size_t i, const Val& v, size_t of, int64_t axis);
/// The same of `v` whose last axis has indices into the axes from `first` on.
Val CoordinatesIn(const OpContext& c, size_t i, const Val& v, size_t of, int64_t first);
/// `axes`, which are input `i` or were made of it, where each is an axis of `rank`, in
/// -rank..rank-1; with `once`, where none is there twice, in either way to count.
Val AxesOf(const OpContext& c, size_t i, const Val& axes, int64_t rank, bool once = false);
/// `v` where none of the flags, which came of input `i`, is set: "expected the number of zeros in
/// 'steps' …" where `what` they count are zeros.
Val NoneOf(const OpContext& c, size_t i, const Val& v, const Val& flags, const char* what);
/// `v` where every element of `checked`, which came of input `i`, is in 0..end-1.
Val InRange(const OpContext& c, size_t i, const Val& v, const Val& checked, const Expr& end);
inline Val InRange(const OpContext& c, size_t i, const Val& v, const Expr& end) {
  return InRange(c, i, v, v, end);
}
/// That input `i` has at least that many rows: known, or a fact that is checked at the call.
Status RequireRows(OpContext& c, size_t i, const Expr& count);

}  // namespace tenon::onnx

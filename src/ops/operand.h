// What an operator's definition reads: values as functions from indices to elements.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"
#include "te/te.h"

namespace tenon::ops {

/// A value as a definition sees it: a type and the element at logical indices. Where nothing is
/// stored, `at` computes the element in place, which is how fused operators reach their operands.
struct Operand {
  DType dtype;
  std::vector<Expr> dims;
  std::function<Expr(const te::Indices&)> at;

  int rank() const { return static_cast<int>(dims.size()); }
  /// The dim as a number; it must be one.
  int64_t dim(int i) const;
};

/// An operand that reads a te tensor (of the operand's logical shape).
Operand Read(const te::Tensor& tensor);
/// The operand's elements converted to a type.
Operand As(DType type, Operand operand);
/// The same operand, evaluating each set of indices once, so that a value used twice stays one
/// expression.
Operand Memo(Operand operand);

/// Where an axis of size `own` is read for index `i` of a broadcast result's axis of size `dim`: an
/// axis of size 1 at 0. Whether an open size is 1 the call decides: the index has a stride of 0
/// or 1.
Expr BroadcastIndex(const Expr& own, const Expr& i, const Expr& dim);
/// The weight e^x of a score that is x from the largest, in f32 or f64: 0 where that would be no
/// normal number. Many processors take a hundred times as long with numbers that are not.
Expr WeightOf(const Expr& x);
/// What a row of `count` weights is divided by: their sum, or 1 where there are none.
Expr TotalOf(const Expr& sum, const Expr& count);
/// The element of `x` where the indices of a broadcast result of the given dims point,
/// right-aligned.
Expr BroadcastAt(const Operand& x, const te::Indices& out, const std::vector<Expr>& dims);

/// Row-major linear index of `indices` in `dims`, and back.
Expr Linearize(const te::Indices& indices, const std::vector<Expr>& dims);
te::Indices Delinearize(Expr linear, const std::vector<Expr>& dims);
/// One list of indices behind another.
te::Indices Behind(te::Indices first, const te::Indices& last);

}  // namespace tenon::ops

// Sizes, axes and positions that come with the call: what an operator's inputs say at run time
// where the specification's own examples give constants.
//
// A size becomes a dim that a node defines (ops.def, `dim`); so the rest of the compiler knows
// nothing of it. Axes become a list with an entry for each axis of the tensor they are about, and
// what depends on them is computed for both cases, element by element. Positions are indices of a
// gather.
#pragma once

#include "frontend/onnx/formula.h"

namespace tenon::onnx {

/// The value with these dims: taken as facts, checked at the call, where its own are open; kNoValue
/// where they differ.
Expected<ValueId> Conform(Builder& b, ValueId v, Dims dims, const std::string& name);
/// The same of a formula's value, which fails where they differ.
Val Conformed(const Val& x, const Dims& dims);

/// The value itself, which broadcasts to `dims` and makes no axis of these longer: a fact of open
/// sizes, and a failure of others that do not fit.
Val Beside(const Val& x, const Dims& dims);

/// The shape of a tensor as a list of i64.
Val ShapeOf(const Val& x);
/// Element `i` of a list (or of a tensor of one element) as a scalar, followed back to where it
/// comes from: what a Concat is made of is known one by one.
Val ElementOf(const Val& list, int64_t i);
/// A scalar of integers as a size: an expression where it is known, else a new dim. With `most`,
/// one whose scalar takes much to compute is found while the call runs.
Expr SizeOf(const Val& scalar, const Expr& most = nullptr);
/// A size of at least 0 as a scalar of i64.
Val NumberOf(const Formula& f, const Expr& size);
/// Each element of a list of known length as a size.
Dims SizesIn(const Val& list);
/// Sizes that input `i` of a node gives: `what` they are, and how many there must be where the
/// input does not say it.
Expected<Elements> SizesOf(OpContext& c, size_t i, const char* what,
                           std::optional<int64_t> count = std::nullopt);

/// Axes as the specification has them (negative ones count from the end of `rank`): bools, for
/// entry a of the list and each axis r whether a is r.
Val AxisMatches(const Val& axes, int64_t rank);
/// The same as a list of bools, one for each axis.
Val IsAmong(const Val& axes, int64_t rank);
/// For each axis of `rank` the entry of `list` that stands at its place in `axes`, or `otherwise`.
/// Without axes the entries are those of the first axes.
Val PerAxis(const Val& list, const Val& axes, int64_t rank, double otherwise);
/// `size` elements of an axis from position `from` on; `otherwise` (a scalar) where there are none.
Val Cut(const Val& x, int64_t axis, const Val& from, const Expr& size, const Val& otherwise);
Val Cut(const Val& x, int64_t axis, const Val& from, const Expr& size, double otherwise = 0);
/// The entries of a list whose flag is not set, in order; there are `left` of them.
Val Without(const Val& list, const Val& flags, int64_t left);

/// Whether one of the values has, or tells, a size that nodes of the graph find (`dim`).
bool HaveFoundSizes(const Builder& b, std::span<const ValueId> values);

}  // namespace tenon::onnx

// Arithmetic on dims: index expressions that are kept small and simplified. Constants fold and
// saturate at ±2^62, which every limit rejects, so hostile sizes cannot overflow.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arith/analyzer.h"
#include "ir/expr.h"

namespace tenon::graph {

Expr DimAdd(const Expr& a, const Expr& b);
Expr DimSub(const Expr& a, const Expr& b);
Expr DimMul(const Expr& a, const Expr& b);
/// By a b that is 0, a itself: there is a size only where a is 0, too.
Expr DimFloorDiv(const Expr& a, const Expr& b);  // b >= 0
Expr DimCeilDiv(const Expr& a, const Expr& b);   // b > 0
Expr DimMin(const Expr& a, const Expr& b);
Expr DimMax(const Expr& a, const Expr& b);
Expr SimplifyDim(const Expr& e);
/// 1 for none.
Expr DimProduct(std::span<const Expr> dims);
/// Number of elements where all dims are numbers; saturates.
std::optional<int64_t> StaticCount(std::span<const Expr> dims);

/// The one where the condition holds, else the other; written so that it is not taken for the size
/// of two that broadcast (BroadcastSizes), of which more is known than the choice says.
Expr DimChoice(const Expr& condition, const Expr& on_true, const Expr& on_false);

/// An axis of two tensors that broadcast as NumPy's do.
struct BroadcastAxis {
  Expr size;       // of the result: that of the two which is not 1; null where no call fits
  Expr condition;  // what must hold of the two, as a bool; null where nothing need be checked
};
BroadcastAxis BroadcastSizes(const Expr& a, const Expr& b);
/// Whether an axis of this size is 1, for some values of the symbolic dims, where one of size
/// `other` beside it is not, as far as can be shown.
bool MayBroadcast(const Expr& size, const Expr& other);

/// Provably equal / different for all values of the symbolic dims.
bool ProveEqual(const Expr& a, const Expr& b);
bool ProveDifferent(const Expr& a, const Expr& b);
/// Bounds of an expression over symbolic dims (each at least 1, or 0 where it is a count).
Interval DimRange(const Expr& e);

/// "n * 4 + 1".
std::string DimText(const Expr& e);
/// "[1, n * 4]".
std::string DimsText(std::span<const Expr> dims);
/// Number of operators and leaves, counting shared ones each time, but no further than `limit` + 1.
int ExprSize(const Expr& e, int limit);

}  // namespace tenon::graph

// Boxes of elements: what indices take while loops run.
#pragma once

#include <optional>
#include <vector>

#include "arith/injective.h"
#include "loop/stmt.h"

namespace tenon {

/// A closed box: one interval per dimension; a null side is unbounded.
using Box = std::vector<ExprInterval>;

/// The intervals of the loops' variables, each in terms of what is outside of all of them. Loops
/// come outermost first.
IntervalMap DomainOf(const std::vector<const For*>& loops, Analyzer* analyzer);

/// The box of which first[d] + [0, extents[d]), over all dimensions d, touch every point, and
/// nothing else, while the loops run where the guards (in terms of loops) hold; nothing where there
/// are holes, or it is not known. The analyzer knows the loops' ranges.
std::optional<Box> FilledBox(const std::vector<Expr>& first, const std::vector<Expr>& extents,
                             const std::vector<const For*>& loops, std::vector<Expr> guards,
                             Analyzer* analyzer);

/// An element somewhere in the box, as what is known of it: a sum for each dimension that has an
/// end.
std::vector<KnownSum> SumsOf(const Box& box, Analyzer* analyzer);

/// The interval around both.
ExprInterval Union(const ExprInterval& a, const ExprInterval& b, Analyzer* analyzer);
Box Union(const Box& a, const Box& b, Analyzer* analyzer);
/// True when `inner` is provably inside `outer`.
bool Contains(const ExprInterval& outer, const ExprInterval& inner, Analyzer* analyzer);
bool Contains(const Box& outer, const Box& inner, Analyzer* analyzer);
/// max - min + 1, simplified; null when unbounded.
Expr Length(const ExprInterval& interval, Analyzer* analyzer);
/// The interval itself, or a larger one of constant length where one is found by taking single arms
/// of the minima and maxima that its ends are made of (the shortest such).
ExprInterval RelaxToConstantLength(const ExprInterval& interval, Analyzer* analyzer);

/// The condition lo <= e < lo + extent less the halves that always hold; null when both do.
Expr BoundsGuard(const Expr& e, const Expr& lo, const Expr& extent, Analyzer* analyzer);

}  // namespace tenon

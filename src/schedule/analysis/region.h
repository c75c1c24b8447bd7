// Which part of a buffer a block touches while some of the loops around it run.
#pragma once

#include <optional>
#include <vector>

#include "arith/injective.h"
#include "schedule/analysis/body.h"

namespace tenon::primitive {

/// A closed box: one interval per dimension; a null side is unbounded.
using Box = std::vector<ExprInterval>;

/// The intervals of the loops' variables, each in terms of what is outside of all of them. Loops
/// come outermost first.
IntervalMap DomainOf(const std::vector<const For*>& loops, Analyzer* analyzer);

/// What `region`, declared by `block`, covers while the loops of `domain` run: in terms of the
/// other loops.
Box TouchedBox(const Region& region, const Block& block, const IntervalMap& domain,
               Analyzer* analyzer);

/// The same while `loops` run, where the block runs at all: its guards count.
Box TouchedBox(const Region& region, const Block& block, const std::vector<const For*>& loops,
               Analyzer* analyzer);

/// What it covers over the whole domain of the block.
Box DomainBox(const Region& region, const Block& block, Analyzer* analyzer);

/// An element somewhere in the box, as what is known of it: a sum for each dimension that has an
/// end.
std::vector<KnownSum> SumsOf(const Box& box, Analyzer* analyzer);

/// True when every point of that box is really touched while the loops run (guards aside): no
/// strides, no diagonals.
bool FillsItsBox(const Region& region, const Block& block, const std::vector<const For*>& loops,
                 Analyzer* analyzer);

/// The box of which every point is touched, and nothing else, while the loops run where the guards
/// (in terms of loops) hold; nothing where there are holes, or it is not known.
std::optional<Box> FilledBox(const Region& region, const Block& block,
                             const std::vector<const For*>& loops, std::vector<Expr> guards,
                             Analyzer* analyzer);

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
/// The conjuncts of the block's `where` that are decided outside its own loops: those around it
/// that are not in `path`.
std::vector<Expr> GuardsAround(const Place& place, const std::vector<Stmt>& path);
/// The conjuncts of the block's `where`, in terms of loops, that say more than that its iteration
/// variables are in their domains, given some conditions.
std::vector<Expr> GuardsBesideDomain(const Place& block, const PrimFunc& func,
                                     const std::vector<Expr>& given = {});
/// True when there are none.
bool GuardsOnlyDomain(const Place& block, const PrimFunc& func,
                      const std::vector<Expr>& given = {});

/// Wherever the block runs, the condition over loops around it holds.
bool HoldsWhereRuns(const Place& block, const PrimFunc& func, const Expr& condition);

}  // namespace tenon::primitive

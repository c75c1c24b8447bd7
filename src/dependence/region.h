// Which part of a buffer a block touches while some of the loops around it run.
#pragma once

#include <optional>
#include <vector>

#include "dependence/body.h"
#include "dependence/box.h"

namespace tenon {

/// `region`, declared by `block`, in terms of the loops around it.
Region InLoops(const Region& region, const Block& block);

/// What `region`, declared by `block`, covers while the loops of `domain` run: in terms of the
/// other loops.
Box TouchedBox(const Region& region, const Block& block, const IntervalMap& domain,
               Analyzer* analyzer);

/// The same while `loops` run, where the block runs at all: its guards count.
Box TouchedBox(const Region& region, const Block& block, const std::vector<const For*>& loops,
               Analyzer* analyzer);

/// What it covers over the whole domain of the block.
Box DomainBox(const Region& region, const Block& block, Analyzer* analyzer);

/// True when every point of that box is really touched while the loops run (guards aside): no
/// strides, no diagonals.
bool FillsItsBox(const Region& region, const Block& block, const std::vector<const For*>& loops,
                 Analyzer* analyzer);

/// The box of which every point is touched, and nothing else, while the loops run where the guards
/// (in terms of loops) hold; nothing where there are holes, or it is not known.
std::optional<Box> FilledBox(const Region& region, const Block& block,
                             const std::vector<const For*>& loops, std::vector<Expr> guards,
                             Analyzer* analyzer);

/// The conjuncts of the block's `where` that are decided outside its own loops: those around it
/// that are not in `path`.
std::vector<Expr> GuardsAround(const Body::Place& place, const std::vector<Stmt>& path);
/// The conjuncts of the block's `where`, in terms of loops, that say more than that its iteration
/// variables are in their domains, given some conditions.
std::vector<Expr> GuardsBesideDomain(const Body::Place& block, const PrimFunc& func,
                                     const std::vector<Expr>& given = {});
/// True when there are none.
bool GuardsOnlyDomain(const Body::Place& block, const PrimFunc& func,
                      const std::vector<Expr>& given = {});

/// Wherever the block runs, the condition over loops around it holds.
bool HoldsWhereRuns(const Body::Place& block, const PrimFunc& func, const Expr& condition);

}  // namespace tenon

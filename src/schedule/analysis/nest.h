// Making the loops around a block that is moved or new.
#pragma once

#include <vector>

#include "dependence/region.h"
#include "schedule/analysis/state.h"

namespace tenon::primitive {

/// What a block's iteration variables run over: one interval each; a null side means the whole
/// domain.
using IterRanges = std::vector<ExprInterval>;
IterRanges WholeDomain(const Block& block);

/// Whether more iterations than asked for may run (within the domain), where that makes trip counts
/// constant; kWhole: also more than there are, behind a guard, where all of a dim is asked for.
enum class Widen { kYes, kNo, kWhole };

/// The block in loops of its own, <block>.ax0, …, over `ranges`; its bindings are replaced, and its
/// guard by what keeps the variables inside their domains (and ranges). The trip counts are
/// constants where a constant bound is found. `steps`: of each range, only every so many iterations
/// from its first on are asked for; none: all of them.
Stmt MakeNest(const Block& block, const IterRanges& ranges, Widen widen, Body* body,
              Analyzer* analyzer, const std::vector<int64_t>& steps = {});

/// `nest` run only where the conditions, which loops around it decide, hold: those that its block's
/// domain does not imply are added to its guard.
Stmt Inherit(const Stmt& nest, const std::vector<Expr>& conditions, Analyzer* analyzer);

/// The intervals of the block's bindings while `loops` run, in terms of the other loops.
IterRanges RangesOver(const Block& block, const std::vector<const For*>& loops, Analyzer* analyzer);

/// The statement around `place` that can be followed or preceded by code which all of `others` see
/// whole: the outermost loop (or the block itself) that is inside no statement that one of them is
/// inside too.
Stmt AnchorOf(const Place& place, const std::vector<const Place*>& others);

/// A copy of the block with variables of its own: what it declares and does in terms of them. Names
/// end in `suffix`.
Block WithFreshVars(const Block& block, const std::string& suffix, Body* body);

/// The regions whose buffers `part` (a statement or an expression) mentions.
std::vector<Region> RegionsIn(const std::vector<Region>& regions, const NodeRef& part);

/// Of what a block declares, what its init reads: it is run before the reduction, which it knows
/// nothing of.
std::vector<Region> RegionsOfInit(const Block& block);

/// A region of one element.
Region PointRegion(const Buffer& buffer, const std::vector<Expr>& indices);

}  // namespace tenon::primitive

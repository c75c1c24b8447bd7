// From a box of a buffer to the iterations of a block that touch it.
#pragma once

#include "schedule/analysis/nest.h"

namespace tenon::primitive {

/// The ranges of iteration variables outside of which the block touches nothing of `box` through
/// `region`: found for variables that stand alone in a dimension, v * c + constant with c > 0;
/// others keep their whole domain.
IterRanges TouchingIters(const Block& block, const Region& region, const Box& box,
                         Analyzer* analyzer);

/// For each iteration variable a number g: those iterations of `ranges` that touch an element which
/// `touched`, in terms of loops, takes while `loops` run are the first and every g-th from there.
/// 0: the first alone; 1: where more is not known.
std::vector<int64_t> TouchingSteps(const Block& block, const Region& region, const Region& touched,
                                   const std::vector<const For*>& loops, const IterRanges& ranges,
                                   Analyzer* analyzer);

/// The ranges of iteration variables within which all that the block touches through `region` is
/// inside `box`: each dimension of the region must be v + constant, or provably inside the box
/// whatever the iteration; else nothing. Every iteration whose element is inside is in the ranges.
std::optional<IterRanges> EnclosedIters(const Block& block, const Region& region, const Box& box,
                                        Analyzer* analyzer);

/// Ranges that hold both; a variable with its whole domain in one has it in the result.
void UniteRanges(const IterRanges& more, IterRanges* ranges, Analyzer* analyzer);

}  // namespace tenon::primitive

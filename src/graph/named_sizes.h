// Sizes that follow from several others, by names of their own.
#pragma once

#include <optional>

#include "graph/graph.h"
#include "ir/visit.h"

namespace tenon::graph {

/// A region in which sizes are dims that were choices between others, or long differences:
///
///   y: f32[select(m == 1, n, m)] = add(a: f32[m], b: f32[n])    becomes
///   y: f32[size0] = add(a: f32[m], b: f32[n])                   with size0 = select(m == 1, n, m)
///
/// What was known by the formula alone, as that m is size0 or 1, is not known then. What a proof
/// has to look at is much less: without names a kernel that reads what was padded by the call and
/// broadcast has products of sums of choices in each index, and guards that nobody can prove.
struct NamedSizes {
  Graph region;
  VarMap values;  // by the new dims
};

/// None where the region has no such sizes, or has regions or layouts that mention what they are
/// made of.
std::optional<NamedSizes> NameSizes(const Graph& region);

}  // namespace tenon::graph

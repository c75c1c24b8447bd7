// Which operators may be computed together.
#pragma once

#include <cstddef>

#include "graph/graph.h"

namespace tenon::ops {

/// True for operators whose every element is an expression of its operands' elements (elementwise,
/// broadcast, injective and bounded interpolation): they fuse by composition.
bool HasElementDefinition(graph::OpKind op);

/// True for a sum of floats along one axis that is so short that it can be written out: an
/// expression of its operand's elements where it is not what a kernel is there for.
bool IsShortSum(const graph::Graph& g, const graph::Node& node);

/// True when a contraction's operands, sums and result are f32.
bool ComputesInF32(const graph::Graph& g, const graph::Node& node);

/// True for operators that only say where elements stand (reshape, transpose, slice, …): reading
/// through them costs no arithmetic.
bool IsView(graph::OpKind op);

/// True when the anchor's algorithms read operand `input` through views at no cost.
bool AbsorbsViews(graph::OpKind anchor, size_t input);

}  // namespace tenon::ops

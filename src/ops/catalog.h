// What graph passes may ask of the operator library, without seeing how operators are computed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "target/target.h"

namespace tenon::ops {

/// True for operators whose every element is an expression of its operands' elements (elementwise,
/// broadcast, injective and bounded interpolation): they fuse by composition.
bool HasElementDefinition(graph::OpKind op);

/// True when a contraction's operands, sums and result are f32.
bool ComputesInF32(const graph::Graph& g, const graph::Node& node);

/// True for operators that only say where elements stand (reshape, transpose, slice, …): reading
/// through them costs no arithmetic.
bool IsView(graph::OpKind op);

/// True when the anchor's algorithms read operand `input` through views at no cost.
bool AbsorbsViews(graph::OpKind anchor, size_t input);

/// Channels per block of feature maps in convolutional networks: the lanes of a vector.
int64_t ChannelBlock(const Target& target);

/// The layouts that the convolution algorithms want for their constant operands; null where they
/// leave them alone. `value_type` is that of the operand; `node` the convolution.
Layout WeightLayout(const graph::Graph& g, const graph::Node& node, size_t input,
                    const Target& target);

/// True when a convolution reads feature maps in channel blocks (or, for few channels, plainly) and
/// writes them so; else it does both plainly.
bool WantsBlocks(const graph::Graph& g, const graph::Node& node);

/// Cells of zeros that a convolution wants around its input: begins of the axes of space, then
/// ends. Empty: it reads the input as it is.
std::vector<int64_t> WantedHalo(const graph::Graph& g, const graph::Node& node,
                                const Target& target);

}  // namespace tenon::ops

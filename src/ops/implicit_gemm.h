// Convolution as the product of weights [maps, channels · window] and the matrix of windows, which
// is never made: its elements are read where they lie (cuDNN's implicit GEMM, arXiv 1410.0759, on
// feature maps in plain layout). A tile is a few maps by vectors along the innermost axis of space.
// For convolutions that have no direct form in channel blocks: one-, three-dimensional and grouped
// ones.
#pragma once

#include "ops/algorithms.h"

namespace tenon::ops {

/// True for f32 convolutions of constant sizes without a direct form, with no negative pads.
bool HasImplicitGemm(const graph::Graph& g, const graph::Node& node);

/// Cells of zeros around the input that tiles read: begins of the axes of space, then ends.
std::vector<int64_t> ImplicitGemmHalo(const graph::Graph& g, const graph::Node& node,
                                      const Target& target);

/// Weights in panels of a tile's maps.
Layout ImplicitGemmWeightLayout(const graph::Graph& g, const graph::Node& node, size_t input,
                                const Target& target);

bool ImplicitGemmApplies(const Group& group, const graph::Node& node);
Operand BuildImplicitGemm(Group& group, const graph::Node& node, Attrs* attrs);

}  // namespace tenon::ops

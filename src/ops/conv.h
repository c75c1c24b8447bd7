// Direct convolution on feature maps in channel blocks (the scheme of oneDNN's and NeoCPU's CPU
// kernels, arXiv 1809.02697): the micro-kernel is that of a matrix product, a tile of output
// positions by a few vectors of output channels, reduced over input channels and window. Halos in
// the input's layout take the place of guards. Few input channels (the first layer) are read from
// the plain layout by the same kernel; depthwise convolution and pooling run their window over
// vectors of channels.
#pragma once

#include "ops/algorithms.h"

namespace tenon::ops {

/// True for two-dimensional f32 convolutions with constant weights, no negative pads, and one group
/// or one channel per group.
bool HasDirectConv(const graph::Graph& g, const graph::Node& node);

Layout ConvWeightLayout(const graph::Graph& g, const graph::Node& node, size_t input,
                        const Target& target);

bool DirectConvApplies(const Group& group, const graph::Node& node);
Operand BuildDirectConv(Group& group, const graph::Node& node, Attrs* attrs);

bool DepthwiseApplies(const Group& group, const graph::Node& node);
Operand BuildDepthwise(Group& group, const graph::Node& node, Attrs* attrs);

/// Pooling and reductions over space, by their definitions, on channel blocks.
bool BlockedWindowApplies(const Group& group, const graph::Node& node);
Operand BuildBlockedWindow(Group& group, const graph::Node& node, Attrs* attrs);

}  // namespace tenon::ops

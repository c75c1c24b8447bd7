// Convolutions as numbers, for the algorithms that compute them.
#pragma once

#include <optional>
#include <vector>

#include "graph/infer.h"
#include "ops/algorithm.h"

namespace tenon::ops {

class Group;

struct ConvGeometry {
  std::vector<int64_t> x, w, y;  // dims of input, weights, result; open ones are the typical ones
  int64_t least_batch = 1;
  bool is_open = false;  // in an axis of space
  int64_t group = 1;
  std::vector<int64_t> strides, dilations, pads;  // pads: begins of the axes of space, then ends
  graph::ContractionTypes types;
  double pad_value = 0;

  size_t rank() const { return x.size() - 2; }
  int64_t maps_per_group() const { return w[0] / group; }
  bool Depthwise() const { return group == x[1] && group == w[0] && group > 1; }
  /// Taps of one window in one channel.
  int64_t Window() const;
};

/// Of a convolution with no negative pads, whose weights and channels are known; nullopt for any
/// other node.
std::optional<ConvGeometry> ReadConv(const Site& site);

/// Of an axis of space, the taps from the first to the last at which some output reads an element
/// of the map, one at least; all where its size is not known to the kernel, or padding is not zero.
struct TapRange {
  int64_t first = 0, count = 0;
};
TapRange TapsThatMeet(const Group& group, const ConvGeometry& c, size_t axis);

/// Two axes of space, and one group or one channel per group: what the direct algorithms compute on
/// channel blocks.
bool IsDirectConv(const ConvGeometry& c);

/// The most positions of a row that a register tile may have. One that is cut short where nobody
/// knows yet has code for each number of them.
int64_t MaxWidth(int64_t width, bool is_open, const Machine& machine);

/// Channels of a feature map that stand together: as many as a vector of f32 has lanes. Bytes and
/// halves of a few channels (an image) fill whole groups of a dot product's instead.
int64_t ChannelBlock(const graph::TensorType& type, const Machine& machine);

/// The storage of feature maps in channel blocks of `lanes` (1: plain order) with borders of at
/// least `before` and `after` cells on each axis of space (both empty: none), which hold `padding`.
StorageDesc FeatureMap(const std::vector<Expr>& dims, int64_t lanes,
                       const std::vector<int64_t>& before = {},
                       const std::vector<int64_t>& after = {}, double padding = 0);

/// The storage of feature maps with the channels of a place together: what kernels want whose
/// threads run together.
StorageDesc ChannelsLast(int rank);
/// How feature maps lie where they are not row-major.
StorageDesc FeatureOrder(const Machine& machine, int rank, int64_t lanes);

/// Wants of a kernel whose results lie in channel blocks.
void WantBlockedResults(const Site& site, int64_t lanes, std::vector<Want>* wants);

}  // namespace tenon::ops

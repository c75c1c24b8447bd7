// Sizes of open dims that count: those of which somebody said how often calls have them, or a few
// that stand for the range. Kernels of open sizes are tuned at these, and plans that follow
// measurements are chosen for them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ir/visit.h"
#include "support/expected.h"

namespace tenon::plan {

/// What some calls have in common.
struct ShapeWeight {
  std::map<std::string, int64_t> sizes;  // by the dim's name; others have their typical size
  double weight = 1;

  /// "batch=4,seq=128:3", and "seq=128" for a weight of 1. Errors say what was expected.
  static Expected<ShapeWeight> Parse(std::string_view text);
};

/// A region with numbers in the place of its dims. It still declares those that it mentioned: what
/// is known of it is known of the open region at these sizes, whose code is another than that of
/// fixed ones.
struct SizedRegion {
  graph::Graph region;
  std::vector<int64_t> sizes;  // of the region's dims
  double weight = 1;           // those of a region add up to 1

  /// "batch=4,seq=128", of the dims that the open region's values mention.
  std::string name;
};

/// The region's dims that its values mention and that have several sizes, by place.
std::vector<size_t> OpenDims(const graph::Graph& region);
/// The largest size of the dim that is no larger.
int64_t SizeUpTo(const graph::Dim& d, int64_t size);
/// An odd size in the (geometric) middle between the dim's least and `most`, which few tiles
/// divide.
int64_t MiddleSize(const graph::Dim& d, int64_t most);
VarMap SizesOf(const graph::Graph& region, const std::vector<int64_t>& sizes);
graph::Graph AtSizes(const graph::Graph& region, const VarMap& sizes);
/// The region without the dims of its network that it does not mention.
graph::Graph WithOwnDims(const graph::Graph& region);

/// What a plan says at these sizes.
graph::Choices ChoicesAt(const graph::Plan& plan, const VarMap& sizes);

/// The region at the sizes of `given` as far as they are in its range; where none are, or none were
/// given, at the ends of its range, a middle and a prime. Sizes that differ in nothing that the
/// region mentions are one. The last is that with the largest weight. One, and the region itself,
/// without dims, where none are open.
std::vector<SizedRegion> AtWeightedSizes(const graph::Graph& region,
                                         const std::vector<ShapeWeight>& given);

/// The region where each of its dims has one size: the least, one between, and the typical one, the
/// last. Just the region where no dims are open.
std::vector<SizedRegion> ThreeSizes(const graph::Graph& region);

}  // namespace tenon::plan

// Layouts over the lanes of a warp or a warpgroup, as functions, and those of tiles in shared
// memory: a part of distribute.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/buffer.h"

namespace tenon {

/// Consecutive bits of a lane's or a register's number that count along one dimension of a tile.
struct TileDigit {
  bool of_lane = false;
  int shift = 0, bits = 0;  // number >> shift, its lowest `bits`
  size_t dim = 0;
  int64_t step = 1;  // elements along dim for each of it
};

/// A tile of constant size whose elements lie in the registers of 32 or 128 lanes.
class FragmentTile {
 public:
  /// Of a parameter with a layout over threadIdx.x; nothing where it is no such map, or its
  /// inverse is not made of digits. One that only stands for the unit's own (`opaque`) may leave
  /// registers free: such a tile has no digits.
  static std::optional<FragmentTile> Of(const BufferNode& param, bool opaque);

  const std::vector<int64_t>& shape() const { return shape_; }
  bool opaque() const { return opaque_; }
  /// The digits of an element's place in its tile, those of the lowest bits last.
  const std::vector<TileDigit>& digits() const { return digits_; }
  int64_t lanes() const { return lanes_; }
  /// The layout of a buffer of the given rank whose dimensions `dims` are covered with such tiles.
  Layout Cover(size_t rank, const std::vector<size_t>& dims) const;

 private:
  Layout layout_;
  std::vector<int64_t> shape_;
  std::vector<TileDigit> digits_;
  bool opaque_ = false;
  int64_t lanes_ = 32;
};

/// The layout of a buffer of the given rank whose dimensions `dims` are covered with tiles like the
/// parameter `tile`, which has a layout in memory: one tile behind the other, in row-major order.
Layout CoverMemory(const BufferNode& tile, size_t rank, const std::vector<size_t>& dims);

/// The values of a layout's storage coordinates at a point.
std::vector<int64_t> StorageAt(const LayoutNode& layout, const std::vector<int64_t>& point);

}  // namespace tenon

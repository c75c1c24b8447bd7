// The layouts that kernels know, as a description: between a graph layout (a map over logical axes)
// and its meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/buffer.h"

namespace tenon::graph {

/// Blocks of `size` cells along an axis; the place inside a block, or the number of the smaller
/// block inside it, is an inner storage dimension.
struct Blocking {
  int axis;
  int64_t size;
  friend bool operator==(const Blocking&, const Blocking&) = default;
};

/// The layouts that kernels know. Storage is row-major over the axes in `order` (blocked ones
/// counted in blocks), then over the places inside blocks in the order of `blocks`. An axis may
/// have several blockings, the later inside the earlier, whose sizes divide each other. Each axis
/// may have a halo (cells around it, so that windows need no guards) or a larger pitch; these cells
/// and those that fill the last block of an axis hold `padding`. Sizes are index expressions over
/// the graph's dims; blocks and what lies before an axis are numbers. NCHW16c is {blocks: {1, 16}},
/// panels of a matrix [k, n] for a register tile of 32 columns are {order: {1, 0}, blocks: {1,
/// 32}}, and of bytes that are multiplied in groups of four {order: {1, 0}, blocks: {{1, 32}, {0,
/// 4}}}.
struct StorageDesc {
  std::vector<int> order;        // empty: 0, 1, …
  std::vector<Blocking> blocks;  // those of one axis from the largest to the smallest
  std::vector<int64_t> begin;    // halo before each axis; empty: none
  std::vector<Expr> size;        // cells of each axis with halo; empty: the dims
  double padding = 0;            // kept where there are cells that it is for

  bool IsPlain() const { return order.empty() && blocks.empty() && begin.empty() && size.empty(); }
  /// The size of an axis's largest blocks, 1 where it has none.
  int64_t BlockOf(int axis) const;
  /// Cells of an axis of a tensor of these dims, padding to whole blocks included.
  Expr Cells(const std::vector<Expr>& dims, int axis) const;
};
/// Whether a tensor of these dims has cells beside its elements.
bool HasPadding(const StorageDesc& desc, const std::vector<Expr>& dims);
/// Sizes are compared for all values of the dims.
bool operator==(const StorageDesc& a, const StorageDesc& b);

/// `size` in whole blocks of `block`.
Expr InBlocks(const Expr& size, int64_t block);

/// A graph layout that says it; null for plain. `dims` are the tensor's.
Layout MakeLayout(const StorageDesc& desc, const std::vector<Expr>& dims);
/// What a layout made by MakeLayout says; nullopt for any other.
std::optional<StorageDesc> ReadLayout(const Layout& layout, const std::vector<Expr>& dims);

}  // namespace tenon::graph

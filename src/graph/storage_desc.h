// The layouts that kernels know, as a description: between a graph layout (a map over logical axes)
// and its meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/buffer.h"

namespace tenon::graph {

/// Blocks of `size` cells along an axis; the place inside a block is an inner storage dimension.
struct Blocking {
  int axis;
  int64_t size;
  friend bool operator==(const Blocking&, const Blocking&) = default;
};

/// The layouts that kernels know. Storage is row-major over the axes in `order` (blocked ones
/// counted in blocks), then over the places inside blocks in the order of `blocks`. Each axis may
/// have a halo (cells around it that hold zeros, so that windows need no guards) or a larger pitch;
/// the last block of an axis is padded with zeros. Sizes are index expressions over the graph's
/// dims; blocks and what lies before an axis are numbers. NCHW16c is {blocks: {1, 16}}, panels of a
/// matrix [k, n] for a register tile of 32 columns are {order: {1, 0}, blocks: {1, 32}}.
struct StorageDesc {
  std::vector<int> order;        // empty: 0, 1, …
  std::vector<Blocking> blocks;  // at most one per axis
  std::vector<int64_t> begin;    // halo before each axis; empty: none
  std::vector<Expr> size;        // cells of each axis with halo; empty: the dims

  bool IsPlain() const { return order.empty() && blocks.empty() && begin.empty() && size.empty(); }
  /// The block size of an axis, 1 where it has none.
  int64_t BlockOf(int axis) const;
  /// Cells of an axis of a tensor of these dims, padding to whole blocks included.
  Expr Cells(const std::vector<Expr>& dims, int axis) const;
};
/// Sizes are compared for all values of the dims.
bool operator==(const StorageDesc& a, const StorageDesc& b);

/// `size` in whole blocks of `block`.
Expr InBlocks(const Expr& size, int64_t block);

/// A graph layout that says it; null for plain. `dims` are the tensor's.
Layout MakeLayout(const StorageDesc& desc, const std::vector<Expr>& dims);
/// What a layout made by MakeLayout says; nullopt for any other.
std::optional<StorageDesc> ReadLayout(const Layout& layout, const std::vector<Expr>& dims);

}  // namespace tenon::graph

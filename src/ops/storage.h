// Tensors of the graph as buffers of kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/storage_desc.h"
#include "te/te.h"

namespace tenon::ops {

using graph::Blocking;
using graph::MakeLayout;
using graph::ReadLayout;
using graph::StorageDesc;

/// A tensor of the graph as a kernel sees it.
struct StoredTensor {
  StorageDesc desc;
  std::vector<Expr> dims;  // logical
  /// Its shape includes halo and padding; its layout only orders and blocks.
  Buffer buffer;
  /// Where logical element i is in the buffer.
  te::Indices Place(const te::Indices& i) const;
  /// Size of an axis with padding to whole blocks, without halo: what a kernel may compute and
  /// read.
  Expr Padded(int axis) const;
  /// True where the last block of an axis may not be full.
  bool IsRagged(int axis) const;
  int64_t Halo(int axis) const {
    return desc.begin.empty() ? 0 : desc.begin[static_cast<size_t>(axis)];
  }
  Expr Bytes() const;
  /// The axis whose neighbours are neighbours in memory, and how many of them are.
  int InnermostAxis() const;
};

/// The type's layout must be one of ours.
StoredTensor Store(const std::string& name, const graph::TensorType& type);

}  // namespace tenon::ops

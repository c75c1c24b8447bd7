// What the operations of a kernel ask of the buffers that they are passed: a part of distribute.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "loop/pass/fragments/fragment_layout.h"
#include "loop/pass/pass.h"

namespace tenon {

/// How a buffer is covered with what operations ask for.
struct Cover {
  std::vector<int64_t> shape;  // of a tile
  std::vector<size_t> dims;    // that the tile's are
  Layout layout;
};
struct Fragment : Cover {
  FragmentTile tile;
};
using Fragments = std::map<const BufferNode*, Fragment>;

struct OperandLayouts {
  Fragments fragments;
  std::map<const BufferNode*, Cover> tiles;  // in shared memory
  /// Bytes that a buffer in shared memory begins at a multiple of.
  std::map<const BufferNode*, int64_t> aligns;
  std::vector<std::string> refused;  // what cannot be had, and why
};

/// Of the calls in a kernel, and of the fragments beside those that are passed.
OperandLayouts LayoutsOfOperands(const PrimFunc& func, const Module& module);

}  // namespace tenon

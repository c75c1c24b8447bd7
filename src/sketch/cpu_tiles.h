// What rules for CPUs have in common: the loops that store a block's results, cut into tiles of
// vectors and shared out.
#pragma once

#include <string>

#include "sketch/rule.h"

namespace tenon::sketch {

/// "C.unroll", "C.0.tile": names of choices.
std::string Named(const std::string& block, const char* what);
std::string Named(const std::string& block, size_t axis, const char* what);

/// Lanes for a loop: no wider than it is, a power of two.
int64_t LanesFor(const Machine& machine, DType type, int64_t extent);

/// Of loops over axes of these extents, those that are loops of the function: an axis of one is
/// none, whatever is chosen.
Names LongOnes(const Names& loops, const std::vector<int64_t>& extents);

/// The first of the loops, as many as are chosen, are shared out among the cores. How many there
/// are does not depend on choices.
void ShareOut(Draft* d, const std::string& block, const Names& outer);

/// The loops of a store, cut.
struct Tile {
  Names outer, block, inner;  // of each axis; "" where there is none
  Names cut;                  // the outer ones of axes that were cut
  std::string vectors, lane;  // of the last axis
  int64_t lanes = 1;
};

/// Tiles of all axes; the last one is in vectors. `exact`: they divide the axes.
Tile CutTile(Draft* d, const std::string& block, const Names& axes, DType type, bool exact = false);
Names WithoutEmpty(const Names& names);

/// What stores a block's results: a consumer that follows, or a copy out of `scope`, which they are
/// computed in.
std::string StoreOf(Draft* d, const BlockView& v, Scope scope);

/// Products by an operation of the machine's table.
Rule TensorizeRule();

}  // namespace tenon::sketch

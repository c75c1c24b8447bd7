// What the spaces and prices of algorithms with register tiles are written with: a tile of rows ×
// vectors of results stays in registers while its reduction runs.
#pragma once

#include <vector>

#include "ops/algorithm.h"

namespace tenon::ops {

int64_t CeilDiv(int64_t a, int64_t b);
std::vector<int64_t> OneTo(int64_t n);
/// The numbers from 1 to `most` that divide n.
std::vector<int64_t> DivisorsOf(int64_t n, int64_t most);

/// A tile of `rows` × `vectors` fits: its accumulators, a row of vectors of the second operand, and
/// one broadcast of the first.
Expr FitsRegisters(const Expr& rows, const Expr& vectors, const Machine& machine);

/// How often a loop around tiles runs, over the space's knobs: at typical sizes, and at the least
/// where these differ.
struct TripCount {
  TripCount(Expr count) : typical(count), least(std::move(count)) {}
  TripCount(Expr at_typical, Expr at_least)
      : typical(std::move(at_typical)), least(std::move(at_least)) {}
  TripCount(int64_t at_typical, int64_t at_least)
      : typical(IndexConst(at_typical)), least(IndexConst(at_least)) {}
  Expr typical, least;
};
/// The trip counts of loops over these sizes.
std::vector<TripCount> TripCounts(const std::vector<int64_t>& typical,
                                  const std::vector<int64_t>& least);

/// The knob "parallel_loops": how many of the loops around the tiles, outermost first, are shared
/// out among workers: the fewest whose trip counts give enough parts at all sizes. Also none where
/// it may be (sizes are open, and some of them may be too little work for several workers).
void AddParallelLoops(Space* space, const std::vector<TripCount>& loops, bool or_none = false);
/// What that means for the work at a point: its parts, and the team that they are for.
void ShareOut(WorkDescription* work, const Machine& machine, const std::vector<int64_t>& extents,
              const Point& point);

/// Adds `turns` turns of the reduction for each tile of a height × width plane that is cut into
/// tiles of th × tw, those at the ends smaller.
void AddTiles(WorkDescription* work, int64_t height, int64_t width, int64_t th, int64_t tw,
              int64_t vectors, double turns);

/// Bytes of all values at a region's border, and of a type in it, at typical sizes.
double BorderBytes(const graph::Graph& region);
double BytesOf(const graph::Graph& region, const graph::TensorType& type);
/// How many lines along an axis there are among so many elements; no size counts as less than 1.
int64_t LinesAlong(const std::vector<int64_t>& sizes, size_t axis);
/// Elements of the region's results, computed by all its nodes that follow the anchor.
double EpilogueElements(const Site& site);

}  // namespace tenon::ops

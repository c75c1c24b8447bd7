// Products by units that the threads of a warp feed together (tensor cores): a block of warps makes
// a tile of results, each warp a part of it in fragments, while tiles of both operands pass through
// the memory that the block shares, some steps ahead of their use. What is multiplied, a matrix or
// the windows of an image, is two functions; the space, the price and the schedule are the same for
// all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/algorithm/warp_steps.h"
#include "ops/group.h"

namespace tenon::ops {

/// out[lead…, i, j] = the sum over k of a[lead…, i, k] · b[lead…, j, k].
struct WarpShape {
  std::vector<int64_t> lead;
  int64_t m = 0, n = 0, k = 0;
  DType type;
  /// Neighbours in memory, and where: of `a` along k, of `b` along k or along j, as many as a
  /// thread may bring at once (1: they are computed one by one).
  int64_t a_vector = 1, b_vector = 1, out_vector = 1;
  bool b_along_k = true;
  /// Whether both operands are read as they lie, matrix by matrix, so that tiles are boxes of them.
  bool matrices = false;

  int64_t Lead() const;
};

/// Whether the point is one of tiles that warpgroups make (group_tile.h).
bool IsGroupTile(const Point& point);
/// Rows, columns and steps of k of the tile of a block.
int64_t WarpTileRows(const Point& point);
int64_t WarpTileColumns(const Point& point);
/// The steps of k of all tiles: k, rounded up to whole ones.
int64_t WarpTileDepth(const WarpShape& shape, const Point& point);

/// The neighbours along `columns` results that a thread stores at once: as many as are 16 bytes, or
/// fewer where that does not divide them.
int64_t WarpStoreVector(const Site& site, int64_t columns);

Space WarpTileSpace(const WarpShape& shape, const Machine& machine);
WorkDescription WarpTileWork(const WarpShape& shape, const Site& site, const Point& point);
/// Of blocks that take so many cycles each, with all that they move; `barriers` where k is cut into
/// parts, which are added up after them.
WorkDescription BlocksWork(const WarpShape& shape, const Site& site, const Point& point,
                           double block_cycles, int64_t barriers);
/// What it costs to compute an operand, of which a tile has so many `lines` (rows or columns),
/// element by element: that keeps threads from the products.
double ElementwiseOps(const WorkDescription& work, const WarpShape& shape, const Point& point,
                      int64_t lines);

/// Elements of an operand at row (or column) `i` and place k. Both may be beyond the operand's end:
/// along k what is there must be zero; rows and columns may be any.
using WarpElement = std::function<Expr(const te::Indices& lead, const Expr& i, const Expr& k)>;
struct WarpOperands {
  WarpElement a, b;
  bool a_has_lead = true, b_has_lead = true;
};
/// An index that may be beyond the end as one that is not, in whole pieces where several are read
/// at once: counting begins again. One place read by many (the last, say) is slow: reads of the
/// same bytes by all blocks wait for each other.
Expr Around(const Expr& i, int64_t size, int64_t tile, int64_t piece);
/// The sums at [lead…, i, j], in f32.
std::function<Expr(const te::Indices&)> BuildWarpTiles(Group& group, const std::string& name,
                                                       const WarpShape& shape,
                                                       const WarpOperands& operands,
                                                       const Point& point);

/// The loops in which a block of threads has its tile: the rows and columns of a product's result
/// cut into tiles, whose loops are `inner`.
std::string BindTiles(Schedule& s, const Names& lead, const std::string& rows,
                      const std::string& columns, const Point& point, Names* inner);
/// The results of a product whose k was cut into parts: each thread adds up its own.
void ScheduleTotal(Schedule& s, const Parts& parts, size_t columns);

/// Which axes of the block that stores are rows and columns: the last `columns`, and the `rows`
/// before them.
struct WarpOrder {
  size_t rows = 1, columns = 1;
};
/// The schedule of a kernel that is one such product.
void ScheduleWarpTiles(Schedule& s, const Parts& parts, const Machine& machine, const Point& point,
                       const WarpOrder& order);

}  // namespace tenon::ops

// Products on a machine whose threads run together: a block of threads makes a tile of results,
// while tiles of both operands pass through the memory that its threads share. What is multiplied,
// a matrix or the windows of an image, is two functions; the space, the price and the schedule are
// the same for all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/group.h"

namespace tenon::ops {

/// out[lead…, i, j] = the sum over kk of a · b, with kk = step · depth + k.
struct TileShape {
  std::vector<int64_t> lead;
  int64_t m = 0, n = 0, k = 0;
  /// Elements that a thread may bring at once: neighbours in memory, along `k` or along the tile.
  int64_t a_vector = 1, b_vector = 1, out_vector = 1;
  /// The knobs of how many pieces of 4 x 4 a thread has, without "_y" and "_x": a kernel with two
  /// products has some for each.
  std::string pieces = "pieces";

  int64_t Lead() const;
};

/// Rows and columns of the tile of a block of threads.
int64_t TileRows(const Point& point, const std::string& pieces = "pieces");
int64_t TileColumns(const Point& point, const std::string& pieces = "pieces");

/// The space: threads of a block and elements of each (the tile), steps of k at a time, and into
/// how many parts k is cut that other blocks make (1 where it may not be cut). `second`: the name
/// of further pieces, of another product by the same threads.
Space TileSpace(const TileShape& shape, const Machine& machine, bool may_cut = true,
                const std::string& second = "");
WorkDescription TileWork(const TileShape& shape, const Site& site, const Point& point);

/// Whether operands of a type are multiplied in f32.
bool IsTiled(DType type);

/// Elements of an operand, which are widened to the accumulator on their way: those of row (or
/// column) `i` at place k of a step; both within the operand but for what fills the last tile and
/// the last step, which must be zero.
using TileElement =
    std::function<Expr(const te::Indices& lead, const Expr& i, const Expr& step, const Expr& k)>;
struct TileOperands {
  TileElement a, b;
  bool a_has_lead = true, b_has_lead = true;
  DType accumulator = DType::Float(32);
};
/// The sums at [lead…, i, j], under the name.
std::function<Expr(const te::Indices&)> BuildTiles(Group& group, const std::string& name,
                                                   const TileShape& shape,
                                                   const TileOperands& operands,
                                                   const Point& point);

/// The blocks of a product that BuildTiles has made: the operands' tiles, the sums, and the block
/// that stores what is computed of them.
struct TileBlocks {
  std::string a, b, sums, store;
};
/// How they run: which operands lie with neighbours along k, and how many of the last axes of
/// `store` are j, and before these i.
struct TileOrder {
  bool a_along_k = false, b_along_k = false;
  size_t rows = 1, columns = 1;
  std::string pieces = "pieces";  // of the shape
};
void ScheduleTile(Schedule& s, const TileBlocks& blocks, const Point& point,
                  const TileOrder& order);
/// The same for a kernel that is one product, in whose parts the blocks are found; what several
/// parts of k have made is added up by a launch of its own.
void ScheduleTiles(Schedule& s, const Parts& parts, const Point& point, const TileOrder& order);

}  // namespace tenon::ops

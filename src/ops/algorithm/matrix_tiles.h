// Products by a unit that multiplies whole tiles and keeps them in registers of its own: what the
// algorithms for it have in common. Operands of a step are brought into tiles, the sums stay there,
// and leave through memory that the first-level cache holds, where what follows meets them as
// vectors.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/group.h"
#include "ops/micro_kernel.h"
#include "ops/scheduling.h"

namespace tenon::ops {

/// A product as tiles: how many there are, and where the elements of one lie.
struct TiledProduct {
  std::vector<Expr> lead;  // of the result, before rows and columns
  Expr groups;             // of the result's rows, of `tile_rows` tiles each
  int64_t tile_rows = 1;
  Expr columns;             // tiles of the result
  std::vector<Expr> steps;  // along the reduction, outermost first; each brings tiles of its own
  DType wide;               // of the sums
  bool own_b = false;       // each place of `lead` has a second operand of its own
  BlockRole sums = BlockRole::kAnchor;
  /// At an element of a tile: of which group and place in it, and of which step.
  std::function<Expr(const te::Indices& lead, const Expr& group, const Expr& tile,
                     const te::Indices& step, const Expr& row, const Expr& k)>
      a;
  /// `lead` is empty unless the operand has one of its own.
  std::function<Expr(const te::Indices& lead, const Expr& tile, const te::Indices& step,
                     const Expr& k, const Expr& lane)>
      b;
};
/// The product's elements by lead, row and column, read from the memory that its sums leave
/// through. The sums are the block `op.name`; what is moved, "_a", "_b" and "_c" behind that.
Operand BuildTiles(Group& group, const OpContext& op, const MicroKernel& kernel,
                   const TiledProduct& product);

/// Puts all of the product whose sums are that block under the loop `at`, inside which the result's
/// loops are those of `groups` groups of rows, tile_rows, rows, nv and lanes; of several groups,
/// all sums leave before what follows reads them. The innermost `written_out` loops over steps are
/// unrolled. Where the tiles inside `panels` meet one panel of the second operand again and again,
/// the next is asked for meanwhile
/// ("": it is not).
void ScheduleTiles(Schedule& s, const Parts& parts, const Machine& machine, const std::string& sums,
                   const std::string& at, size_t written_out, const std::string& panels,
                   int64_t groups = 1);

}  // namespace tenon::ops

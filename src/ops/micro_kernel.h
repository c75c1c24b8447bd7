// The micro-kernels of matrix products: what one step of a register tile multiplies, by which
// operation of the machine, and how the operands lie for it. Plain fused multiply-adds, dot
// products of neighbours in vectors and products of whole tiles are all of this form; algorithms
// differ in what is around it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "graph/infer.h"
#include "graph/storage_desc.h"
#include "ops/algorithm.h"
#include "ops/operand.h"

namespace tenon::ops {

/// acc[rows, lanes] += a[rows, depth] · b[depth, lanes], by one operation of the machine.
struct MicroKernel {
  ComputeUnit unit;  // the operands' types as they are stored; m rows, n lanes, k the depth
  /// So many neighbours along the depth of b lie together, before those of the next lane.
  int64_t group = 1;
  /// Of a unit with tiles of its own: the rows of the table that bring a and b, and store the sums.
  std::vector<std::string> moves;

  int64_t rows() const { return unit.m; }
  int64_t lanes() const { return unit.n; }
  int64_t depth() const { return unit.k; }
  /// No operation of the table: the schedule's vectors do it.
  bool IsPlain() const { return unit.row.empty(); }
  bool HasTiles() const { return !moves.empty(); }

  /// The storage of b, [k, n] or transposed [n, k], in panels of `vectors` times the lanes that are
  /// read in one piece along k; padding is zero. Before these two b has `lead` dims of its own.
  StorageDesc Panels(bool transposed, int64_t vectors, int lead = 0) const;
  /// The storage of a, [..., m, k], whose rows end in zeros up to a whole step, and which has zero
  /// rows up to whole tiles of `row_tiles` times the kernel's.
  StorageDesc Rows(const std::vector<Expr>& dims, int64_t row_tiles) const;
};

/// The fastest of the machine's that multiply these types in vectors: the operation that is made
/// for them, else multiply-adds of the accumulator's type, with operands that are converted to it.
/// Nullopt where the machine has neither.
std::optional<MicroKernel> VectorKernelFor(const Machine& machine, DType a, DType b, DType acc);
/// The multiply-adds alone: what has no neighbours along its depth takes them.
std::optional<MicroKernel> PlainKernelFor(const Machine& machine, DType a, DType b, DType acc);
/// The fastest in tiles.
std::optional<MicroKernel> TileKernelFor(const Machine& machine, DType a, DType b, DType acc);
/// Plain multiply-adds of one type.
MicroKernel PlainKernel(const Machine& machine, DType type);
/// The machine's kernel of that row, or the plain one of the accumulator's type for "".
MicroKernel KernelOf(const Machine& machine, const std::string& row, DType acc);

/// A product of [..., m, k] and a [k, n] (or [n, k]) matrix, or one for each leading place. k and n
/// are known and the first operand is not transposed, unless a reader says otherwise.
struct ProductShape {
  std::vector<int64_t> lead;  // of the result, before rows and columns; typical, as is m
  bool together = false;      // m counts the rows of all of them, and lead is empty
  bool batched = false;       // each leading place has a second operand of its own
  int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  bool is_open = false;        // n or k is: these are typical ones
  std::vector<int64_t> least;  // of lead and m
  graph::ContractionTypes types;
  DType a, b;

  int64_t Lead() const;
  /// The dims of the result as its rows are taken, from its own.
  std::vector<Expr> ResultDims(const std::vector<Expr>& dims) const;
  /// Where in the first operand or the result the rows at `rows` (lead and m) lie, from its dims.
  te::Indices RowAt(const te::Indices& rows, const std::vector<Expr>& dims) const;
  /// The other way: lead and m from where a row lies.
  te::Indices RowsOf(const te::Indices& row, const std::vector<Expr>& dims) const;
  /// All rows on one axis.
  void PutTogether();
};
/// Nullopt for any other node, and for a single column, which has no lanes.
std::optional<ProductShape> ReadProduct(const Site& site);
/// Of any product: n may be 1, n and k open, and the first operand transposed; rows are on one axis
/// where they stand together; where the second operand has leading dims, it is batched, and either
/// may have one matrix for several places of the result.
std::optional<ProductShape> ReadAnyProduct(const Site& site);
/// Whether rows of the first operand are taken one after another, whichever axes they stand on. A
/// tile of rows ends where its axis does, so that is for axes that may end soon: one row in each of
/// several places (197 x 1 rows fill tiles that one row does not), or sizes that only the call
/// knows. Where a row of three axes lies can be told from its place among all only if none of them
/// may be empty.
bool StandTogether(const Site& site);
/// ReadProduct, with all rows on one axis where they stand together.
std::optional<ProductShape> ReadProductOfRows(const Site& site);

/// What a product of `blocks` blocks of rows, those of all leading places, moves: everything once,
/// and the second operand again for each further block, from the level that holds it.
void AddProductBytes(WorkDescription* work, const Site& site, int64_t blocks);
/// Of the cache that holds a block's rows: the second level, or the only one.
int64_t SecondLevelBytes(const Machine& machine);

}  // namespace tenon::ops

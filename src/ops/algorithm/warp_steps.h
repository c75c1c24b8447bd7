// Steps of schedules by which the warps of a block feed units that they own together: tiles to
// shared memory, fragments of them to registers, products of fragments.
#pragma once

#include <string>
#include <vector>

#include "ops/scheduling.h"

namespace tenon::ops {

/// The unit with which a warp multiplies two operands of a type, summed in f32; null where the
/// machine has none whose fragments have loads of their own.
const ComputeUnit* WarpUnit(const Machine& machine, DType type);

/// The unit with which a warpgroup multiplies two operands of a type that lie in shared memory,
/// summed in f32; null where the machine has none.
const ComputeUnit* WarpgroupUnit(const Machine& machine, DType type);

/// A thread's piece of the tile of a block, which goes to shared memory, the loop over its
/// elements: without waiting where the piece has 16 bytes that begin at such multiples.
void BringPiece(Schedule& s, const std::string& block, DType type, const std::string& part,
                int64_t vector);

/// Steps on one schedule of blocks of warps_y x warps_x warps: of these threadIdx.y and z count the
/// warps, and x the threads of each.
class WarpSteps {
 public:
  WarpSteps(Schedule& s, const ComputeUnit& unit, int64_t warps_y, int64_t warps_x);

  const ComputeUnit& unit() const { return unit_; }

  /// A part of a tile of rows and columns for each warp, written as vectors; the loop within which
  /// a warp has its own.
  std::string BindWarps(const std::string& rows, const std::string& columns) const;
  /// All threads take pieces of so many elements of the two loops in turn; the loop over a piece,
  /// or "" where it is one element.
  std::string ShareOut(const std::string& outer, const std::string& inner, int64_t vector) const;
  /// The block that loads fragments of what `tile` writes, which goes to shared memory, for
  /// `product`: `turned`, where the kernel has a block that reads the tile by columns, else a new
  /// one.
  std::string Fragments(const std::string& product, const std::string& tile,
                        const std::string& turned = "") const;
  /// Rows of a tile in shared memory get so far apart that eight pieces below each other meet no
  /// bank twice. Before its loads, which know it, and behind what pipelines them.
  void PadRows(const std::string& tile) const;
  /// All threads bring a tile in pieces, without waiting where the pieces have 16 bytes that begin
  /// at such multiples.
  void BringTile(const std::string& block, int64_t vector) const;
  /// Fragments of a left factor, and of a right one whose rows in memory run along k (turned) or
  /// not.
  void LoadLeft(const std::string& block) const;
  void LoadRight(const std::string& block, bool along_k) const;
  /// The six innermost loops of the block are pieces along k, rows and columns, which are written
  /// out, and within them rows, columns and k of the unit.
  void Multiply(const std::string& block) const;

 private:
  void Load(const std::string& block, const std::string& row, int64_t rows, int64_t columns) const;

  Schedule& s_;
  const ComputeUnit& unit_;
  const std::vector<std::string> moves_;  // rows that load left and right factors
  const int64_t warps_y_, warps_x_;
};

}  // namespace tenon::ops

// Register tiles: how many output positions and vectors one micro-kernel keeps in registers.
#pragma once

#include <cstdint>
#include <vector>

#include "target/target.h"

namespace tenon::ops {

/// Elements of 32 bits in a vector register; 1 where the target has none.
int64_t Lanes32(const Target& target);

/// Accumulators are th × tw positions × nv vectors; nv vectors of the second operand and one
/// broadcast of the first are live beside them.
struct RegisterTile {
  int64_t nv = 1, th = 1, tw = 1;
  int64_t rows() const { return th * tw; }
};

/// Cycles of one reduction step of a tile: fused multiply-adds at two a cycle against loads at two
/// a cycle, and the latency of a short chain of accumulators.
double StepCycles(int64_t rows, int64_t nv);

/// The tile that computes height × width positions × `vectors` vectors in the fewest cycles, tails
/// included, among those that fit the target's registers and whose nv divides `vectors`. max_height
/// bounds th.
RegisterTile ChooseTile(const Target& target, int64_t height, int64_t width, int64_t vectors,
                        int64_t max_height);

/// The tile of a matrix product whose result has `columns` columns: at most max_rows rows (tw), and
/// as many vectors as the panels of the second operand get, which are packed for it.
RegisterTile ChoosePanelTile(const Target& target, int64_t max_rows, int64_t columns);

}  // namespace tenon::ops

#include "ops/tile.h"

#include <algorithm>

namespace tenon::ops {

int64_t Lanes32(const Target& target) { return std::max(1, target.Cpu().VectorLanes(32)); }

double StepCycles(int64_t rows, int64_t nv) {
  constexpr double kUnits = 2, kLoads = 2, kLatency = 4;
  double fmas = static_cast<double>(rows * nv) / kUnits;
  double loads = static_cast<double>(rows + nv) / kLoads;
  return std::max({fmas, loads, kLatency}) + 0.5;  // and the loop's own instructions
}

// Total over one axis of `extent` positions cut into tiles of `tile`, the last one smaller.
static double AxisCycles(int64_t extent, int64_t tile, int64_t other, int64_t nv) {
  int64_t full = extent / tile, rest = extent % tile;
  double cycles = static_cast<double>(full) * StepCycles(tile * other, nv);
  return rest > 0 ? cycles + StepCycles(rest * other, nv) : cycles;
}

RegisterTile ChooseTile(const Target& target, int64_t height, int64_t width, int64_t vectors,
                        int64_t max_height) {
  int64_t registers = target.Cpu().NumVectorRegisters();
  RegisterTile best;
  double best_cycles = 1e300;
  for (int64_t nv = 1; nv <= std::min<int64_t>(vectors, 8); ++nv) {
    if (vectors % nv != 0) continue;
    for (int64_t th = 1; th <= std::min(height, max_height); ++th) {
      for (int64_t tw = 1; tw <= width; ++tw) {
        if (th * tw * nv + nv + 1 > registers) break;
        // Rows of tiles: full ones of th, one of the rest.
        const int64_t full_rows = height / th, columns = vectors / nv;
        double rows = static_cast<double>(full_rows) * AxisCycles(width, tw, th, nv);
        if (height % th != 0) rows += AxisCycles(width, tw, height % th, nv);
        double cycles = rows * static_cast<double>(columns);
        if (cycles < best_cycles - 1e-9) {
          best_cycles = cycles;
          best = {nv, th, tw};
        }
      }
    }
  }
  return best;
}

// A ragged last vector is stored by mask, so any number of columns has its tile; narrow results get
// the vectors they need.
RegisterTile ChoosePanelTile(const Target& target, int64_t max_rows, int64_t columns) {
  int64_t vectors = (columns + Lanes32(target) - 1) / Lanes32(target);
  int64_t rounded = vectors > 4 ? (vectors + 3) / 4 * 4 : vectors;
  return ChooseTile(target, 1, max_rows, rounded, 1);
}

}  // namespace tenon::ops

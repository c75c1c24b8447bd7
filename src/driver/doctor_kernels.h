// The kernels that a machine is measured by.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "support/expected.h"
#include "tune/task.h"

namespace tenon::driver {

/// Cycles of one call of ClockKernel: it waits for one result after another.
inline constexpr int64_t kClockCycles = 100'000;
/// A chain of products and sums of integers, which take four cycles for each link.
Expected<tune::LoweredCandidate> ClockKernel(const Target& target);

/// Sums up `bytes` of each of a team's workers, in vectors; calls take turns with so many copies.
Expected<tune::LoweredCandidate> ReadKernel(const Machine& machine, int64_t bytes, int64_t copies,
                                            int64_t team);
/// Starts a kernel that does next to nothing so many times.
Expected<tune::LoweredCandidate> LaunchKernel(const Target& target, int64_t launches);
/// So many loops that a team shares out, each of which reads what another worker wrote before.
Expected<tune::LoweredCandidate> BarrierKernel(const Target& target, int64_t loops, int64_t team);

/// A text in which words in capitals between '$' stand for what is given.
std::string WithWords(std::string text, const std::map<std::string, std::string>& words);
/// Such a text as a kernel.
Expected<tune::LoweredCandidate> KernelOfText(const std::string& text,
                                              const std::map<std::string, std::string>& words);

/// A relayout as networks have them.
struct PackKernel {
  tune::LoweredCandidate kernel;
  int64_t bytes = 0;  // of what is rearranged
};
/// Of a feature map into blocks of channels, and of a matrix into panels.
Expected<std::vector<PackKernel>> PackKernels(const Machine& machine);

/// A product x[m, k] · w[k, n] in register tiles.
struct ProductKernel {
  tune::LoweredCandidate kernel;
  int64_t rows = 1, vectors = 1;  // of a tile
  int64_t m = 0, k = 0, n = 0;
  double flops() const { return 2.0 * static_cast<double>(m * k * n); }
};
/// What the product of these types can be computed in.
struct TileShape {
  int64_t rows = 1, vectors = 1;
};
/// For each number of vectors the tallest tile and that of one row; none where no algorithm has
/// register tiles for these types.
std::vector<TileShape> TileShapesOf(const ComputeUnit& unit, const Machine& machine);
/// A product x[m, k] · w[k, n] of these types, and all ways to compute it.
Expected<tune::Task> ProductTask(const ComputeUnit& unit, int64_t m, int64_t k, int64_t n,
                                 const Machine& machine);
/// With a second operand of about `bytes`; `m` rows. Errors: it cannot be built.
Expected<ProductKernel> ProductOf(const ComputeUnit& unit, const TileShape& tile, int64_t m,
                                  int64_t bytes, const Machine& machine);

}  // namespace tenon::driver

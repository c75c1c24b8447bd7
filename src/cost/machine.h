// What a machine can do, as a value: its units of compute, registers, memories and the costs of
// starting work. It is made from a target, so that compiling gives the same bytes everywhere; a
// measured one takes its place only when asked for. Cost estimates (estimate.h), spaces of
// schedules and schedules ask it, and nothing else, about the hardware.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "support/expected.h"
#include "support/hash.h"
#include "target/target.h"

namespace tenon {

/// One kind of operation that a worker (a core, an SM) has: acc[m, n] += a[m, k] · b[k, n].
struct ComputeUnit {
  std::string row;  // of the table of tile intrinsics; "": a fused multiply-add of plain vectors
  DType a, b, acc;
  int64_t m = 1, n = 1, k = 1;
  double per_second = 0;  // such operations by one worker

  double FlopsPerSecond() const { return 2.0 * static_cast<double>(m * n * k) * per_second; }
  friend bool operator==(const ComputeUnit&, const ComputeUnit&) = default;
};

/// One level of memory as one worker sees it, and what all workers together get out of it.
struct MemoryRate {
  std::string name;            // "L1", "L2", "L3", "DRAM"; of a GPU "shared", "L2", "global"
  int64_t capacity_bytes = 0;  // of a private level per worker; the last level has no limit
  double worker_bytes_per_second = 0;
  double machine_bytes_per_second = 0;  // of private levels: no limit beyond the workers'
  friend bool operator==(const MemoryRate&, const MemoryRate&) = default;
};

struct Machine {
  TargetRef target;                // never null
  std::vector<ComputeUnit> units;  // plain vectors first, f32 before other types
  std::vector<MemoryRate> memory;  // nearest first
  int64_t registers = 0;           // vector registers of a worker; of a GPU, of a thread
  int64_t vector_bits = 0;         // of one of them
  int64_t workers = 1;             // cores, or SMs; 1 where the target does not say
  int64_t warp = 0;                // threads that run together; 0: a worker is one thread
  double cycles_per_second = 0;
  double fma_latency_cycles = 0;
  double vector_loads_per_cycle = 0;  // broadcasts count as loads
  double loop_cycles = 0;             // of one turn of an innermost loop, beside its work
  double pack_bytes_per_second = 0;   // rearranging, one worker
  double launch_seconds = 0;          // starting a kernel
  double barrier_seconds = 0;         // a fork and join, or a barrier, of two workers and more

  /// Elements of the type in a vector register; at least 1.
  int64_t Lanes(DType type) const;
  /// The plain vector unit for the type: fused multiply-adds of whole vectors. Falls back to that
  /// of f32 where the machine computes the type in it.
  const ComputeUnit& VectorUnit(DType type) const;
  /// The matrix unit with the greatest rate for these operand types, or null.
  const ComputeUnit* MatrixUnit(DType a, DType b, DType acc) const;
  /// The nearest level that a working set of so many bytes fits in, leaving half of it to the rest
  /// of the work: an index of `memory`.
  size_t LevelFor(int64_t working_set_bytes) const;

  /// The preset that follows from a target's features, limits and cache sizes.
  static Machine Of(TargetRef target);

  /// JSON, one line an entry; Parse(ToString()) is the same machine. Errors say where.
  std::string ToString() const;
  static Expected<Machine> Parse(std::string_view text);
  /// Of everything that it says.
  Hash128 Hash() const;
  friend bool operator==(const Machine&, const Machine&) = default;
};

}  // namespace tenon

// A machine as it was measured, as a file: what `tenon doctor` writes and --profile reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cost/machine.h"
#include "driver/compile.h"
#include "support/expected.h"

namespace tenon::driver {

/// A register tile of a product on one core, its second operand coming from a level of memory.
struct TileRate {
  DType a, b, acc;
  int64_t rows = 1, vectors = 1;
  std::string level;  // as Machine::memory names it
  double flops_per_second = 0;
};

/// Reading so many bytes again and again, on one core.
struct ReadRate {
  int64_t bytes = 0;
  double bytes_per_second = 0;
};

struct Profile {
  std::string machine;  // tune::MachineKey()
  std::string name;     // of the CPU's model, or of the device and its driver, for people
  int64_t cpus = 1;     // of a device: 1
  /// What planning takes: of a target without a number of cores, with one worker.
  Machine rates;
  // What it was made from, for people:
  std::vector<TileRate> tiles;
  std::vector<ReadRate> reads;
  double call_seconds = 0;       // of a function of a library, by its packed convention
  double fork_join_seconds = 0;  // of a call that all CPUs share; 0: there is one
  double noise = 0;              // a kernel against itself, in parts

  /// JSON; Parse reads it.
  std::string ToString() const;
  /// Errors name the file and what is wrong in it.
  static Expected<Profile> Parse(std::string_view text, const std::string& file);
  /// Of what planning takes, and nothing else.
  std::string Hash() const { return rates.Hash().ToHex(); }
};

/// What plans are made for, and the profile's hash where one said it ("" for a preset).
struct PlannedFor {
  Machine machine;
  std::string profile;
};

/// The target's preset, or what options.profile says of it: a file, or "host", which is this
/// machine, measured once and kept in the cache. Errors: it cannot be read, is of another target,
/// or of another machine than this one without options.any_machine.
Expected<PlannedFor> MachineFor(const CompileOptions& options, const Target& target);

}  // namespace tenon::driver

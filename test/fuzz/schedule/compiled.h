// Schedules as compiled code, many at a time.
#pragma once

#include <string>
#include <vector>

#include "fuzz/schedule/check.h"

namespace tenon::fuzz {

/// A schedule that waits to be compiled with others.
struct Unit {
  uint64_t seed = 0;
  std::string name;  // its function's; unique
  Func func;         // before it was lowered
  Module lowered;
  std::vector<Run> runs;
  Module exported;  // func and what it calls, for a library
};

/// A finding and whose it is.
struct Found {
  uint64_t seed;
  std::string what;
};

/// Compiles all for this machine, runs them with guard pages about their arguments, by teams of one
/// and of several, and compares. The units' target must be one that this machine can run.
std::vector<Found> RunByLlvm(const std::vector<Unit>& units, const Target& target);

/// As C11, by every compiler there is (`compilers`: command lines).
std::vector<Found> RunByC(const std::vector<Unit>& units, const Target& target,
                          const std::vector<std::string>& compilers);

/// As OpenCL C, on the first device; kernels that want what this code generator refuses by design
/// (global memory of their own) are left out, and counted in `left_out`.
std::vector<Found> RunByOpenCl(const std::vector<Unit>& units, const Target& target,
                               size_t* left_out);

/// The seed whose code is running now, for whoever hears of a crash; 0: none.
uint64_t RunningSeed();

}  // namespace tenon::fuzz

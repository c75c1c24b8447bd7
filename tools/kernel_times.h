// What each launch of a library takes that was compiled with --time-kernels.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "program.h"
#include "support/expected.h"

namespace tenon::tools {

struct KernelTime {
  std::string kernel, kind, node;
  int64_t launches = 0;
  double microseconds = 0;            // of all of them
  double flops = 0, bytes = 0;        // of one launch, at typical sizes
  double estimated_microseconds = 0;  // likewise
};

/// Since the library was loaded, in the order of its code; empty where it does not tell.
Expected<std::vector<KernelTime>> KernelTimesOf(const Program& program);

/// What has come since `before`.
std::vector<KernelTime> Since(std::vector<KernelTime> now, const std::vector<KernelTime>& before);

/// A table, the longest first, of `calls` calls.
void PrintKernelTimes(std::vector<KernelTime> times, size_t calls);

nlohmann::ordered_json ToJson(const std::vector<KernelTime>& times);

}  // namespace tenon::tools

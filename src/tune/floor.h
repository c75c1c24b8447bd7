// The least time that a kernel can take on a machine: the roofline model (Williams, Waterman and
// Patterson, "Roofline: an insightful visual performance model", 2009).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "cost/machine.h"
#include "support/expected.h"

namespace tenon::tune {

struct Floor {
  std::string kind;              // of the kernel's anchor: "matmul"
  int64_t flops = 0, bytes = 0;  // of one launch: arithmetic, and what is read and written at least
  double compute_seconds = 0, memory_seconds = 0;

  /// Of one launch.
  double Seconds() const { return std::max(compute_seconds, memory_seconds); }
};

/// Of a task's text (Task::Text) with `team` threads on the machine; `far_weights`: operands come
/// from the farthest memory, else from the nearest level that holds them all. Errors: the text is
/// no kernel.
Expected<Floor> FloorOf(const std::string& text, const Machine& machine, int64_t team,
                        bool far_weights);

}  // namespace tenon::tune

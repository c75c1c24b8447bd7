// A log of tuning, printed.
#pragma once

#include "tune/record.h"

namespace tenon::tools {

/// Kernels with what was tried of them, on each machine and target.
void PrintLog(const tune::LogContents& contents, bool json);
/// The best point of each.
void PrintBest(const tune::LogContents& contents, bool json);

}  // namespace tenon::tools

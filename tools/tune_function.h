// tenon tune KERNEL: a function of loop IR, by its sketches.
#pragma once

#include <atomic>
#include <string>

#include "driver/compile.h"
#include "driver/tune_kernel.h"
#include "support/expected.h"

namespace tenon::tools {

struct FunctionTuning {
  driver::CompileOptions how;   // the file, its target and the machine's profile
  driver::KernelTuning tuning;  // `log` and `done` are set
  std::string log;
  std::string trace;  // takes the best schedule's; "": nobody wants it
  bool json = false, quiet = false;
};

/// Whether a file is a text of loop IR, by its first words.
bool IsLoopText(const std::string& path);
/// A line a trial, and a summary. Errors: the text, the target, the log; no worker can be started.
Status TuneLoopText(const FunctionTuning& how, const std::atomic<bool>& stop);

}  // namespace tenon::tools

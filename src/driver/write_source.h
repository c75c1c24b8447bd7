// Built code as C11 source, its weights in the file or in one of their own.
#pragma once

#include <string>

#include "driver/outputs.h"
#include "support/expected.h"

namespace tenon::driver {

/// The functions, with those that tell C programs what went wrong, without weights; `declarations`
/// stand before everything.
Expected<std::string> SourceOf(const Built& built, const std::string& declarations);

/// output.path and, where it names one, the file of weights (output.params). Of a target whose code
/// is not source it is for reading: without weights.
Expected<Files> PrepareSource(const Built& built, const Output& output);

}  // namespace tenon::driver

// What is wrong with the options of a compilation, found before anything is compiled.
#pragma once

#include <string>

#include "driver/compile.h"
#include "support/expected.h"
#include "target/target.h"

namespace tenon::driver {

/// Whether a name can be that of an exported function: an identifier that a program in C or C++ can
/// declare and that hides no function of C's library.
Status CheckExportName(const std::string& name);

/// What `precision` may be; the default is "fp32".
inline constexpr const char* kPrecisions[] = {"exact", "fp32", "tf32", "bf16", "fp16"};

/// The options with what they leave open filled in: C source is asked for by the format, by the
/// target, or by the file's name, an object by the format or the file's name.
CompileOptions Settled(CompileOptions options);

/// The target that the options name. Errors: networks cannot be compiled for it, options have wrong
/// values or do not go together. No file is looked at: each is wrong usage.
Expected<Target> CheckOptions(const CompileOptions& given);

}  // namespace tenon::driver

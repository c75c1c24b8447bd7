// The header of functions for C programs: those that have signatures of their own (make_packed.h).
#pragma once

#include <string>

namespace tenon::driver {

struct Built;

bool HasPlainFunctions(const Built& built);

/// Declares every plain function with its workspace, its packed form and its error, and what reads
/// weights that have a file of their own.
std::string PlainHeaderText(const Built& built);

}  // namespace tenon::driver

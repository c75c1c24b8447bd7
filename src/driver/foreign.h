// Libraries that this machine cannot run.
#pragma once

#include <string>

namespace tenon::driver {

/// The information text (kernel_abi.h) of a library for a CPU with other features than this
/// machine's; the code that answers needs none of them. Only for a file that tn_module_load found
/// whole and of this ABI version, refusing nothing but its features. Empty: it does not answer.
std::string InfoOfForeign(const std::string& path);

}  // namespace tenon::driver

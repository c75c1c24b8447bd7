// This machine's own C compiler: $CC, or one on the path.
#pragma once

#include <string>

#include "support/expected.h"

namespace tenon::driver {

/// The object of C source for this machine, to be linked with the runtime core, which gets its
/// errors.
Expected<std::string> CompileObject(const std::string& source);

/// A shared library of an object. Where it is open, what nobody defines is the loading process's.
Expected<std::string> SharedLibraryOf(const std::string& object, bool open);

}  // namespace tenon::driver

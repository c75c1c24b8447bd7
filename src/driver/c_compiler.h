// This machine's own C compiler: $CC, or one on the path.
#pragma once

#include <string>

#include "support/expected.h"

namespace tenon::driver {

/// The object of C source for this machine, to be linked with the runtime core, which gets its
/// errors.
Expected<std::string> CompileObject(const std::string& source);

/// A shared library of an object. soname, open: as artifact::LinkRequest has them.
Expected<std::string> SharedLibraryOf(const std::string& object, const std::string& soname,
                                      bool open);

}  // namespace tenon::driver

// Looks at a library's file before it is loaded, so that what is wrong can be said.
#pragma once

namespace tenon::runtime {

/// Null where the open file is a whole ELF shared library for this architecture, and its headers,
/// tables and code are what was written (tenon/library_checksums.hpp); else what is wrong with it,
/// to follow "cannot load 'x': ".
const char* CheckLibraryFile(int fd);

}  // namespace tenon::runtime

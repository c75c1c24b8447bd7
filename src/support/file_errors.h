// What is wrong with a file, in the words of all who read and write files.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "support/diagnostic.h"

namespace tenon {

/// errno as an error: "cannot {what} '{path}': …". No space is a limit that was hit.
Diagnostic ErrnoError(std::string_view what, const std::string& path);
/// Of what is no regular file, by its mode.
Diagnostic NotRegular(const std::string& path, mode_t mode);
bool IsNoSpace(int error);

}  // namespace tenon

#include "support/file_errors.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace tenon {

static const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

bool IsNoSpace(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

Diagnostic ErrnoError(std::string_view what, const std::string& path) {
  const int error = errno;
  std::string message =
      fmt::format("cannot {} '{}': {}", what, path, std::generic_category().message(error));
  return IsNoSpace(error) ? MakeLimitError(std::move(message)) : MakeError(std::move(message));
}

Diagnostic NotRegular(const std::string& path, mode_t mode) {
  return MakeError(fmt::format("expected a regular file but '{}' is {}", path, KindOf(mode)));
}

}  // namespace tenon

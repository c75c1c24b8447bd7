#include "support/written.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace tenon {

Status CheckWritten(const AtomicFile& file) {
  // A full disk, or a quota, may be reported only when a descriptor is closed; the lock on the file
  // stays with the other one.
  const int copy = dup(file.fd());
  if (copy >= 0 && close(copy) == 0) return Ok();
  return MakeLimitError(fmt::format("cannot write '{}': {}", file.temporary_path(),
                                    std::generic_category().message(errno)));
}

}  // namespace tenon

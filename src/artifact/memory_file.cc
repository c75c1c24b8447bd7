#include "artifact/memory_file.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace tenon::artifact {

Expected<MemoryFile> MemoryFile::Create(const std::string& name, std::string_view contents) {
  MemoryFile file(memfd_create(name.c_str(), MFD_CLOEXEC));
  if (file.fd_ < 0)
    return MakeLimitError("cannot create a file in memory: " + std::string(strerror(errno)));
  while (!contents.empty()) {
    ssize_t written = write(file.fd_, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      return MakeLimitError("cannot write a file in memory: " + std::string(strerror(errno)));
    }
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return file;
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

MemoryFile::~MemoryFile() {
  if (fd_ >= 0) close(fd_);
}

std::string MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(fd_); }

}  // namespace tenon::artifact

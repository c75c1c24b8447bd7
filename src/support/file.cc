// Large inputs are mapped, since models and libraries may be larger than memory; pages that have
// been read are let go again while the compiler works its way through.

#include "support/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "support/check.h"
#include "support/file_descriptor.h"
#include "support/file_errors.h"

namespace tenon {

namespace {

// The size of an open file, which must be regular.
Expected<uint64_t> RegularSize(int fd, const std::string& path) {
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoError("stat", path);
  if (!S_ISREG(info.st_mode)) return NotRegular(path, info.st_mode);
  return static_cast<uint64_t>(info.st_size);
}

// Opens a regular file for reading and reports its size.
Expected<FileDescriptor> OpenRegular(const std::string& path, uint64_t* size) {
  // Without O_NONBLOCK the open of a pipe would wait for a writer before it could be refused.
  FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return ErrnoError("open", path);
  TN_ASSIGN_OR_RETURN(*size, RegularSize(fd.get(), path));
  return fd;
}

}  // namespace

Expected<MappedFile> MappedFile::Open(const std::string& path) {
  uint64_t size = 0;
  TN_ASSIGN_OR_RETURN(FileDescriptor fd, OpenRegular(path, &size));
  return OpenDescriptor(fd.get(), path);
}

Expected<MappedFile> MappedFile::OpenDescriptor(int fd, const std::string& path) {
  TN_ASSIGN_OR_RETURN(const uint64_t size, RegularSize(fd, path));
  MappedFile file;
  if (size == 0) return file;
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (address == MAP_FAILED) return ErrnoError("map", path);
  file.data_ = static_cast<const std::byte*>(address);
  file.size_ = size;
  return file;
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::ReleasePages(size_t offset, size_t length) const {
  TN_CHECK(offset <= size_ && length <= size_ - offset);
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t begin = (offset + page - 1) / page * page;
  // The last page of the file counts as whole: what follows its end belongs to nobody.
  const size_t end = offset + length == size_ ? size_ : (offset + length) / page * page;
  if (begin >= end) return;
  // Only advice: where it fails the pages merely stay.
  madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

Expected<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  uint64_t size = 0;
  TN_ASSIGN_OR_RETURN(FileDescriptor fd, OpenRegular(path, &size));
  if (size > max_bytes) {
    return MakeLimitError(
        fmt::format("expected at most {} bytes but '{}' has {}", max_bytes, path, size));
  }
  std::string content(size, '\0');
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = read(fd.get(), content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError("read", path);
    if (n == 0) break;  // it became shorter since the fstat
    done += static_cast<size_t>(n);
  }
  content.resize(done);
  return content;
}

}  // namespace tenon

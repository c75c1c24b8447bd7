// Files, mapped and temporary, with errors that name the path.
//
// Models and libraries may be larger than memory, so they are mapped, and pages that have been read
// are let go again while the compiler works its way through. Writing goes to a temporary file
// beside the target, which is put in its place by one rename:
//
//   model.so.tmp-4711-0   written, its blocks reserved ahead      a reader sees the old model.so
//   rename                one step                                a reader sees the new one
//
// Whoever dies in between, by a signal too, leaves nothing: temporary files are in a table of fixed
// size that a signal handler may walk. Only SIGKILL and a loss of power leave something. Who writes
// a temporary file holds a lock on it, which ends with him, wherever he runs: the next one who
// writes the same target removes those that are not locked.

#include "support/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "support/check.h"

namespace tenon {

namespace {

bool IsNoSpace(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

// errno as an error about `path`.
Diagnostic ErrnoError(std::string_view what, const std::string& path) {
  const int error = errno;
  std::string message =
      fmt::format("cannot {} '{}': {}", what, path, std::generic_category().message(error));
  return IsNoSpace(error) ? MakeLimitError(std::move(message)) : MakeError(std::move(message));
}

const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Diagnostic NotRegular(const std::string& path, mode_t mode) {
  return MakeError(fmt::format("expected a regular file but '{}' is {}", path, KindOf(mode)));
}

// An open file, closed once, when this goes; -1: none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// The temporary files there are now, for RemoveTemporaryFiles. Whoever takes a name out of its slot
// owns it, so a handler and a thread never free or unlink the same one. Files beyond the slots are
// only removed by their destructors.
std::atomic<char*> temporary_files[64];

int RememberTemporary(const std::string& path) {
  char* name = strdup(path.c_str());
  for (int i = 0; name && i < static_cast<int>(std::size(temporary_files)); ++i) {
    char* empty = nullptr;
    if (temporary_files[i].compare_exchange_strong(empty, name)) return i;
  }
  free(name);
  return -1;
}

void ForgetTemporary(int slot) {
  if (slot >= 0) free(temporary_files[slot].exchange(nullptr));
}

constexpr std::string_view kTemporaryMark = ".tmp-";

// What the names of a target's temporary files begin with: they must not be longer than file
// systems allow where the target's is not.
std::string TemporaryPrefix(const std::string& target) {
  constexpr size_t kNumbers = 24;  // "4711-0"
  const size_t name = target.rfind('/') + 1;
  const size_t room = NAME_MAX - kTemporaryMark.size() - kNumbers;
  return target.substr(0, name) + target.substr(name, room) + std::string(kTemporaryMark);
}

// "4711-0"
bool IsTwoNumbers(std::string_view text) {
  const size_t dash = text.find('-');
  if (dash == 0 || dash == std::string_view::npos || dash + 1 == text.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i != dash && !std::isdigit(static_cast<unsigned char>(text[i]))) return false;
  }
  return true;
}

// Whether nobody else holds the file, who is writing it; then it is locked by this descriptor.
// File systems without locks: `without`.
bool Lock(int fd, bool without) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
  return errno != EWOULDBLOCK && without;
}

// Temporary files of that prefix whose writers are gone.
void RemoveLeftovers(const std::string& prefix) {
  const size_t name = prefix.rfind('/') + 1;
  const std::string directory = name == 0 ? "." : prefix.substr(0, name);
  const std::string_view begin = std::string_view(prefix).substr(name);
  const std::unique_ptr<DIR, decltype(&closedir)> entries(opendir(directory.c_str()), &closedir);
  if (!entries) return;
  while (const dirent* entry = readdir(entries.get())) {
    const std::string_view found = entry->d_name;
    if (!found.starts_with(begin) || !IsTwoNumbers(found.substr(begin.size()))) continue;
    const int at = dirfd(entries.get());
    const FileDescriptor file(
        openat(at, entry->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    if (file.get() >= 0 && Lock(file.get(), false)) unlinkat(at, entry->d_name, 0);
  }
}

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

void RemoveTemporaryFiles() {
  for (std::atomic<char*>& slot : temporary_files) {
    char* name = slot.exchange(nullptr);
    if (!name) continue;
    unlink(name);
    // Back into its slot, where the file's owner frees it; a signal handler must not.
    char* empty = nullptr;
    slot.compare_exchange_strong(empty, name);
  }
}

Expected<AtomicFile> AtomicFile::Create(const std::string& path, mode_t mode) {
  std::string target = path;
  struct stat info;
  if (stat(path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode)) return NotRegular(path, info.st_mode);
    // rename() would replace a symbolic link itself.
    std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), &free);
    if (real) target = real.get();
  }
  const std::string prefix = TemporaryPrefix(target);
  RemoveLeftovers(prefix);
  static std::atomic<uint32_t> counter = 0;
  for (;;) {
    std::string temporary = fmt::format("{}{}-{}", prefix, getpid(), counter++);
    const int fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0 && errno != EEXIST) return ErrnoError("create", path);
    // Before it was locked, somebody may have taken it for a leftover.
    if (fd >= 0 && Lock(fd, true) && fstat(fd, &info) == 0 && info.st_nlink > 0) {
      const int slot = RememberTemporary(temporary);
      return AtomicFile(std::move(target), std::move(temporary), fd, slot);
    }
    if (fd >= 0) close(fd);
  }
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_path_(std::move(other.temporary_path_)),
      fd_(std::exchange(other.fd_, -1)),
      slot_(std::exchange(other.slot_, -1)),
      size_(other.size_) {}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_path_.c_str());
  ForgetTemporary(slot_);
}

Diagnostic AtomicFile::Fail(std::string_view what) const { return ErrnoError(what, path_); }

Status AtomicFile::Append(std::span<const std::byte> bytes) { return WriteAt(size_, bytes); }

Status AtomicFile::WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
  TN_CHECK(fd_ >= 0, "write after Commit");
  const uint64_t end = offset + bytes.size();
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail("write");
    offset += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  // Writers of disjoint ranges below size() must not touch it.
  if (end > size_) size_ = end;
  return Ok();
}

Status AtomicFile::Resize(uint64_t size) {
  TN_CHECK(fd_ >= 0, "resize after Commit");
  // With its blocks, where the file system can: who writes through a mapping learns of a full disk
  // by a signal only.
  const auto bytes = static_cast<off_t>(size);
  if (size > size_ && fallocate(fd_, 0, 0, bytes) != 0 && IsNoSpace(errno)) return Fail("resize");
  if (ftruncate(fd_, bytes) != 0) return Fail("resize");
  size_ = size;
  return Ok();
}

Status AtomicFile::Commit() {
  TN_CHECK(fd_ >= 0, "Commit twice");
  const bool closed = close(std::exchange(fd_, -1)) == 0;
  Status status = Ok();
  if (!closed || rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    status = Fail("write");
    unlink(temporary_path_.c_str());
  }
  ForgetTemporary(std::exchange(slot_, -1));
  return status;
}

Status WriteFile(const std::string& path, std::string_view content) {
  TN_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  TN_RETURN_IF_ERROR(file.Append(content));
  return file.Commit();
}

}  // namespace tenon

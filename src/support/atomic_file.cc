// Writing goes to a temporary file beside the target, which is put in its place by one rename:
//
//   model.so.tmp-4711-0   written, its blocks reserved ahead      a reader sees the old model.so
//   rename                one step                                a reader sees the new one
//
// Whoever dies in between, by a signal too, leaves nothing: temporary files are in a table of fixed
// size that a signal handler may walk. Only SIGKILL and a loss of power leave something. Who writes
// a temporary file holds a lock on it, which ends with him, wherever he runs: the next one who
// writes the same target removes those that are not locked. Several files take several renames; a
// record of them stands in the folder meanwhile, and who finds one of the dead finishes his work.

#include "support/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "support/check.h"
#include "support/file_errors.h"
#include "support/leftovers.h"

namespace tenon {

namespace {

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

// While several files are put in their places a signal leaves them to the next process.
std::atomic<int> commits_under_way;
struct CommitUnderWay {
  CommitUnderWay() { ++commits_under_way; }
  CommitUnderWay(const CommitUnderWay&) = delete;
  CommitUnderWay& operator=(const CommitUnderWay&) = delete;
  ~CommitUnderWay() { --commits_under_way; }
};

}  // namespace

void RemoveTemporaryFiles() {
  if (commits_under_way > 0) return;
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
  ClearLeftovers(target);
  const std::string prefix = TemporaryPrefix(target);
  static std::atomic<uint32_t> counter = 0;
  for (;;) {
    std::string temporary = fmt::format("{}{}-{}", prefix, getpid(), counter++);
    const int fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0 && errno != EEXIST) return ErrnoError("create", path);
    // Before it was locked, somebody may have taken it for a leftover.
    if (fd >= 0 && LockFile(fd, true) && fstat(fd, &info) == 0 && info.st_nlink > 0) {
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

Status AtomicFile::CheckWritten() const {
  // A full disk, or a quota, may be reported only when a descriptor is closed; the lock on the file
  // stays with the other one.
  const int copy = dup(fd_);
  if (copy >= 0 && close(copy) == 0) return Ok();
  return MakeLimitError(
      fmt::format("cannot write '{}': {}", path_, std::generic_category().message(errno)));
}

Status CommitTogether(std::vector<AtomicFile> files) {
  if (files.size() == 1) return files[0].Commit();
  const CommitUnderWay under_way;
  // By folder: what is renamed there.
  std::map<std::string, std::vector<Rename>> renames;
  for (const AtomicFile& file : files)
    renames[FolderOf(file.path_)].push_back({file.temporary_path_, file.path_});
  std::vector<RenameRecord> records;
  for (const auto& [folder, list] : renames) {
    TN_ASSIGN_OR_RETURN(RenameRecord record, RenameRecord::Create(folder, list));
    records.push_back(std::move(record));
  }
  for (AtomicFile& file : files) TN_RETURN_IF_ERROR(file.Commit());
  return Ok();
}

Status WriteFile(const std::string& path, std::string_view content) {
  TN_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  TN_RETURN_IF_ERROR(file.Append(content));
  return file.Commit();
}

}  // namespace tenon

// Files: read-only mappings for large inputs, whole reads for small ones, and atomic replacement
// for every output.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "support/expected.h"

namespace tenon {

/// A regular file mapped read-only and privately. Moves, does not copy; the bytes stay valid and at
/// the same address until the last owner goes. Several threads may read and release pages at once.
/// Truncating the file while it is mapped is outside the contract: a read beyond the new end raises
/// SIGBUS.
class MappedFile {
 public:
  /// Errors: `path` is missing, unreadable or not a regular file.
  static Expected<MappedFile> Open(const std::string& path);
  /// The same of an open descriptor, which stays the caller's; errors name `path`.
  static Expected<MappedFile> OpenDescriptor(int fd, const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::byte* data() const { return data_; }  // null for an empty file
  size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

  /// Drops the resident pages that lie wholly inside [offset, offset + length); reading them again
  /// reads the file again. Used by what streams through weights larger than the memory it may hold.
  void ReleasePages(size_t offset, size_t length) const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// The whole file. A file of more than `max_bytes` is a limit error; so is a special file an input
/// error.
Expected<std::string> ReadFile(const std::string& path, size_t max_bytes = size_t{1} << 30);

/// Removes the temporary files of every AtomicFile that has not been committed. For the handler of
/// a signal that ends the process, and for leaving it otherwise without destructors:
/// async-signal-safe, and callable while other threads still write.
void RemoveTemporaryFiles();

/// A file written under a temporary name beside its target. Commit() renames it into place; without
/// Commit the destructor removes it. An existing target is replaced as a whole (through a symbolic
/// link, if it is one) and keeps its old content until then. A target that exists and is not a
/// regular file is refused.
class AtomicFile {
 public:
  /// `mode` is reduced by the process's umask, as for any new file.
  static Expected<AtomicFile> Create(const std::string& path, mode_t mode = 0666);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Appends at the file's end as this object sees it (the highest byte written or resized to).
  Status Append(std::span<const std::byte> bytes);
  Status Append(std::string_view text) { return Append(std::as_bytes(std::span(text))); }
  /// Writes at `offset`; a gap before it reads as zeros. Threads may write disjoint ranges below
  /// size() at once.
  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes);
  /// Sets the size; new bytes read as zeros and have their disk space where the file system can.
  Status Resize(uint64_t size);
  uint64_t size() const { return size_; }

  /// Where the bytes are until Commit, for a linker or a mapping that writes by name; such a writer
  /// must open the file without replacing it.
  const std::string& temporary_path() const { return temporary_path_; }
  int fd() const { return fd_; }

  /// Renames into place. The object is finished afterwards, whatever the result.
  Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary_path, int fd, int slot)
      : path_(std::move(path)), temporary_path_(std::move(temporary_path)), fd_(fd), slot_(slot) {}
  Diagnostic Fail(std::string_view what) const;

  std::string path_;
  std::string temporary_path_;
  int fd_ = -1;
  int slot_ = -1;  // in the list of RemoveTemporaryFiles
  uint64_t size_ = 0;
};

/// Create, Append, Commit.
Status WriteFile(const std::string& path, std::string_view content);

}  // namespace tenon

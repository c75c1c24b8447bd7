// Files that are written: each output is replaced as a whole, and several of them together.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/expected.h"

namespace tenon {

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

  /// Says now what may be wrong with the bytes written so far, which some file systems find out
  /// late.
  Status CheckWritten() const;

  /// Renames into place. The object is finished afterwards, whatever the result.
  Status Commit();

 private:
  friend Status CommitTogether(std::vector<AtomicFile> files);
  AtomicFile(std::string path, std::string temporary_path, int fd, int slot)
      : path_(std::move(path)), temporary_path_(std::move(temporary_path)), fd_(fd), slot_(slot) {}
  Diagnostic Fail(std::string_view what) const;

  std::string path_;
  std::string temporary_path_;
  int fd_ = -1;
  int slot_ = -1;  // in the list of RemoveTemporaryFiles
  uint64_t size_ = 0;
};

/// Renames all of them into place, in their order. Whoever sees the last one sees all; a process
/// that is killed on the way leaves files that the next one that writes into their folder puts in
/// their places (leftovers.h), so that files of two outputs do not stay side by side.
Status CommitTogether(std::vector<AtomicFile> files);

/// Create, Append, Commit.
Status WriteFile(const std::string& path, std::string_view content);

}  // namespace tenon

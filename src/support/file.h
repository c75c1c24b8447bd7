// Files that are read: read-only mappings for large inputs, whole reads for small ones.
#pragma once

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

}  // namespace tenon

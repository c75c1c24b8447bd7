// Files without a name: contents in memory that code which wants a path can open.
#pragma once

#include <string>
#include <string_view>

#include "support/expected.h"

namespace tenon::artifact {

/// Moves, does not copy; closes on destruction.
class MemoryFile {
 public:
  /// `name` is for people who look at /proc.
  static Expected<MemoryFile> Create(const std::string& name, std::string_view contents);

  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;
  ~MemoryFile();

  int fd() const { return fd_; }
  /// Keeps the file open for the rest of the process.
  void Leak() { fd_ = -1; }
  /// A path that opens this file in this process, while it lives.
  std::string path() const;

 private:
  explicit MemoryFile(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace tenon::artifact

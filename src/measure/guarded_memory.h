// Memory between two pages that nobody may touch. What a kernel reads or writes before or behind an
// operand ends at once, by a signal; the bytes between the operand and these pages hold a pattern
// that is looked at afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/expected.h"

namespace tenon::measure {

class GuardedMemory {
 public:
  /// The block ends where the page behind it begins, but for its alignment to 64 bytes.
  static Expected<GuardedMemory> Make(size_t bytes);
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&&) = delete;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  /// Whether the pattern beside the block is as it was.
  bool IsWhole() const;

 private:
  GuardedMemory(std::byte* pages, size_t page_bytes, std::byte* data, size_t bytes)
      : pages_(pages), page_bytes_(page_bytes), data_(data), bytes_(bytes) {}
  std::byte* pages_;   // the first of the two guards
  size_t page_bytes_;  // of all, guards included
  std::byte* data_;
  size_t bytes_;
};

/// Writes `message` to `fd` and ends the process with `status` when a guard is touched. Other
/// faults stay what they are.
void ReportTouchedGuards(int fd, const char* message, int status);

}  // namespace tenon::measure

// Memory for generated code that must stay inside it: pages that nobody may touch lie at both ends.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "support/check.h"

namespace tenon::test {

/// `bytes` bytes whose end touches a forbidden page (any access beyond faults) and before whose
/// start, at most a page minus `align` away, is another. Aligned to `align` where bytes is a
/// multiple of it. Filled with 0xFF: NaN as a float, -1 as an integer.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t bytes) : bytes_(bytes) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t inner = (bytes + page - 1) / page * page;
    mapped_ = inner + 2 * page;
    map_ =
        static_cast<char*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    TN_CHECK(map_ != MAP_FAILED);
    if (inner > 0) TN_CHECK(mprotect(map_ + page, inner, PROT_READ | PROT_WRITE) == 0);
    data_ = map_ + page + inner - bytes;
    if (bytes > 0) std::memset(map_ + page, 0xFF, inner);
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes() { munmap(map_, mapped_); }

  void* data() const { return data_; }
  size_t size() const { return bytes_; }
  /// True when the bytes before the start, up to the page, are as they were: nothing was written
  /// there.
  bool FrontIntact() const {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    for (const char* p = map_ + page; p < data_; ++p) {
      if (static_cast<unsigned char>(*p) != 0xFF) return false;
    }
    return true;
  }

 private:
  size_t bytes_, mapped_ = 0;
  char* map_ = nullptr;
  char* data_ = nullptr;
};

/// The same as an array of T.
template <class T>
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t n) : bytes_(n * sizeof(T)), n_(n) {}
  explicit GuardedBuffer(const std::vector<T>& values) : GuardedBuffer(values.size()) {
    if (n_ > 0) std::memcpy(data(), values.data(), n_ * sizeof(T));
  }
  T* data() const { return static_cast<T*>(bytes_.data()); }
  size_t size() const { return n_; }
  T& operator[](size_t i) const { return data()[i]; }
  std::vector<T> ToVector() const { return std::vector<T>(data(), data() + n_); }
  bool FrontIntact() const { return bytes_.FrontIntact(); }

 private:
  GuardedBytes bytes_;
  size_t n_;
};

}  // namespace tenon::test

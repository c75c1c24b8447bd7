// The indices of one access.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tenon::interp {

/// So many numbers; where they are few, as nearly always, they take no memory of their own.
class Indices {
 public:
  explicit Indices(size_t size) : size_(size), many_(size > kFew ? size : 0) {}

  size_t size() const { return size_; }
  int64_t& operator[](size_t i) { return data()[i]; }
  operator std::span<const int64_t>()
      const {  // NOLINT(google-explicit-constructor): as a vector is one
    return {many_.empty() ? few_.data() : many_.data(), size_};
  }

 private:
  static constexpr size_t kFew = 12;

  int64_t* data() { return many_.empty() ? few_.data() : many_.data(); }

  size_t size_;
  std::array<int64_t, kFew>
      few_;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
  std::vector<int64_t> many_;
};

}  // namespace tenon::interp

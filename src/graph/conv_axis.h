// A convolution along one axis, in numbers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::graph {

/// Output o reads element o · stride + tap · dilation - begin at each tap; before and behind the
/// `size` elements of the map lies padding.
struct ConvAxis {
  int64_t size = 0, outputs = 0, stride = 1, dilation = 1, begin = 0;

  /// Whether some output reads an element of the map at that tap.
  bool Meets(int64_t tap) const {
    const int64_t at = tap * dilation - begin;
    const int64_t first = std::max<int64_t>(0, (-at + stride - 1) / stride);
    return first < outputs && first * stride + at < size;
  }
};

}  // namespace tenon::graph

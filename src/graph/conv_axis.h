// A convolution along one axis, in numbers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::graph {

/// Output o reads element o · stride + tap · dilation - begin at each of its taps; beyond the map's
/// `size` lies padding.
struct ConvAxis {
  int64_t size, outputs, taps, stride, dilation, begin;

  /// Whether some output reads an element of the map at that tap.
  bool Meets(int64_t tap) const {
    const int64_t at = tap * dilation - begin;
    const int64_t first = std::max<int64_t>(0, (-at + stride - 1) / stride);
    return first < outputs && first * stride + at < size;
  }
};

}  // namespace tenon::graph

// Sums of products and windows over images, which several families draw.
#pragma once

#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

/// A sum of n products of elements of x and w.
Value SumOfProducts(const Value& x, const Value& w, double n, Elem result);

/// Attributes of a window over the spatial axes, and the sizes that come out; nothing where it is
/// larger than what it goes over.
struct Window {
  Ints64 kernel, strides, dilations, pads;
  Dims dims;
  double taps = 1;
};
std::optional<Window> AnyWindow(Maker& m, const Value& x, bool dilate, bool transposed = false);

/// [N, C, D…] with few, fixed channels.
Value Image(Maker& m, Elem t, double lo, double hi, size_t max_rank = 4);

}  // namespace tenon::fuzz

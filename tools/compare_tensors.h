// Whether results are what they should be.
#pragma once

#include <string>

#include "tensor.h"

namespace tenon::tools {

struct Tolerance {
  double relative = 1e-4;
  double absolute = 1e-5;
};

/// "[0, 3, 7]": the place of an element, given its number in row-major order.
std::string IndexText(int64_t flat, std::span<const int64_t> shape);

/// "" where got equals want: the same type and shape, and every element within
/// absolute + relative * |want|, NaN equal to NaN; else a line that says how they differ.
std::string Difference(const Tensor& got, const Tensor& want, const Tolerance& tolerance);

/// The largest |got - want| of tensors that Difference finds equal; 0 where NaN or infinity meets
/// itself.
double WorstDifference(const Tensor& got, const Tensor& want);

}  // namespace tenon::tools

// Small integers for products of matrices: exact in every type and order of sums.
#pragma once

#include <vector>

#include "interp/interp.h"

namespace tenon {

inline int64_t Number(int64_t i) { return (i * 7 + i / 5) % 9 - 4; }

/// Number(from), Number(from + 1), … in the tensor's order.
inline InterpArg Numbers(DType type, std::vector<int64_t> shape, int64_t from) {
  std::vector<double> values;
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(Number(i + from)));
  return InterpArg::Tensor(type, std::move(shape), values);
}

/// Of a matrix that a kernel takes: flat from flatten_storage on.
inline std::vector<int64_t> Shape(bool flat, int64_t rows, int64_t columns) {
  return flat ? std::vector<int64_t>{rows * columns} : std::vector<int64_t>{rows, columns};
}

}  // namespace tenon

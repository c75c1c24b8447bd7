// NumPy's file formats: .npy holds one array, .npz a zip of named ones. What is read is not
// believed: every length is checked against the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/expected.h"
#include "tensor.h"

namespace tenon::tools {

/// The head of an .npy file.
struct NpyHeader {
  tn_dl_data_type dtype = {};
  bool fortran_order = false;
  std::vector<int64_t> shape;
  size_t header_bytes = 0;  // before the data
  uint64_t data_bytes = 0;
};

/// How many bytes of a file ParseNpyHeader needs at most.
constexpr size_t kMaxNpyHeader = size_t{1} << 16;

/// Reads the head from a file's first bytes; errors name `file`. Element types: floats of 16, 32
/// and 64 bits, integers of 8 to 64, bool, little-endian; bfloat16 as the ml_dtypes package writes
/// it: elements of 16 bits without a meaning; strings of fixed width (IsText).
Expected<NpyHeader> ParseNpyHeader(std::string_view bytes, const std::string& file);
/// The head that NumPy writes for such a tensor (version 1.0, C order, aligned to 64 bytes).
std::string FormatNpyHeader(tn_dl_data_type dtype, std::span<const int64_t> shape);

/// The same array with its elements, which came in Fortran order, in C order.
Expected<Tensor> FromFortranOrder(const Tensor& columns);
/// An error where a tensor's type cannot be written; `name` is for the message.
Status CheckWritable(const Tensor& tensor, const std::string& name);

/// Fortran order becomes C order.
Expected<Tensor> ReadNpy(const std::string& path);
Expected<NamedTensors> ReadNpz(const std::string& path);

/// Both replace `path` as a whole. The same tensors give the same bytes. Types other than the above
/// are errors.
Status WriteNpy(const std::string& path, const Tensor& tensor);
Status WriteNpz(const std::string& path, const NamedTensors& tensors);

}  // namespace tenon::tools

// Tensors of the command line, behind the runtime's C API.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/expected.h"
#include "tenon/c_api.h"

namespace tenon::tools {

/// What the last failed call of the C API on this thread said.
Diagnostic ApiError();

/// "float32", "int64", "bool"; "string".
std::string ToString(tn_dl_data_type type);
inline bool operator==(tn_dl_data_type a, tn_dl_data_type b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
/// "1x3x224x224"; a scalar is "scalar".
std::string ShapeText(std::span<const int64_t> shape);

/// A counted reference to a compact tensor; empty by default. Copies share.
class Tensor {
 public:
  Tensor() = default;
  /// Takes over one reference.
  explicit Tensor(tn_tensor_t* tensor) : tensor_(tensor) {}
  /// Memory of its own, contents unspecified. Errors: no memory for it, no such device. What is on
  /// another device than the CPU is for calls and copies alone (device.h).
  static Expected<Tensor> Make(tn_dl_data_type dtype, const std::vector<int64_t>& shape,
                               tn_dl_device device = {TN_DL_CPU, 0});

  Tensor(const Tensor& other) : tensor_(other.tensor_) {
    if (tensor_) tn_tensor_retain(tensor_);
  }
  Tensor(Tensor&& other) noexcept : tensor_(std::exchange(other.tensor_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~Tensor() { tn_tensor_free(tensor_); }

  tn_tensor_t* handle() const { return tensor_; }
  tn_dl_data_type dtype() const { return tensor_->dl_tensor.dtype; }
  std::span<const int64_t> shape() const {
    return {tensor_->dl_tensor.shape, static_cast<size_t>(tensor_->dl_tensor.ndim)};
  }
  int64_t num_elements() const;
  std::span<std::byte> bytes() const;

  /// The same bytes as elements of 8-bit floats, where these are u8; else the tensor itself. Arrays
  /// in files are bytes there.
  Expected<Tensor> AsFloat8(tn_dl_data_type type) const;

  /// Element i in row-major order as a double (integers beyond 2^53 are rounded).
  double At(int64_t i) const;
  /// The inverse; the value is rounded to the element's type.
  void Set(int64_t i, double value);

 private:
  tn_tensor_t* tensor_ = nullptr;
};

/// Tensors in order, by name.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
/// The one of that name, or null.
const Tensor* Find(const NamedTensors& tensors, const std::string& name);

/// Whether it is one of the floats of 8 bits.
bool IsFloat8(tn_dl_data_type type);
/// Whether elements are texts of `lanes` code points (of 32 bits) or bytes (8), NULs behind shorter
/// ones, as arrays of NumPy's types `<U` and `|S` are.
inline bool IsText(tn_dl_data_type type) { return type.code == TN_DL_HANDLE && type.bits > 0; }
/// Whether At and Set know the type: floats of 8, 16, 32 and 64 bits, bfloat16,
/// integers of 8 to 64 bits, bool.
bool IsPlainType(tn_dl_data_type type);

}  // namespace tenon::tools

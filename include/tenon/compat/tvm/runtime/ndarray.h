// tvm::runtime::NDArray over Tenon's tensors, header-only. A handle: copies share the array. Errors
// are thrown as tenon::Error, which tvm::runtime::Error names.
#ifndef TVM_RUNTIME_NDARRAY_H_
#define TVM_RUNTIME_NDARRAY_H_

#include <dlpack/dlpack.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tenon/tenon.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tvm {

using Device = DLDevice;

namespace runtime {

using Error = ::tenon::Error;
using ShapeTuple = std::vector<int64_t>;

class NDArray {
 public:
  NDArray() = default;
  NDArray(std::nullptr_t) {}                                       // NOLINT
  NDArray(::tenon::Tensor tensor) : tensor_(std::move(tensor)) {}  // NOLINT

  /// A new compact array, contents unspecified.
  static NDArray Empty(const ShapeTuple& shape, DLDataType dtype, Device device) {
    return ::tenon::Tensor::Empty(shape, Type(dtype), Place(device));
  }
  /// Takes `tensor` over, unless this throws. No copy.
  static NDArray FromDLPack(DLManagedTensor* tensor) {
    tn_tensor_t* object = nullptr;
    ::tenon::detail::Check(detail::FromManaged(tensor, &object));
    return ::tenon::Tensor::Adopt(object);
  }
  /// Over the memory of a compact tensor that the caller keeps. No copy.
  static NDArray FromExternalDLTensor(const DLTensor& tensor) {
    return ::tenon::Tensor::Wrap(static_cast<char*>(tensor.data) + tensor.byte_offset,
                                 {tensor.shape, tensor.shape + tensor.ndim}, Type(tensor.dtype),
                                 Place(tensor.device));
  }
  /// A new array on `device` with a copy of a compact tensor's elements.
  static NDArray NewFromDLTensor(DLTensor* tensor, const Device& device) {
    NDArray result = Empty({tensor->shape, tensor->shape + tensor->ndim}, tensor->dtype, device);
    result.CopyFrom(tensor);
    return result;
  }

  bool defined() const { return static_cast<bool>(tensor_); }
  bool operator==(std::nullptr_t) const { return !defined(); }
  bool operator!=(std::nullptr_t) const { return defined(); }
  void reset() { tensor_ = ::tenon::Tensor(); }

  const DLTensor* operator->() const { return Defined(); }
  DLTensor* operator->() { return Defined(); }
  /// The array as TVM's C functions and compiled functions take it; null where it is undefined.
  DLTensor* View() const { return defined() ? detail::ViewOf(tensor_.handle()) : nullptr; }
  ShapeTuple Shape() const { return tensor_.shape(); }
  DLDataType DataType() const { return Defined()->dtype; }

  /// Exactly the array's bytes, from and to host memory.
  void CopyFromBytes(const void* data, size_t bytes) {
    tensor_.CopyFromBytes(data, static_cast<int64_t>(bytes));
  }
  void CopyToBytes(void* data, size_t bytes) const {
    tensor_.CopyToBytes(data, static_cast<int64_t>(bytes));
  }
  /// Between arrays of as many bytes; a DLTensor must be compact.
  void CopyFrom(const NDArray& other) { tensor_.CopyFrom(other.tensor_); }
  void CopyFrom(const DLTensor* other) { CopyFrom(FromExternalDLTensor(*other)); }
  void CopyTo(const NDArray& other) const { NDArray(other).CopyFrom(*this); }
  void CopyTo(DLTensor* other) const { FromExternalDLTensor(*other).CopyFrom(*this); }
  /// A copy on another device.
  NDArray CopyTo(const Device& device) const {
    NDArray result = Empty(Shape(), DataType(), device);
    result.CopyFrom(*this);
    return result;
  }
  /// This array's memory as another shape and type of no more bytes, without a copy.
  NDArray CreateView(ShapeTuple shape, DLDataType dtype) const {
    auto* view = new Shared{{}, std::move(shape), tensor_};
    view->managed.dl_tensor = *Defined();
    view->managed.dl_tensor.ndim = static_cast<int32_t>(view->shape.size());
    view->managed.dl_tensor.shape = view->shape.data();
    view->managed.dl_tensor.strides = nullptr;
    view->managed.dl_tensor.dtype = dtype;
    view->managed.manager_ctx = view;
    view->managed.deleter = [](DLManagedTensor* self) {
      delete static_cast<Shared*>(self->manager_ctx);
    };
    NDArray result = Owned(view);
    if (result.tensor_.bytes() > tensor_.bytes()) {
      throw Error("ValueError", "a view of " + std::to_string(result.tensor_.bytes()) +
                                    " bytes was asked for of an array of " +
                                    std::to_string(tensor_.bytes()));
    }
    return result;
  }
  /// For others to take over: the array lives until they call its deleter.
  DLManagedTensor* ToDLPack() const {
    auto* view = new Shared{{*Defined(), nullptr, nullptr}, {}, tensor_};
    view->managed.manager_ctx = view;
    view->managed.deleter = [](DLManagedTensor* self) {
      delete static_cast<Shared*>(self->manager_ctx);
    };
    return &view->managed;
  }

  const ::tenon::Tensor& tensor() const { return tensor_; }

 private:
  DLTensor* Defined() const {
    if (!defined()) throw Error("ValueError", "the array is undefined: nothing was put into it");
    return View();
  }
  struct Shared {
    DLManagedTensor managed;
    ShapeTuple shape;
    ::tenon::Tensor tensor;
  };
  static NDArray Owned(Shared* view) {
    try {
      return FromDLPack(&view->managed);
    } catch (...) {
      delete view;
      throw;
    }
  }
  static ::tenon::DataType Type(DLDataType type) { return {type.code, type.bits, type.lanes}; }
  static ::tenon::Device Place(Device device) { return {device.device_type, device.device_id}; }

  ::tenon::Tensor tensor_;
};

}  // namespace runtime

using runtime::NDArray;

}  // namespace tvm

#endif  // TVM_RUNTIME_NDARRAY_H_

// tvm::runtime::PackedFunc over the functions of a Tenon module, header-only.
#ifndef TVM_RUNTIME_PACKED_FUNC_H_
#define TVM_RUNTIME_PACKED_FUNC_H_

#include <tvm/runtime/ndarray.h>
#include <tenon/tenon.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace tvm::runtime {

/// What a call gave: nothing, an array, several, or a number.
class TVMRetValue {
 public:
  TVMRetValue() = default;
  explicit TVMRetValue(::tenon::Result result) : result_(std::move(result)) {}

  operator NDArray() const { return static_cast<::tenon::Tensor>(result_); }  // NOLINT
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  operator T() const {  // NOLINT
    const tn_ffi_any& value = *result_.raw();
    if (value.type_index == TN_FFI_FLOAT) return static_cast<T>(value.u.v_float64);
    return static_cast<T>(result_.AsInt());
  }
  /// How many arrays there are, and each of them.
  size_t size() const { return result_.size(); }
  NDArray operator[](size_t index) const { return result_[index]; }

 private:
  mutable ::tenon::Result result_;
};

/// A function of a module; false where there is none.
class PackedFunc {
 public:
  PackedFunc() = default;
  PackedFunc(std::nullptr_t) {}  // NOLINT
  explicit PackedFunc(::tenon::Function function) : function_(function.raw()) {}

  /// Arguments are NDArray, DLTensor* and numbers: the inputs, then all outputs or none.
  template <class... Args>
  TVMRetValue operator()(Args&&... args) const {
    if (function_ == nullptr) throw Error("RuntimeError", "the function that is called is null");
    return TVMRetValue(::tenon::Function(function_)(Argument(args)...));
  }

  bool operator==(std::nullptr_t) const { return function_ == nullptr; }
  bool operator!=(std::nullptr_t) const { return function_ != nullptr; }
  explicit operator bool() const { return function_ != nullptr; }

 private:
  static const ::tenon::Tensor& Argument(const NDArray& array) { return array.tensor(); }
  static ::tenon::Tensor Argument(const TVMRetValue& value) { return NDArray(value).tensor(); }
  template <class T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_pointer_v<T>, int> = 0>
  static T Argument(T value) {
    return value;
  }

  tn_packed_fn function_ = nullptr;
};

/// A PackedFunc whose arguments and result are checked by the C++ compiler.
template <class Signature>
class TypedPackedFunc;

template <class R, class... Args>
class TypedPackedFunc<R(Args...)> {
 public:
  TypedPackedFunc() = default;
  TypedPackedFunc(PackedFunc function) : function_(function) {}  // NOLINT

  R operator()(Args... args) const {
    if constexpr (std::is_void_v<R>) {
      function_(args...);
    } else {
      return function_(args...);
    }
  }
  const PackedFunc& packed() const { return function_; }
  bool operator==(std::nullptr_t) const { return function_ == nullptr; }
  bool operator!=(std::nullptr_t) const { return function_ != nullptr; }

 private:
  PackedFunc function_;
};

}  // namespace tvm::runtime

#endif  // TVM_RUNTIME_PACKED_FUNC_H_

// tvm::runtime::PackedFunc over the functions of a Tenon module, and over functions of C++,
// header-only.
#ifndef TVM_RUNTIME_PACKED_FUNC_H_
#define TVM_RUNTIME_PACKED_FUNC_H_

#include <tvm/runtime/ndarray.h>
#include <tenon/tenon.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tvm::runtime {

class ModuleNode;

/// One argument of a function of C++: an array, a number, a text or a device.
class TVMArgValue {
 public:
  TVMArgValue() = default;
  TVMArgValue(NDArray array) : value_(std::move(array)) {}      // NOLINT
  TVMArgValue(std::string text) : value_(std::move(text)) {}    // NOLINT
  TVMArgValue(const char* text) : value_(std::string(text)) {}  // NOLINT
  TVMArgValue(Device device) : value_(device) {}                // NOLINT
  TVMArgValue(const DLTensor* tensor)                           // NOLINT
      : value_(NDArray::FromExternalDLTensor(*tensor)) {}
  TVMArgValue(DLTensor* tensor)  // NOLINT
      : TVMArgValue(static_cast<const DLTensor*>(tensor)) {}
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  TVMArgValue(T number) {  // NOLINT
    if constexpr (std::is_floating_point_v<T>) {
      value_ = static_cast<double>(number);
    } else {
      value_ = static_cast<int64_t>(number);
    }
  }

  bool IsText() const { return std::holds_alternative<std::string>(value_); }
  operator NDArray() const { return Get<NDArray>("an array"); }        // NOLINT
  operator std::string() const { return Get<std::string>("a text"); }  // NOLINT
  operator Device() const { return Get<Device>("a device"); }          // NOLINT
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  operator T() const {  // NOLINT
    if (const double* real = std::get_if<double>(&value_)) return static_cast<T>(*real);
    return static_cast<T>(Get<int64_t>("a number"));
  }

 private:
  template <class T>
  const T& Get(const char* what) const {
    if (const T* value = std::get_if<T>(&value_)) return *value;
    throw Error("TypeError", std::string("expected ") + what + " as argument but got another kind");
  }
  std::variant<std::monostate, int64_t, double, std::string, Device, NDArray> value_;
};

/// The arguments of a function of C++.
class TVMArgs {
 public:
  explicit TVMArgs(std::vector<TVMArgValue> values) : values_(std::move(values)) {}
  int size() const { return static_cast<int>(values_.size()); }
  const TVMArgValue& operator[](int index) const {
    if (index < 0 || index >= size()) {
      throw Error("TypeError", "argument " + std::to_string(index) + " was asked for but " +
                                   std::to_string(size()) + " were given");
    }
    return values_[static_cast<size_t>(index)];
  }

 private:
  std::vector<TVMArgValue> values_;
};

/// What a call gave: nothing, an array, several, a number or a module.
class TVMRetValue {
 public:
  TVMRetValue() = default;
  explicit TVMRetValue(::tenon::Result result)
      : value_(std::make_shared<::tenon::Result>(std::move(result))) {}
  TVMRetValue& operator=(NDArray array) { return value_ = std::move(array), *this; }
  TVMRetValue& operator=(int64_t number) { return value_ = number, *this; }
  TVMRetValue& operator=(std::shared_ptr<const ModuleNode> module) {
    return value_ = std::move(module), *this;
  }

  operator NDArray() const {  // NOLINT
    if (const NDArray* array = std::get_if<NDArray>(&value_)) return *array;
    return static_cast<::tenon::Tensor>(result());
  }
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  operator T() const {  // NOLINT
    if (const int64_t* number = std::get_if<int64_t>(&value_)) return static_cast<T>(*number);
    const tn_ffi_any& value = *result().raw();
    if (value.type_index == TN_FFI_FLOAT) return static_cast<T>(value.u.v_float64);
    return static_cast<T>(result().AsInt());
  }
  /// A Module; the template waits for the type to be complete.
  template <class M, std::enable_if_t<std::is_same_v<typename M::Node, ModuleNode>, int> = 0>
  operator M() const {  // NOLINT
    const auto* node = std::get_if<std::shared_ptr<const ModuleNode>>(&value_);
    if (!node) throw Error("TypeError", "what the function gave is no module");
    return M(*node);
  }
  /// How many arrays there are, and each of them.
  size_t size() const { return std::holds_alternative<NDArray>(value_) ? 1 : result().size(); }
  NDArray operator[](size_t index) const {
    const NDArray* array = std::get_if<NDArray>(&value_);
    return array && index == 0 ? *array : NDArray(result()[index]);
  }

 private:
  ::tenon::Result& result() const {
    if (const auto* result = std::get_if<std::shared_ptr<::tenon::Result>>(&value_))
      return **result;
    throw Error("TypeError", "what the function gave is of another kind");
  }
  std::variant<std::shared_ptr<::tenon::Result>, NDArray, int64_t,
               std::shared_ptr<const ModuleNode>>
      value_ = std::make_shared<::tenon::Result>();
};

/// A function of a module, or of C++; false where there is none.
class PackedFunc {
 public:
  using FType = std::function<void(TVMArgs args, TVMRetValue* result)>;

  PackedFunc() = default;
  PackedFunc(std::nullptr_t) {}  // NOLINT
  explicit PackedFunc(::tenon::Function function) : function_(std::move(function)) {}
  explicit PackedFunc(FType body) : body_(std::make_shared<const FType>(std::move(body))) {}

  /// Arguments are NDArray, DLTensor* and numbers: the inputs, then all outputs or none. A function
  /// of C++ takes texts and devices too.
  template <class... Args>
  TVMRetValue operator()(Args&&... args) const {
    if (body_) {
      TVMRetValue result;
      (*body_)(TVMArgs({AsValue(args)...}), &result);
      return result;
    }
    if (!function_) throw Error("RuntimeError", "the function that is called is null");
    if constexpr ((IsForCompiled<Args>() && ...)) {
      return TVMRetValue(function_(Argument(args)...));
    } else {
      throw Error("TypeError", "a compiled function takes arrays and numbers");
    }
  }

  bool operator==(std::nullptr_t) const { return !function_ && !body_; }
  bool operator!=(std::nullptr_t) const { return function_ || body_; }
  explicit operator bool() const { return *this != nullptr; }

 private:
  template <class T>
  static constexpr bool IsForCompiled() {
    using Plain = std::decay_t<T>;
    return !std::is_same_v<Plain, std::string> && !std::is_same_v<Plain, Device> &&
           !std::is_same_v<Plain, const char*> && !std::is_same_v<Plain, char*>;
  }
  static const ::tenon::Tensor& Argument(const NDArray& array) { return array.tensor(); }
  static ::tenon::Tensor Argument(const TVMRetValue& value) { return NDArray(value).tensor(); }
  template <class T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_pointer_v<T>, int> = 0>
  static T Argument(T value) {
    return value;
  }
  static TVMArgValue AsValue(const TVMRetValue& value) { return NDArray(value); }
  template <class T>
  static TVMArgValue AsValue(const T& value) {
    return value;
  }

  ::tenon::Function function_;
  std::shared_ptr<const FType> body_;
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

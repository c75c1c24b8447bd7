// Values of a running program, and lists without libstdc++.
#pragma once

#include <stdlib.h>
#include <string.h>

#include <cstdint>
#include <new>
#include <utility>

#include "runtime/core/error.h"
#include "runtime/core/host.h"
#include "runtime/core/object.h"
#include "tenon/program_abi.h"

namespace tenon::runtime {

/// A growing list of plain data, whose memory counts as the call's. Keeps: what lies beyond size()
/// is nobody's. An append that fails says so and changes nothing.
template <class T>
class List {
 public:
  List() = default;
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() { free(static_cast<void*>(data_)); }

  bool Reserve(int64_t n) {
    if (n <= capacity_) return true;
    int64_t wanted = capacity_ * 2 > n ? capacity_ * 2 : n;
    if (wanted > INT64_MAX / 2 / static_cast<int64_t>(sizeof(T))) return false;
    const auto bytes = static_cast<size_t>(wanted) * sizeof(T);
    auto* more = static_cast<T*>(MayTake(static_cast<int64_t>(bytes)) ? malloc(bytes) : nullptr);
    if (!more) return false;
    if (size_ > 0) {
      memcpy(static_cast<void*>(more), static_cast<const void*>(data_),
             static_cast<size_t>(size_) * sizeof(T));
    }
    free(static_cast<void*>(data_));
    data_ = more;
    capacity_ = wanted;
    return true;
  }
  bool Append(const T& value) {
    const T copy = value;  // which may lie in here
    if (!Reserve(size_ + 1)) return false;
    data_[size_++] = copy;
    return true;
  }
  /// New entries are zero.
  bool Resize(int64_t n) {
    if (!Reserve(n)) return false;
    if (n > size_)
      memset(static_cast<void*>(data_ + size_), 0, static_cast<size_t>(n - size_) * sizeof(T));
    size_ = n;
    return true;
  }
  void Clear() { size_ = 0; }
  int64_t size() const { return size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }

 private:
  T* data_ = nullptr;
  int64_t size_ = 0, capacity_ = 0;
};

/// A value and the reference that it has, if it has one. Empty: None.
class Value {
 public:
  Value() : any_{TN_FFI_NONE, 0, {0}} {}
  explicit Value(tn_ffi_object* owned) : any_{owned->type_index, 0, {0}} { any_.u.v_obj = owned; }
  Value(Value&& other) noexcept : any_(other.Release()) {}
  Value& operator=(Value&& other) noexcept {
    Value old(std::move(*this));
    any_ = other.Release();
    return *this;
  }
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  ~Value() {
    if (any_.type_index >= TN_FFI_OBJECT && any_.u.v_obj) runtime::Release(any_.u.v_obj);
  }
  /// Another reference to what `any` refers to.
  static Value Share(const tn_ffi_any& any) {
    Value v;
    v.any_ = any;
    if (any.type_index >= TN_FFI_OBJECT && any.u.v_obj) Retain(any.u.v_obj);
    return v;
  }
  Value Share() const { return Share(any_); }
  static Value Take(tn_ffi_any owned) {
    Value v;
    v.any_ = owned;
    return v;
  }

  bool IsNone() const { return any_.type_index == TN_FFI_NONE; }
  const tn_ffi_any& any() const { return any_; }
  /// Null where it is none.
  const tn_dl_tensor* tensor() const { return TensorOf(any_); }
  const tn_ffi_array* array() const {
    return any_.type_index == TN_FFI_ARRAY ? reinterpret_cast<tn_ffi_array*>(any_.u.v_obj)
                                           : nullptr;
  }
  /// The value without its reference, which is the caller's now.
  tn_ffi_any Release() {
    const tn_ffi_any out = any_;
    any_ = {TN_FFI_NONE, 0, {0}};
    return out;
  }

  static const tn_dl_tensor* TensorOf(const tn_ffi_any& any) {
    if (any.type_index == TN_FFI_TENSOR)
      return &reinterpret_cast<tn_ffi_tensor*>(any.u.v_obj)->dl_tensor;
    return any.type_index == TN_FFI_DL_TENSOR_PTR ? static_cast<tn_dl_tensor*>(any.u.v_ptr)
                                                  : nullptr;
  }

 private:
  tn_ffi_any any_;
};

inline constexpr tn_dl_data_type kInt64Type = {TN_DL_INT, 64, 1}, kBoolType = {TN_DL_BOOL, 8, 1};

template <class T = unsigned char>
T* DataOf(const tn_dl_tensor& t) {
  return reinterpret_cast<T*>(static_cast<char*>(t.data) + t.byte_offset);
}
inline bool SameType(tn_dl_data_type a, tn_dl_data_type b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
inline int64_t CountOf(const tn_dl_tensor& t) {
  int64_t n = 1;
  for (int32_t i = 0; i < t.ndim; ++i) n *= t.shape[i];
  return n;
}

/// 0, or -1 with an error, as all that answers an int32_t here.
int32_t OutOfMemory();
int32_t FailWith(const char* kind, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// A new tensor on the CPU; *data: its elements.
int32_t MakeTensor(tn_dl_data_type type, int32_t ndim, const int64_t* shape, Value* out,
                   void** data);
/// A compact copy.
int32_t CopyTensor(const tn_dl_tensor& from, Value* out);
/// A sequence that takes over the references of `items`.
int32_t MakeSequence(List<tn_ffi_any>* items, Value* out);
/// The number that a tensor of one integer or bool is.
int32_t ReadNumber(const Value& value, const char* what, int64_t* out);
/// A position in 0..size-1 (to `size` with `one_past`), where negative ones count from the end.
int32_t ReadPosition(const Value& value, int64_t size, bool one_past, int64_t* out);

}  // namespace tenon::runtime

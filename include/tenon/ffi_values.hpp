// Arrays and strings of TVM-FFI where a call takes and gives them (docs/calling.md). Header-only
// over ffi_types.h; C++17.
#ifndef TENON_FFI_VALUES_HPP_
#define TENON_FFI_VALUES_HPP_

#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/ffi_types.h"

namespace tenon {
inline namespace v0 {

/// Arrays and strings to be passed to a compiled network, which copies what it is given. They live
/// as long as this, and whoever else is given one must not keep it longer.
class FfiArguments {
 public:
  FfiArguments() = default;
  FfiArguments(const FfiArguments&) = delete;
  FfiArguments& operator=(const FfiArguments&) = delete;

  /// An ffi.Array. What the items refer to stays the caller's.
  tn_ffi_any Array(std::vector<tn_ffi_any> items) {
    ArrayView& view = arrays_.emplace_back();
    view.items = std::move(items);
    view.object.header = Header(TN_FFI_ARRAY);
    view.object.data = view.items.data();
    view.object.size = view.object.capacity = static_cast<int64_t>(view.items.size());
    return Of(&view.object.header);
  }
  /// An ffi.String over bytes that stay the caller's.
  tn_ffi_any String(std::string_view text) {
    StringView& view = strings_.emplace_back();
    view.header = Header(TN_FFI_STR);
    view.bytes = {text.data(), text.size()};
    return Of(&view.header);
  }

 private:
  struct ArrayView {
    std::vector<tn_ffi_any> items;
    tn_ffi_array object{};
  };
  struct StringView {
    tn_ffi_object header;
    tn_ffi_byte_array bytes;
  };
  static tn_ffi_object Header(int32_t type_index) {
    return {TN_FFI_REF_NEW, type_index, 0, nullptr};  // nothing to delete
  }
  static tn_ffi_any Of(tn_ffi_object* object) {
    tn_ffi_any value{};
    value.type_index = object->type_index;
    value.u.v_obj = object;
    return value;
  }

  std::deque<ArrayView> arrays_;
  std::deque<StringView> strings_;
};

/// The bytes of a string, which belong to `value`; false where it is none.
inline bool GetText(const tn_ffi_any& value, std::string_view* out) {
  switch (value.type_index) {
    case TN_FFI_RAW_STR: *out = value.u.v_c_str; return true;
    case TN_FFI_SMALL_STR: *out = {value.u.v_bytes, value.padding}; return true;
    case TN_FFI_STR: {
      const auto* bytes = reinterpret_cast<const tn_ffi_byte_array*>(value.u.v_obj + 1);
      *out = {bytes->data, bytes->size};
      return true;
    }
    default: return false;
  }
}

/// Null where it is none.
inline const tn_ffi_array* GetArray(const tn_ffi_any& value) {
  return value.type_index == TN_FFI_ARRAY ? reinterpret_cast<const tn_ffi_array*>(value.u.v_obj)
                                          : nullptr;
}

}  // namespace v0
}  // namespace tenon

#endif  // TENON_FFI_VALUES_HPP_

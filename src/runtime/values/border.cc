#include "runtime/values/border.h"

#include "tenon/kernel_abi.h"

namespace tenon::runtime {
namespace {

// The string that a value is; false where it is none.
bool TextOf(const tn_ffi_any& any, Text* out) {
  switch (any.type_index) {
    case TN_FFI_RAW_STR: *out = {any.u.v_c_str, static_cast<int64_t>(strlen(any.u.v_c_str))}; break;
    case TN_FFI_SMALL_STR: *out = {any.u.v_bytes, any.padding}; break;
    case TN_FFI_STR: {
      const auto* bytes = reinterpret_cast<const tn_ffi_byte_array*>(any.u.v_obj + 1);
      *out = {bytes->data, static_cast<int64_t>(bytes->size)};
      break;
    }
    default: return false;
  }
  return true;
}

const tn_ffi_array* ArrayOf(const tn_ffi_any& any) {
  return any.type_index == TN_FFI_ARRAY ? reinterpret_cast<tn_ffi_array*>(any.u.v_obj) : nullptr;
}

// The dims of a tensor of strings, from an ffi.Shape or an array of ints.
int32_t ReadShape(const tn_ffi_any& given, List<int64_t>* dims) {
  const tn_ffi_array* array = ArrayOf(given);
  struct Shape {
    const int64_t* data;
    size_t size;
  };
  const auto* shape =
      given.type_index == TN_FFI_SHAPE ? reinterpret_cast<Shape*>(given.u.v_obj + 1) : nullptr;
  if (!array && !shape)
    return Fail("TypeError", "expected the shape of a tensor of strings as integers");
  const int64_t rank = array ? array->size : static_cast<int64_t>(shape->size);
  if (rank > kMaxDims) return Fail("ValueError", "a tensor of strings has too many dims");
  for (int64_t i = 0; i < rank; ++i) {
    if (array && array->data[i].type_index != TN_FFI_INT)
      return Fail("TypeError", "expected the shape of a tensor of strings as integers");
    if (!dims->Append(array ? array->data[i].u.v_int64 : shape->data[i])) return OutOfMemory();
  }
  return 0;
}

int32_t EnterStrings(const tn_ffi_any& given, StringTable* strings, Value* out) {
  const tn_ffi_array* pair = ArrayOf(given);
  const tn_ffi_array* items = pair && pair->size == 2 ? ArrayOf(pair->data[1]) : nullptr;
  if (!items)
    return Fail("TypeError",
                "expected a tensor of strings: an array of its shape and of its elements");
  List<int64_t> dims;
  if (ReadShape(pair->data[0], &dims) != 0) return -1;
  const int64_t bytes = TensorBytes(kInt64Type, static_cast<int32_t>(dims.size()), dims.data());
  if (bytes < 0 || bytes / 8 != items->size)
    return FailWith("ValueError", "expected as many strings as the shape says, but got %lld",
                    static_cast<long long>(items->size));
  void* data = nullptr;
  if (MakeTensor(kInt64Type, static_cast<int32_t>(dims.size()), dims.data(), out, &data) != 0)
    return -1;
  auto* numbers = static_cast<int64_t*>(data);
  for (int64_t i = 0; i < items->size; ++i) {
    Text text;
    if (!TextOf(items->data[i], &text))
      return FailWith("TypeError", "expected strings, but element %lld is none",
                      static_cast<long long>(i));
    if (!IsUtf8(text))
      return FailWith("ValueError", "string %lld is not UTF-8", static_cast<long long>(i));
    if (strings->Add(text, false, &numbers[i]) != 0) return -1;
  }
  return 0;
}

// An object of our own: the bytes lie behind it.
struct String {
  tn_ffi_object header;
  tn_ffi_byte_array bytes;
};

void DeleteString(void* self, int flags) {
  constexpr int kWeak = 2;
  if (flags & kWeak) FreeObject(self);
}

int32_t MakeString(Text text, tn_ffi_any* out) {
  constexpr int64_t kSmall = 7;
  if (text.size <= kSmall) {
    *out = {TN_FFI_SMALL_STR, static_cast<uint32_t>(text.size), {0}};
    if (text.size > 0) memcpy(out->u.v_bytes, text.data, static_cast<size_t>(text.size));
    return 0;
  }
  const auto size = static_cast<size_t>(text.size);
  auto* made =
      static_cast<String*>(AllocateObject(sizeof(String) + size + 1, 64, TN_FFI_STR, DeleteString));
  if (!made) return OutOfMemory();
  auto* bytes = reinterpret_cast<char*>(made + 1);
  memcpy(bytes, text.data, size);
  bytes[size] = 0;
  made->bytes = {bytes, size};
  *out = {TN_FFI_STR, 0, {0}};
  out->u.v_obj = &made->header;
  return 0;
}

void Drop(List<tn_ffi_any>* items) {
  for (tn_ffi_any& item : *items) Value::Take(item);
  items->Clear();
}

int32_t AppendOr(List<tn_ffi_any>* items, Value value) {
  if (!items->Reserve(items->size() + 1)) return OutOfMemory();
  items->Append(value.Release());
  return 0;
}

int32_t LeaveStrings(const tn_dl_tensor& t, const StringTable& strings, Value* out) {
  List<tn_ffi_any> shape, items, pair;
  const int64_t count = CountOf(t);
  if (!shape.Reserve(t.ndim) || !items.Reserve(count) || !pair.Reserve(2)) return OutOfMemory();
  for (int32_t i = 0; i < t.ndim; ++i) {
    shape.Append({TN_FFI_INT, 0, {t.shape[i]}});
  }
  int32_t status = 0;
  for (int64_t i = 0; status == 0 && i < count; ++i) {
    Text text;
    tn_ffi_any made = {TN_FFI_NONE, 0, {0}};
    status = strings.Get(DataOf<int64_t>(t)[i], &text);
    if (status == 0) status = MakeString(text, &made);
    if (status == 0) items.Append(made);
  }
  Value dims, elements;
  if (status == 0) status = MakeSequence(&items, &elements);
  if (status == 0) status = MakeSequence(&shape, &dims);
  Drop(&items);
  if (status != 0) return status;
  pair.Append(dims.Release());
  pair.Append(elements.Release());
  status = MakeSequence(&pair, out);
  Drop(&pair);
  return status;
}

// Each element in turn, by the type that follows.
template <class F>
int32_t ForEach(const tn_ffi_array& array, Words* type, Value* out, F each) {
  List<tn_ffi_any> items;
  const Words element = *type;
  SkipType(type);
  int32_t status = 0;
  for (int64_t i = 0; status == 0 && i < array.size; ++i) {
    Words of = element;
    Value made;
    status = each(array.data[i], &of, &made);
    if (status == 0) status = AppendOr(&items, std::move(made));
  }
  if (status == 0) status = MakeSequence(&items, out);
  Drop(&items);
  return status;
}

// What steps and parts take as it is: parts look at no more than kind, rank and element type.
int32_t CheckTensor(const tn_dl_tensor& t) {
  if (t.ndim > 0 && !t.shape) return Fail("ValueError", "expected a shape but got a null pointer");
  const int64_t bytes =
      t.ndim < 0 || t.ndim > kMaxDims ? -1 : TensorBytes(t.dtype, t.ndim, t.shape);
  if (bytes < 0)
    return Fail("ValueError", "a tensor has a negative dim, too many dims or too many elements");
  if (bytes > 0 && !t.data) return Fail("ValueError", "expected memory but got a null pointer");
  // A device's own checks say what its handles mean.
  const uint32_t element = (t.dtype.bits + 7U) / 8U * t.dtype.lanes;
  const uint64_t rest = (reinterpret_cast<uintptr_t>(t.data) + t.byte_offset) % element;
  if (t.device.device_type == TN_DL_CPU && rest != 0)
    return FailWith("ValueError",
                    "expected data aligned to %u bytes but its address modulo %u is %u", element,
                    element, static_cast<unsigned>(rest));
  for (int32_t i = 0; i < t.ndim; ++i) {
    if (t.shape[i] > kMostOfDim)
      return FailWith("ValueError", "expected shape[%d] in 0..=%lld but got shape[%d]=%lld", i,
                      static_cast<long long>(kMostOfDim), i, static_cast<long long>(t.shape[i]));
  }
  int64_t stride = 1;
  for (int32_t i = t.ndim - 1; t.strides && bytes > 0 && i >= 0; --i) {
    if (t.shape[i] != 1 && t.strides[i] != stride)
      return FailWith("ValueError", "expected compact strides, strides[%d]=%lld but got %lld", i,
                      static_cast<long long>(stride), static_cast<long long>(t.strides[i]));
    stride *= t.shape[i];
  }
  return 0;
}

// Keys and values: vectors of one length.
int32_t EnterMap(const tn_ffi_any& given, Words* type, StringTable* strings, Value* out) {
  const tn_ffi_array* pair = ArrayOf(given);
  if (!pair || pair->size != 2)
    return Fail("TypeError", "expected a map: an array of its keys and of its values");
  Value halves[2];
  List<tn_ffi_any> both;
  if (!both.Reserve(2)) return OutOfMemory();
  for (int i = 0; i < 2; ++i) {
    if (Enter(pair->data[i], type, strings, true, &halves[i]) != 0) return -1;
    const tn_dl_tensor* t = halves[i].tensor();
    if (!t || t->ndim != 1 || t->shape[0] != halves[0].tensor()->shape[0])
      return Fail("ValueError", "expected as many values of a map as keys, in a vector each");
  }
  for (Value& half : halves) both.Append(half.Release());
  const int32_t status = MakeSequence(&both, out);
  Drop(&both);
  return status;
}

}  // namespace

void SkipType(Words* type) {
  switch (type->Next()) {
    case TN_TYPE_TENSOR: type->Next(); break;
    case TN_TYPE_STRINGS: break;
    case TN_TYPE_MAP: SkipType(type); [[fallthrough]];
    default: SkipType(type);
  }
}

int32_t Enter(const tn_ffi_any& given, Words* type, StringTable* strings, bool nested, Value* out) {
  switch (type->Next()) {
    case TN_TYPE_TENSOR: {
      const uint32_t word = type->Next();
      const tn_dl_tensor* t = Value::TensorOf(given);
      if (!t) return Fail("TypeError", "expected a tensor of numbers");
      uint32_t got;
      memcpy(&got, &t->dtype, sizeof got);
      if (got != word) {
        const tn_msg_part said[] = {{TN_MSG_TEXT, 0, {.text = "expected dtype="}},
                                    {TN_MSG_DTYPE, 0, {.i = word}},
                                    {TN_MSG_TEXT, 0, {.text = " but got dtype="}},
                                    {TN_MSG_DTYPE, 0, {.i = got}}};
        return tn_core_raise("TypeError", said, sizeof said / sizeof said[0]);
      }
      if (nested) return CopyTensor(*t, out);
      if (CheckTensor(*t) != 0) return -1;
      *out = Value::Share(given);
      return 0;
    }
    case TN_TYPE_STRINGS: return EnterStrings(given, strings, out);
    case TN_TYPE_SEQUENCE: {
      const tn_ffi_array* array = ArrayOf(given);
      if (!array) return Fail("TypeError", "expected a sequence: an array of its elements");
      return ForEach(*array, type, out, [&](const tn_ffi_any& item, Words* of, Value* made) {
        return Enter(item, of, strings, true, made);
      });
    }
    case TN_TYPE_OPTIONAL:
      if (given.type_index != TN_FFI_NONE) return Enter(given, type, strings, true, out);
      SkipType(type);
      *out = Value();
      return 0;
    default: return EnterMap(given, type, strings, out);
  }
}

int32_t Leave(Value value, Words* type, const StringTable& strings, Value* out) {
  const Words begin = *type;
  switch (type->Next()) {
    case TN_TYPE_TENSOR:
      type->Next();
      *out = std::move(value);
      return out->tensor() ? 0 : Fail("RuntimeError", "a result is no tensor");
    case TN_TYPE_STRINGS:
      if (!value.tensor()) return Fail("RuntimeError", "a result is no tensor of strings");
      return LeaveStrings(*value.tensor(), strings, out);
    case TN_TYPE_OPTIONAL:
      if (!value.IsNone()) return Leave(std::move(value), type, strings, out);
      SkipType(type);
      *out = Value();
      return 0;
    case TN_TYPE_MAP: {
      const tn_ffi_array* pair = value.array();
      if (!pair || pair->size != 2) return Fail("RuntimeError", "a result is no map");
      Value keys, values;
      List<tn_ffi_any> both;
      if (Leave(Value::Share(pair->data[0]), type, strings, &keys) != 0 ||
          Leave(Value::Share(pair->data[1]), type, strings, &values) != 0)
        return -1;
      if (!both.Reserve(2)) return OutOfMemory();
      both.Append(keys.Release());
      both.Append(values.Release());
      const int32_t status = MakeSequence(&both, out);
      Drop(&both);
      return status;
    }
    default: {
      *type = begin;
      type->Next();
      if (!value.array()) return Fail("RuntimeError", "a result is no sequence");
      return ForEach(*value.array(), type, out,
                     [&](const tn_ffi_any& item, Words* of, Value* made) {
                       return Leave(Value::Share(item), of, strings, made);
                     });
    }
  }
}

}  // namespace tenon::runtime

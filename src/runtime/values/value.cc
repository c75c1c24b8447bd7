#include "runtime/values/value.h"

#include <stdarg.h>
#include <stdio.h>

#include "tenon/kernel_abi.h"

namespace tenon::runtime {

int32_t OutOfMemory() { return Fail("MemoryError", "out of memory: values of a program"); }

int32_t FailWith(const char* kind, const char* format, ...) {
  char message[256];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return Fail(kind, message);
}

int32_t MakeTensor(tn_dl_data_type type, int32_t ndim, const int64_t* shape, Value* out,
                   void** data) {
  int32_t word;
  memcpy(&word, &type, sizeof word);
  tn_ffi_any made;
  if (tn_core_tensor_alloc(word, ndim, shape, &made, data) != 0) return -1;
  *out = Value::Take(made);
  return 0;
}

namespace {

void CopyAxis(const tn_dl_tensor& from, int32_t axis, const unsigned char* source, size_t element,
              unsigned char** out) {
  if (axis == from.ndim) {
    memcpy(*out, source, element);
    *out += element;
    return;
  }
  const int64_t step = from.strides[axis] * static_cast<int64_t>(element);
  for (int64_t i = 0; i < from.shape[axis]; ++i)
    CopyAxis(from, axis + 1, source + i * step, element, out);
}

}  // namespace

int32_t CopyTensor(const tn_dl_tensor& from, Value* out) {
  if (from.device.device_type != TN_DL_CPU)
    return Fail("ValueError", "expected tensors on the CPU in sequences and optional values");
  const int64_t bytes = TensorBytes(from.dtype, from.ndim, from.shape);
  if (bytes < 0 || from.ndim > kMaxDims)
    return Fail("ValueError", "a tensor has a negative dim, too many dims or too many elements");
  void* data = nullptr;
  if (MakeTensor(from.dtype, from.ndim, from.shape, out, &data) != 0) return -1;
  if (bytes == 0) return 0;
  if (!from.data) return Fail("ValueError", "a tensor's address is null");
  auto* to = static_cast<unsigned char*>(data);
  if (!from.strides) {
    memcpy(to, DataOf(from), static_cast<size_t>(bytes));
  } else {
    CopyAxis(from, 0, DataOf(from), (from.dtype.bits + 7U) / 8, &to);
  }
  return 0;
}

int32_t MakeSequence(List<tn_ffi_any>* items, Value* out) {
  tn_ffi_any none = {TN_FFI_NONE, 0, {0}};
  tn_ffi_array* array = items->size() <= INT32_MAX
                            ? MakeArray(items->size() > 0 ? items->data() : &none,
                                        static_cast<int32_t>(items->size()))
                            : nullptr;
  if (!array) return OutOfMemory();
  items->Clear();
  *out = Value(&array->header);
  return 0;
}

int32_t ReadNumber(const Value& value, const char* what, int64_t* out) {
  const tn_dl_tensor* t = value.tensor();
  if (!t || CountOf(*t) != 1) return FailWith("ValueError", "expected one number as %s", what);
  const auto* p = DataOf(*t);
  if (t->dtype.code == TN_DL_BOOL) {
    *out = *p != 0;
  } else if (t->dtype.code == TN_DL_INT && t->dtype.bits == 64) {
    memcpy(out, p, 8);
  } else if (t->dtype.code == TN_DL_INT && t->dtype.bits == 32) {
    int32_t number;
    memcpy(&number, p, 4);
    *out = number;
  } else {
    return FailWith("TypeError", "expected an integer of 32 or 64 bits as %s", what);
  }
  return 0;
}

int32_t ReadPosition(const Value& value, int64_t size, bool one_past, int64_t* out) {
  if (ReadNumber(value, "a position in a sequence", out) != 0) return -1;
  const int64_t given = *out;
  if (*out < 0) *out += size;
  if (*out >= 0 && (*out < size || (one_past && *out == size))) return 0;
  return FailWith("IndexError", "position %lld is not in a sequence of %lld",
                  static_cast<long long>(given), static_cast<long long>(size));
}

}  // namespace tenon::runtime

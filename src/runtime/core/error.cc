#include "runtime/core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/core/foreign.h"
#include "runtime/core/host.h"
#include "tenon/devices.h"
#include "tenon/kernel_abi.h"

namespace tenon::runtime {
namespace {

constexpr size_t kKindBytes = 64;
constexpr size_t kMessageBytes = 4001;

// Dynamic thread-local storage (-mtls-dialect=gnu2 and, by its size, never in the static block), so
// that any number of libraries can be loaded. It needs no destructor and no allocation of ours.
struct ErrorSlot {
  char kind[kKindBytes];
  char message[kMessageBytes];
  char text[kKindBytes + kMessageBytes + 2];  // both, where someone asked for them in one
};
thread_local ErrorSlot slot;

void CopyText(const char* text, size_t capacity, char* out) {
  size_t length = strnlen(text, capacity - 1);
  memmove(out, text, length);  // the text may be the slot itself
  out[length] = '\0';
}

// Appends to a buffer of fixed size; what does not fit is cut.
class Text {
 public:
  Text(char* buffer, size_t capacity) : cursor_(buffer), left_(capacity - 1) { *cursor_ = '\0'; }
  void Append(const char* text) {
    size_t length = strnlen(text, left_);
    memcpy(cursor_, text, length);
    cursor_ += length;
    left_ -= length;
    *cursor_ = '\0';
  }
  __attribute__((format(printf, 2, 3))) void Format(const char* format, ...) {
    char piece[64];
    va_list args;
    va_start(args, format);
    vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    Append(piece);
  }

 private:
  char* cursor_;
  size_t left_;
};

const char* DTypeName(int code) {
  switch (code) {
    case TN_DL_INT: return "int";
    case TN_DL_UINT: return "uint";
    case TN_DL_FLOAT: return "float";
    case TN_DL_HANDLE: return "handle";
    case TN_DL_BFLOAT: return "bfloat";
    case TN_DL_COMPLEX: return "complex";
    case TN_DL_BOOL: return "bool";
    case TN_DL_FLOAT8_E3M4: return "float8_e3m4";
    case TN_DL_FLOAT8_E4M3: return "float8_e4m3";
    case TN_DL_FLOAT8_E4M3B11FNUZ: return "float8_e4m3b11fnuz";
    case TN_DL_FLOAT8_E4M3FN: return "float8_e4m3fn";
    case TN_DL_FLOAT8_E4M3FNUZ: return "float8_e4m3fnuz";
    case TN_DL_FLOAT8_E5M2: return "float8_e5m2";
    case TN_DL_FLOAT8_E5M2FNUZ: return "float8_e5m2fnuz";
    case TN_DL_FLOAT8_E8M0FNU: return "float8_e8m0fnu";
    case TN_DL_FLOAT4_E2M1FN: return "float4_e2m1fn";
    default: return nullptr;
  }
}

void AppendDType(Text* text, uint32_t packed) {
  uint32_t code = packed & 0xff, bits = packed >> 8 & 0xff, lanes = packed >> 16;
  const char* name = DTypeName(static_cast<int>(code));
  if (!name) {
    text->Format("dtype(code=%u, bits=%u, lanes=%u)", code, bits, lanes);
    return;
  }
  text->Append(name);
  bool bits_in_name = code == TN_DL_BOOL ? bits == 8 : code >= TN_DL_FLOAT8_E3M4;
  if (!bits_in_name) text->Format("%u", bits);
  if (lanes != 1) text->Format("x%u", lanes);
}

void AppendDevice(Text* text, int64_t type) {
  switch (type) {
#define TN_DEVICE_NAME(id, name, number, handles) \
  case number: return text->Append(name);
    TN_DEVICES(TN_DEVICE_NAME)
#undef TN_DEVICE_NAME
    default: return text->Format("device(type=%lld)", static_cast<long long>(type));
  }
}

void AppendPart(Text* text, const tn_msg_part& part) {
  switch (part.kind) {
    case TN_MSG_TEXT:
    case TN_MSG_C_STRING:  // its address is in u.i, so, on little-endian machines, in u.text
      if (part.u.text) text->Append(part.u.text);
      return;
    case TN_MSG_INT: return text->Format("%lld", static_cast<long long>(part.u.i));
    case TN_MSG_DOUBLE: return text->Format("%g", part.u.f);
    case TN_MSG_DTYPE: return AppendDType(text, static_cast<uint32_t>(part.u.i));
    case TN_MSG_DEVICE_TYPE: return AppendDevice(text, part.u.i);
    default: return text->Format("<part of unknown kind %d>", part.kind);
  }
}

}  // namespace

void SetLocalError(const char* kind, const char* message) {
  CopyText(kind, kKindBytes, slot.kind);
  CopyText(message, kMessageBytes, slot.message);
}

const char* LastError(const char** out_kind) {
  if (out_kind) *out_kind = slot.kind;
  return slot.message;
}

void SetError(const char* kind, const char* message) {
  SetLocalError(kind, message);
  TellError(slot.kind, slot.message);
  const TvmFfi* ffi = FindTvmFfi();
  if (ffi) ffi->error_set_raised_from_c_str(slot.kind, slot.message);
}

int Fail(const char* kind, const char* message) {
  SetError(kind, message);
  return -1;
}

}  // namespace tenon::runtime

extern "C" int32_t tn_core_raise(const char* error_kind, const tn_msg_part* parts,
                                 int32_t num_parts) {
  using namespace tenon::runtime;
  char message[kMessageBytes];
  Text text(message, sizeof message);
  for (int32_t i = 0; i < num_parts; ++i) AppendPart(&text, parts[i]);
  return Fail(error_kind, message);
}

extern "C" int32_t tn_core_raise_at(const tn_msg_part* site, int64_t value1, int64_t value2,
                                    int64_t value3) {
  using namespace tenon::runtime;
  const int64_t values[TN_RAISE_VALUES] = {value1, value2, value3};
  char message[kMessageBytes];
  Text text(message, sizeof message);
  for (int32_t i = 1; i <= site->kind; ++i) {
    tn_msg_part part = site[i];
    if (part.value > 0) part.u.i = values[part.value - 1];
    AppendPart(&text, part);
  }
  return Fail(site->u.text, message);
}

extern "C" const char* tn_core_error_text(void) {
  using namespace tenon::runtime;
  const char* kind = "";
  const char* message = LastError(&kind);
  Text text(slot.text, sizeof slot.text);
  if (*kind) {
    text.Append(kind);
    text.Append(": ");
  }
  text.Append(message);
  return slot.text;
}

// Where values enter and leave a call (program_abi.h says how they look there).
#pragma once

#include "runtime/values/strings.h"

namespace tenon::runtime {

/// Reads words of a program one after the other.
struct Words {
  const uint32_t* at;
  uint32_t Next() { return *at++; }
};

/// The value of a type inside; *type is moved behind it. What is kept of the caller's memory is a
/// copy, but tensors of numbers that are arguments themselves.
int32_t Enter(const tn_ffi_any& given, Words* type, StringTable* strings, bool nested, Value* out);
/// Moves behind a type.
void SkipType(Words* type);
/// The other way.
int32_t Leave(Value value, Words* type, const StringTable& strings, Value* out);

}  // namespace tenon::runtime

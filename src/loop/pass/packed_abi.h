// Words of the packed convention in loop IR: values in memory at a handle, constants, calls of the
// core.
#pragma once

#include <string>
#include <vector>

#include "loop/arguments.h"
#include "loop/func.h"
#include "loop/stmt.h"
#include "target/target.h"

namespace tenon::packed {

inline constexpr int64_t kSlotBytes = 8;  // of a closure

// The layouts of tenon/ffi_types.h, which this layer does not see; a test compares them.
inline constexpr int64_t kAnyBytes = 16, kAnyValue = 8;  // tn_ffi_any: type_index first
inline constexpr int64_t kNone = 0, kInt = 1, kBool = 2, kFloat = 3, kDlTensorPtr = 7, kRawStr = 8,
                         kTensor = 70;
inline constexpr int64_t kObjectHeaderBytes = 24;  // a tensor object's DLTensor stands behind it
inline constexpr int64_t kCpu = 1;                 // a DLDeviceType

using tenon::kDeviceTypeAttr;
/// Whether the memory of that device has handles in the place of addresses.
bool HasHandles(const PrimFunc& func);
/// Data of the library (tenon/kernel_abi.h): its device code, and what is loaded of it.
inline constexpr const char* kDeviceCode = "tn_blob_device_code";
inline constexpr const char* kDeviceState = "tn_blob_device_state";
/// … and which weights it reads there.
inline constexpr const char* kDeviceWeightsTable = "tn_blob_device_weights";
/// The offsets of what host functions for a device have there, each once: their order is that of
/// the table.
std::vector<int64_t> DeviceWeightOffsets(const Module& module);
/// On a host function: what it launches follows from what it is called with, but for what lies in
/// tensors, and there is more than one launch (TN_CALL_REPEATS).
inline constexpr const char* kRepeatsAttr = "repeats";
inline constexpr int64_t kCallRepeats = 1;
/// On a host function for a device: in how many places it waits for what the device computes, and
/// how many of them are in loops.
inline constexpr const char* kWaitsAttr = "waits";
inline constexpr const char* kWaitsInLoopsAttr = "waits_in_loops";

/// Where the fields of a DLTensor are.
struct TensorFields {
  int64_t data, device_type, ndim, dtype, shape, strides, byte_offset;
};
inline constexpr TensorFields kFields64 = {0, 8, 16, 20, 24, 32, 40};
inline constexpr TensorFields kFields32 = {0, 4, 12, 16, 20, 24, 32};  // pointers of 32 bits

inline Expr I32(int64_t v) { return IntConst::Make(DType::Int(32), v); }
inline Expr I64(int64_t v) { return IntConst::Make(DType::Int(64), v); }
inline Expr Text(std::string s) { return StringConst::Make(std::move(s)); }

/// handle + bytes
inline Expr At(Expr handle, int64_t bytes) {
  return Call::Make(Intrinsic::kPtrOffset, {std::move(handle), IndexConst(bytes)});
}
inline Expr LoadAt(DType type, Expr handle, int64_t bytes) {
  return Call::Make(Intrinsic::kPtrLoad, {std::move(handle), IndexConst(bytes)}, type);
}
inline Stmt StoreAt(Expr handle, int64_t bytes, Expr value) {
  std::vector<Expr> args = {std::move(handle), IndexConst(bytes), std::move(value)};
  return Evaluate::Make(Call::Make(Intrinsic::kPtrStore, std::move(args), DType::Int(32)));
}
/// A handle as an integer.
inline Expr Bits(Expr handle) {
  return Call::Make(Intrinsic::kReinterpret, {std::move(handle)}, DType::Int(64));
}
/// The address of a buffer's first element.
inline Expr AddressOf(const Buffer& buffer) {
  std::vector<Expr> first(buffer->shape.size(), IndexConst(0));
  return Call::Make(Intrinsic::kBufferData, {Load::Make(buffer, std::move(first))},
                    DType::Handle());
}
/// name(args…) of type `result`; handle for a C function without result.
inline Expr CallC(const char* name, std::vector<Expr> args, DType result) {
  args.insert(args.begin(), Text(name));
  return Call::Make(Intrinsic::kExtern, std::move(args), result);
}

/// DLDataType as one word: code | bits << 8 | lanes << 16.
int64_t PackedDType(DType type);

/// The name of a DLDeviceType in messages.
std::string DeviceName(int64_t type);

}  // namespace tenon::packed

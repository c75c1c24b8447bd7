// Where the tensors of a program are. Programs of libraries for devices have parts that run there:
// their tensors stay there, what steps read is brought to the host, and what parts read to the
// device, when it is wanted.
#pragma once

#include "runtime/values/value.h"

namespace tenon::runtime {

/// How tensors get to the other side; compact ones that nobody else has. When a function returns,
/// the copy is done. Behind pointers, so that programs for CPUs need nothing of devices.
struct Places {
  int32_t device_type;  // DLDeviceType of the parts
  int32_t (*to_host)(const tn_dl_tensor& from, Value* out);
  int32_t (*to_device)(const tn_dl_tensor& from, tn_dl_device device, Value* out);
};

/// Which device a call is on, and what is brought there. Without places everything is on the CPU
/// and stays there.
class Home {
 public:
  explicit Home(const Places* places);
  /// The device is that of the first tensor on one, else the first of its kind. An error where
  /// another is on another, or where there are to be none.
  int32_t Find(const tn_ffi_any& given);
  /// Replace tensors on the other side, those of sequences too, by copies on this one.
  int32_t ToHost(Value* value) const { return Bring(value, false); }
  int32_t ToDevice(Value* value) const { return Bring(value, true); }

 private:
  int32_t Bring(Value* value, bool to_device) const;
  int32_t BringTensor(Value* value, bool to_device) const;

  const Places* places_;
  tn_dl_device device_ = {TN_DL_CPU, 0};
  bool found_ = false;
};

/// Runs the library's program; `places` is null where its parts run on the CPU.
int32_t RunProgram(const tn_ffi_any* args, int32_t n, tn_ffi_any* result, const Places* places);

}  // namespace tenon::runtime

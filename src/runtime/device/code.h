// The device code of libraries: loading it, and launches of its kernels.
#pragma once

#include "runtime/device/module.h"
#include "tenon/kernel_abi.h"

namespace tenon::runtime {

/// The library's code on the call's device, loaded there by whoever comes first; null + error.
LoadedCode* CodeOf(const DeviceCall& call);
/// Gives it back; null is none.
void FreeCode(const DeviceDriver& driver, int32_t device_id, LoadedCode* code);

/// Whether a parameter's value is an address (tn_device_kernel's params).
inline bool IsAddress(uint8_t param) {
  return param == 0 || param == TN_PARAM_TENSOR_MAP || param == TN_PARAM_ALIGNED_MAP;
}

/// Sets the launch's function by its arguments.
void ChooseForm(DeviceLaunch* launch);

/// Whether a runtime offers less than this library's core asks for; sets the error then.
bool IsOlder(const tn_host_services& host);

/// Whether every launch is to be waited for (TENON_DEVICE_SYNC=1).
bool QueuesEach();

/// Makes `call` the thread's while this object lives.
class CallScope {
 public:
  explicit CallScope(DeviceCall* call);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  DeviceCall* before_;
};

/// tn_core_device_launch with the drivers of this copy of the runtime.
int32_t LaunchDeviceCode(const tn_device_code* code, int32_t kernel, const int64_t* extents,
                         void** args);
/// Likewise tn_core_device_fetch.
int32_t FetchFromDevice(void* into, const void* memory, int64_t bytes);
/// … and tn_core_device_move.
int32_t MoveToOrFromDevice(int32_t device_type, int32_t device_id, void* to, const void* from,
                           int64_t bytes, int32_t to_device);
/// … and tn_core_device_copy.
int32_t CopyOnDevice(int32_t device_type, int32_t device_id, void* to, const void* from,
                     int64_t bytes);

}  // namespace tenon::runtime

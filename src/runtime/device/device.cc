#include "runtime/device/device.h"

#include "runtime/core/error.h"
#include "tenon/c_api.h"
#include "tenon/kernel_abi.h"

namespace tenon::runtime {

const DeviceDriver* FindDriver(int32_t type) {
  static const DeviceDriver* const drivers[] = {&cpu_driver, &null_driver};
  for (const DeviceDriver* driver : drivers) {
    if (driver->type == type) return driver;
  }
  return nullptr;
}

const DeviceDriver* RequireDevice(tn_dl_device device) {
  const DeviceDriver* driver = FindDriver(device.device_type);
  int32_t count = driver ? driver->count() : 0;
  if (device.device_id >= 0 && device.device_id < count) return driver;
  tn_msg_part parts[] = {
      {TN_MSG_TEXT, 0, {"there is no device "}},
      {TN_MSG_DEVICE_TYPE, 0, {nullptr}},
      {TN_MSG_TEXT, 0, {":"}},
      {TN_MSG_INT, 0, {nullptr}},
      {TN_MSG_TEXT, 0, {": this runtime sees "}},
      {TN_MSG_INT, 0, {nullptr}},
      {TN_MSG_TEXT, 0, {" of that kind"}},
  };
  parts[1].u.i = device.device_type;
  parts[3].u.i = device.device_id;
  parts[5].u.i = count;
  tn_core_raise("RuntimeError", parts, 7);
  return nullptr;
}

}  // namespace tenon::runtime

int32_t tn_device_count(int32_t device_type) {
  const auto* driver = tenon::runtime::FindDriver(device_type);
  return driver ? driver->count() : 0;
}

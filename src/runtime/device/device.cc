#include "runtime/device/device.h"

#include <string.h>

#include "runtime/core/error.h"
#include "runtime/core/foreign.h"
#include "tenon/kernel_abi.h"

#if TENON_IN_CORE
#define TENON_IN_RUNTIME 0
#else
#define TENON_IN_RUNTIME 1
#endif

namespace tenon::runtime {
namespace {

/// The streams that this thread has set.
struct CurrentStreams {
  struct Row {
    tn_dl_device device;
    void* stream;  // null: the row is free
  };
  static constexpr int kRows = 16;
  Row rows[kRows];
};
thread_local CurrentStreams current;

bool Same(tn_dl_device a, tn_dl_device b) {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}

int32_t RaiseMissing(tn_dl_device device, const DeviceDriver* driver, int32_t count) {
  const char* missing = driver && count == 0 && driver->missing ? driver->missing() : nullptr;
  tn_msg_part parts[] = {
      {TN_MSG_TEXT, 0, {"there is no device "}},
      {TN_MSG_DEVICE_TYPE, 0, {nullptr}},
      {TN_MSG_TEXT, 0, {":"}},
      {TN_MSG_INT, 0, {nullptr}},
      {TN_MSG_TEXT, 0, {": this runtime sees "}},
      {TN_MSG_INT, 0, {nullptr}},
      {TN_MSG_TEXT, 0, {" of that kind"}},
      {TN_MSG_TEXT, 0, {missing ? ": " : nullptr}},
      {TN_MSG_TEXT, 0, {missing}},
  };
  parts[1].u.i = device.device_type;
  parts[3].u.i = device.device_id;
  parts[5].u.i = count;
  return tn_core_raise("RuntimeError", parts, 9);
}

}  // namespace

const DeviceDriver* FindDriver(int32_t type) {
  static const DeviceDriver* const drivers[] = {
#define TN_DRIVER_0(name)
#define TN_DRIVER_1(name) &name##_driver,
#define TN_DRIVER_IF(name, built) TN_DRIVER_##built(name)
#define TN_DRIVER(name, built) TN_DRIVER_IF(name, built)
#include "runtime/device/drivers.def"
  };
  for (const DeviceDriver* driver : drivers) {
    if (driver->type == type) return driver;
  }
  return nullptr;
}

const DeviceDriver* RequireDevice(tn_dl_device device) {
  const DeviceDriver* driver = FindDriver(device.device_type);
  int32_t count = driver ? driver->count() : 0;
  if (device.device_id >= 0 && device.device_id < count) return driver;
  RaiseMissing(device, driver, count);
  return nullptr;
}

const DeviceDriver* RequireStreams(tn_dl_device device) {
  const DeviceDriver* driver = RequireDevice(device);
  if (!driver || driver->stream_make) return driver;
  tn_msg_part parts[] = {{TN_MSG_DEVICE_TYPE, 0, {nullptr}}, {TN_MSG_TEXT, 0, {" has no streams"}}};
  parts[0].u.i = device.device_type;
  tn_core_raise("ValueError", parts, 2);
  return nullptr;
}

bool IsOutOfMemory() {
  const char* kind = "";
  LastError(&kind);
  return strcmp(kind, "MemoryError") == 0;
}

void* CurrentStream(tn_dl_device device) {
  for (const CurrentStreams::Row& row : current.rows) {
    if (row.stream && Same(row.device, device)) return row.stream;
  }
  const TvmFfi* ffi = FindTvmFfi();
  if (!ffi || !ffi->env_get_stream) return nullptr;
  return ffi->env_get_stream(device.device_type, device.device_id);
}

int32_t SetCurrentStream(tn_dl_device device, void* stream, void** out_before) {
  CurrentStreams::Row* place = nullptr;
  for (CurrentStreams::Row& row : current.rows) {
    const bool is_its = row.stream && Same(row.device, device);
    if (is_its || (!row.stream && !place)) place = &row;
    if (is_its) break;
  }
  if (!place && stream) {
    return Fail("RuntimeError", "a thread has streams set on 16 devices at most");
  }
  if (out_before) *out_before = place ? place->stream : nullptr;
  if (place) *place = {device, stream};
  return 0;
}

}  // namespace tenon::runtime

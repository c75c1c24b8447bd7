// Devices and streams of the C API.
#include <stdio.h>

#include "runtime/device/device.h"
#include "tenon/c_api.h"

using namespace tenon::runtime;

int32_t tn_device_count(int32_t device_type) {
  const DeviceDriver* driver = FindDriver(device_type);
  return driver ? driver->count() : 0;
}

int32_t tn_device_describe(tn_dl_device device, char* out, int64_t bytes) {
  const DeviceDriver* driver = RequireDevice(device);
  if (!driver) return -1;
  if (driver->describe) return driver->describe(device.device_id, out, static_cast<size_t>(bytes));
  snprintf(out, static_cast<size_t>(bytes), "%s", driver->name);
  return 0;
}

int32_t tn_stream_make(tn_dl_device device, void** out_stream) {
  const DeviceDriver* driver = RequireStreams(device);
  return driver ? driver->stream_make(device.device_id, out_stream) : -1;
}

int32_t tn_stream_free(tn_dl_device device, void* stream) {
  if (!stream) return 0;
  const DeviceDriver* driver = RequireStreams(device);
  return driver ? driver->stream_free(device.device_id, stream) : -1;
}

int32_t tn_stream_wait(tn_dl_device device, void* stream) {
  const DeviceDriver* driver = RequireStreams(device);
  return driver ? driver->stream_wait(device.device_id, stream) : -1;
}

int32_t tn_stream_set(tn_dl_device device, void* stream, void** out_before) {
  return RequireStreams(device) ? SetCurrentStream(device, stream, out_before) : -1;
}

int32_t tn_stream_get(tn_dl_device device, void** out_stream) {
  if (!RequireStreams(device)) return -1;
  *out_stream = CurrentStream(device);
  return 0;
}

// Programs whose parts run on a device. In a file of its own: it is what makes a library need
// devices.
#include "runtime/values/places.h"
#include "tenon/kernel_abi.h"
#include "tenon/program_abi.h"

namespace tenon::runtime {
namespace {

int32_t Bytes(const tn_dl_tensor& t, int64_t* out) {
  *out = t.ndim > kMaxDims ? -1 : TensorBytes(t.dtype, t.ndim, t.shape);
  if (*out >= 0) return 0;
  return Fail("ValueError", "a tensor has a negative dim, too many dims or too many elements");
}

int32_t ToHost(const tn_dl_tensor& from, Value* out) {
  int64_t bytes = 0;
  if (Bytes(from, &bytes) != 0) return -1;
  void* data = nullptr;
  if (MakeTensor(from.dtype, from.ndim, from.shape, out, &data) != 0) return -1;
  if (bytes == 0) return 0;
  return tn_core_device_move(from.device.device_type, from.device.device_id, data, DataOf(from),
                             bytes, 0);
}

int32_t ToDevice(const tn_dl_tensor& from, tn_dl_device device, Value* out) {
  int64_t bytes = 0;
  if (Bytes(from, &bytes) != 0) return -1;
  int32_t word;
  memcpy(&word, &from.dtype, sizeof word);
  tn_ffi_any made;
  void* data = nullptr;
  if (tn_core_device_tensor_alloc(device.device_type, device.device_id, word, from.ndim, from.shape,
                                  &made, &data) != 0)
    return -1;
  *out = Value::Take(made);
  if (bytes == 0) return 0;
  return tn_core_device_move(device.device_type, device.device_id, data, DataOf(from), bytes, 1);
}

}  // namespace
}  // namespace tenon::runtime

extern "C" __attribute__((visibility("hidden"))) int32_t tn_program_call_on_device(
    const tn_ffi_any* args, int32_t n, tn_ffi_any* result, int32_t device_type) {
  using namespace tenon::runtime;
  const Places places = {device_type, ToHost, ToDevice};
  return RunProgram(args, n, result, &places);
}

#include "runtime/device/code.h"

#include <stddef.h>
#include <stdlib.h>

#include <atomic>

#include "runtime/core/error.h"
#include "runtime/core/host.h"
#include "runtime/core/os.h"
#include "runtime/core/output.h"
#include "runtime/device/device.h"
#include "runtime/device/tensor.h"

namespace tenon::runtime {
namespace {

static_assert(sizeof(tn_device_state) == TN_DEVICE_STATE_BYTES);
static_assert(sizeof(tn_device_kernel) % alignof(tn_device_image) == 0);

/// A library's code on one device. It stays, as the library does.
struct Loaded {
  void* module;

  /// By the number of the kernel; behind this object.
  void** functions() { return reinterpret_cast<void**>(this + 1); }
};

template <class T>
const T* At(const tn_device_code* code, uint64_t offset) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(code) + offset);
}

const tn_device_kernel* Kernels(const tn_device_code* code) {
  return At<tn_device_kernel>(code, code->struct_bytes);
}

const char* NameOf(const tn_device_code* code, uint32_t kernel) {
  return At<char>(code, Kernels(code)[kernel].name);
}

// "kernel 'add' on cuda:0: " before what went wrong.
int32_t RaiseFor(const tn_device_code* code, uint32_t kernel, int32_t device_id, const char* what,
                 const char* form) {
  const char* kind = "RuntimeError";
  const char* fault = LastError(&kind);
  tn_msg_part parts[] = {
      {TN_MSG_TEXT, 0, {what}},
      {TN_MSG_TEXT, 0, {" '"}},
      {TN_MSG_TEXT, 0, {NameOf(code, kernel)}},
      {TN_MSG_TEXT, 0, {"' ("}},
      {TN_MSG_TEXT, 0, {form}},
      {TN_MSG_TEXT, 0, {") on "}},
      {TN_MSG_DEVICE_TYPE, 0, {nullptr}},
      {TN_MSG_TEXT, 0, {":"}},
      {TN_MSG_INT, 0, {nullptr}},
      {TN_MSG_TEXT, 0, {": "}},
      {TN_MSG_TEXT, 0, {fault}},
  };
  parts[6].u.i = code->device_type;
  parts[8].u.i = device_id;
  return tn_core_raise(kind, parts, 11);
}

// The first image that the device takes; null + error where it takes none.
void* LoadModule(const DeviceDriver& driver, const tn_device_code* code, int32_t device_id,
                 uint32_t kernel) {
  const auto* images = reinterpret_cast<const tn_device_image*>(Kernels(code) + code->num_kernels);
  for (uint32_t i = 0; i < code->num_images; ++i) {
    const auto bytes = static_cast<int64_t>(images[i].bytes);
    void* module = nullptr;
    if (driver.module_load(device_id, At<char>(code, images[i].offset), bytes, &module) == 0) {
      return module;
    }
  }
  const tn_device_image& last = images[code->num_images - 1];
  RaiseFor(code, kernel, device_id, "cannot load the code of kernel", At<char>(code, last.form));
  return nullptr;
}

Loaded* Load(const DeviceDriver& driver, const tn_device_code* code, int32_t device_id,
             uint32_t kernel) {
  const uint32_t count = code->num_kernels;
  auto* loaded = static_cast<Loaded*>(malloc(sizeof(Loaded) + count * sizeof(void*)));
  if (!loaded) {
    SetError("MemoryError", "out of memory");
    return nullptr;
  }
  loaded->module = LoadModule(driver, code, device_id, kernel);
  bool found = loaded->module != nullptr;
  for (uint32_t i = 0; found && i < count; ++i) {
    found = driver.find_function(device_id, loaded->module, NameOf(code, i),
                                 Kernels(code)[i].shared_bytes, &loaded->functions()[i]) == 0;
  }
  if (found) return loaded;
  if (loaded->module) driver.module_free(device_id, loaded->module);
  free(loaded);
  return nullptr;
}

// The code on the device, loaded by whoever comes first; null + error.
Loaded* LoadedOn(const DeviceDriver& driver, const tn_device_code* code, tn_device_state* state,
                 int32_t device_id, uint32_t kernel) {
  std::atomic_ref<void*> slot(state->loaded[device_id]);
  void* loaded = slot.load(std::memory_order_acquire);
  if (loaded) return static_cast<Loaded*>(loaded);
  MutexLock guard(&state->lock);
  loaded = slot.load(std::memory_order_relaxed);
  if (loaded) return static_cast<Loaded*>(loaded);
  Loaded* made = Load(driver, code, device_id, kernel);
  slot.store(made, std::memory_order_release);
  return made;
}

// Whether the thread's latest launch was left out, having no blocks: then a launch that depends on
// it would not know how far what came before is.
thread_local bool left_out;

// Whether there is anything to do; *out_fits whether the driver can be told.
bool ReadExtents(const int64_t* extents, DeviceLaunch* launch, bool* out_fits) {
  *out_fits = true;
  for (int i = 0; i < 6; ++i) {
    if (extents[i] <= 0) return false;
    *out_fits &= extents[i] <= INT32_MAX;
    (i < 3 ? launch->grid : launch->block)[i % 3] = static_cast<uint32_t>(extents[i]);
  }
  return true;
}

}  // namespace

int32_t LaunchDeviceCode(const tn_device_code* code, tn_device_state* state, int32_t kernel,
                         int32_t device_id, const int64_t* extents, void** args) {
  const auto number = static_cast<uint32_t>(kernel);
  const tn_device_kernel& row = Kernels(code)[number];
  DeviceLaunch launch = {};
  bool fits = true;
  const bool alone = left_out;
  left_out = !ReadExtents(extents, &launch, &fits);
  if (left_out) return 0;
  const tn_dl_device device = {code->device_type, device_id};
  const DeviceDriver* driver = RequireDevice(device);
  if (!driver) return -1;
  launch.name = NameOf(code, number);
  if (!fits || device_id >= TN_MAX_DEVICES) {
    SetError("ValueError", fits ? "the device's number is too large" : "too many blocks");
    return RaiseFor(code, number, device_id, "cannot launch kernel", "its extents");
  }
  Loaded* loaded = LoadedOn(*driver, code, state, device_id, number);
  if (!loaded) return -1;
  launch.function = loaded->functions()[number];
  for (int i = 0; i < 3; ++i) launch.cluster[i] = row.cluster[i];
  launch.attributes = row.launch & (alone ? ~TN_LAUNCH_DEPENDENT : ~0);
  launch.shared_bytes = row.shared_bytes;
  launch.stream = CurrentStream(device);
  launch.args = args;
  launch.params = At<uint8_t>(code, row.params);
  launch.num_params = row.num_params;
  return driver->launch(device_id, launch);
}

}  // namespace tenon::runtime

extern "C" int32_t tn_core_device_launch(const tn_device_code* code, tn_device_state* state,
                                         int32_t kernel, int32_t device_id, const int64_t* extents,
                                         void** args) {
  using namespace tenon::runtime;
  const tn_host_services* host = Host();
  const bool has = host && host->struct_bytes > offsetof(tn_host_services, device_launch);
  auto launch = has ? host->device_launch : LaunchDeviceCode;
  const int32_t status = launch(code, state, kernel, device_id, extents, args);
  if (status != 0 && has) TakeError(host);
  return status;
}

extern "C" int32_t tn_core_device_tensor_alloc(int32_t device_type, int32_t device_id,
                                               int32_t dtype_packed, int32_t ndim,
                                               const int64_t* shape, tn_ffi_any* out,
                                               void** out_data) {
  using namespace tenon::runtime;
  const tn_host_services* host = Host();
  const bool has = host && host->struct_bytes > offsetof(tn_host_services, tensor_make);
  const int32_t status = AllocateOutput(dtype_packed, ndim, shape, {device_type, device_id},
                                        has ? host->tensor_make : MakeDeviceTensor, out, out_data);
  if (status != 0 && has) TakeError(host);
  return status;
}

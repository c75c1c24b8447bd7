#include "runtime/device/code.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "runtime/core/error.h"
#include "runtime/core/host.h"
#include "runtime/core/os.h"
#include "runtime/core/output.h"
#include "runtime/device/device.h"
#include "runtime/device/graph.h"
#include "runtime/device/tensor.h"

namespace tenon::runtime {
namespace {

static_assert(sizeof(tn_device_kernel) % alignof(tn_device_image) == 0);

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

const tn_device_image* Images(const tn_device_code* code, uint32_t form) {
  const auto* images = reinterpret_cast<const tn_device_image*>(Kernels(code) + code->num_kernels);
  return images + size_t{form} * code->num_parts;
}

void UnloadModules(const DeviceDriver& driver, int32_t device_id, LoadedCode* loaded) {
  for (uint32_t i = 0; i < loaded->num_parts; ++i) {
    void** module = loaded->modules() + i;
    if (*module) driver.module_free(device_id, *module);
    *module = nullptr;
  }
}

// All parts in one form; none where the device does not take one of them.
bool LoadForm(const DeviceDriver& driver, const tn_device_code* code, int32_t device_id,
              const tn_device_image* images, LoadedCode* loaded) {
  for (uint32_t i = 0; i < code->num_parts; ++i) {
    const auto bytes = static_cast<int64_t>(images[i].bytes);
    const char* image = At<char>(code, images[i].offset);
    if (driver.module_load(device_id, image, bytes, loaded->modules() + i) == 0) continue;
    loaded->modules()[i] = nullptr;
    UnloadModules(driver, device_id, loaded);
    return false;
  }
  loaded->without = images[0].without;
  return true;
}

// In the first form that the device takes. What has no room is right code: the next form would be
// another of the same kernels, which others have not measured.
bool LoadModules(const DeviceDriver& driver, const tn_device_code* code, int32_t device_id,
                 LoadedCode* loaded) {
  const char* form = "";
  for (uint32_t i = 0; i < code->num_images / code->num_parts; ++i) {
    const tn_device_image* images = Images(code, i);
    form = At<char>(code, images[0].form);
    if (LoadForm(driver, code, device_id, images, loaded)) return true;
    if (IsOutOfMemory()) break;
  }
  RaiseFor(code, 0, device_id, "cannot load the code of kernel", form);
  return false;
}

bool FindFunctions(const DeviceDriver& driver, const tn_device_code* code, int32_t device_id,
                   LoadedCode* loaded) {
  for (uint32_t i = 0; i < code->num_kernels; ++i) {
    const tn_device_kernel& row = Kernels(code)[i];
    void* module = loaded->modules()[At<uint32_t>(code, code->part_of)[i]];
    void** forms = loaded->forms(i);
    if (driver.find_function(device_id, module, NameOf(code, i), row.shared_bytes, &forms[0]) != 0)
      return false;
    if (row.aligned == 0) continue;
    if (driver.find_function(device_id, module, At<char>(code, row.aligned), row.shared_bytes,
                             &forms[1]) != 0)
      return false;
  }
  return true;
}

LoadedCode* Load(const DeviceDriver& driver, const tn_device_code* code, int32_t device_id) {
  const size_t pointers = code->num_parts + size_t{2} * code->num_kernels;
  auto* loaded = static_cast<LoadedCode*>(calloc(1, sizeof(LoadedCode) + pointers * sizeof(void*)));
  if (!loaded) {
    SetError("MemoryError", "out of memory");
    return nullptr;
  }
  loaded->num_parts = code->num_parts;
  if (LoadModules(driver, code, device_id, loaded) &&
      FindFunctions(driver, code, device_id, loaded))
    return loaded;
  FreeCode(driver, device_id, loaded);
  return nullptr;
}

thread_local DeviceCall* current_call;

// Whether every launch is waited for, so that what goes wrong on a device has a name.
bool WaitsForEach() {
  static std::atomic<int32_t> known{0};  // 1: no, 2: yes
  int32_t answer = known.load(std::memory_order_relaxed);
  if (answer == 0) {
    const char* text = getenv("TENON_DEVICE_SYNC");
    answer = text && strcmp(text, "1") == 0 ? 2 : 1;
    known.store(answer, std::memory_order_relaxed);
  }
  return answer == 2;
}

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

int32_t Queue(const DeviceCall& call, uint32_t number, const DeviceLaunch& launch) {
  const int32_t id = call.device.device_id;
  if (call.driver->launch(id, launch) != 0) return -1;
  if (!WaitsForEach() || call.capture != 0 || !call.driver->stream_wait) return 0;
  if (call.driver->stream_wait(id, launch.stream) == 0) return 0;
  return RaiseFor(call.given->code, number, id, "kernel", "TENON_DEVICE_SYNC");
}

}  // namespace

bool IsOlder(const tn_host_services& host) {
  if (host.struct_bytes >= sizeof(tn_host_services)) return false;
  SetError("RuntimeError", "the Tenon runtime in the process is older than the library");
  return true;
}

void ChooseForm(DeviceLaunch* launch) {
  bool aligned = launch->forms[1] != nullptr;
  for (uint32_t i = 0; aligned && i < launch->num_params; ++i) {
    uintptr_t address = 0;
    if (!IsAddress(launch->params[i])) continue;
    memcpy(&address, launch->args[i], sizeof address);
    aligned = address % TN_KERNEL_ALIGN == 0;
  }
  launch->function = launch->forms[aligned ? 1 : 0];
}

bool QueuesEach() { return WaitsForEach(); }

void FreeCode(const DeviceDriver& driver, int32_t device_id, LoadedCode* code) {
  if (code) UnloadModules(driver, device_id, code);
  free(code);
}

CallScope::CallScope(DeviceCall* call) : before_(current_call) { current_call = call; }
CallScope::~CallScope() { current_call = before_; }

LoadedCode* CodeOf(const DeviceCall& call) {
  std::atomic<LoadedCode*>& slot = call.module->code[call.device.device_id];
  LoadedCode* loaded = slot.load(std::memory_order_acquire);
  if (loaded) return loaded;
  MutexLock guard(&call.module->loading);
  loaded = slot.load(std::memory_order_relaxed);
  if (loaded) return loaded;
  if (call.capture != 0) {
    SetError("RuntimeError",
             "the stream is being captured into a graph, and the library has not run on its device "
             "yet; call it once before");
    return nullptr;
  }
  LoadedCode* made = Load(*call.driver, call.given->code, call.device.device_id);
  slot.store(made, std::memory_order_release);
  return made;
}

int32_t LaunchDeviceCode(const tn_device_code* code, int32_t kernel, const int64_t* extents,
                         void** args) {
  DeviceCall* call = current_call;
  if (!call) return Fail("RuntimeError", "a launch outside of a call");
  const auto number = static_cast<uint32_t>(kernel);
  const tn_device_kernel& row = Kernels(code)[number];
  DeviceLaunch launch = {};
  bool fits = true;
  // A launch that depends on one that was left out would not know how far what came before is.
  const bool alone = call->left_out;
  call->left_out = !ReadExtents(extents, &launch, &fits);
  if (call->left_out) return 0;
  launch.name = NameOf(code, number);
  if (!fits) {
    SetError("ValueError", "too many blocks");
    return RaiseFor(code, number, call->device.device_id, "cannot launch kernel", "its extents");
  }
  for (uint32_t i = 0; i < 2; ++i) launch.forms[i] = call->code->forms(number)[i];
  for (int i = 0; i < 3; ++i) launch.cluster[i] = row.cluster[i];
  launch.attributes = row.launch & ~call->code->without;
  if (alone) launch.attributes &= ~uint32_t{TN_LAUNCH_DEPENDENT};
  launch.shared_bytes = row.shared_bytes;
  launch.stream = call->stream;
  launch.args = args;
  launch.params = At<uint8_t>(code, row.params);
  launch.num_params = row.num_params;
  if (call->recording) {
    Record(call->recording, launch);
    return 0;
  }
  if (call->held) return Hold(call, launch);
  ChooseForm(&launch);
  return Queue(*call, number, launch);
}

int32_t FetchFromDevice(void* into, const void* memory, int64_t bytes) {
  DeviceCall* call = current_call;
  if (!call) return Fail("RuntimeError", "a wait outside of a call");
  if (call->capture != 0) {
    return Fail("RuntimeError",
                "the stream is being captured into a graph, and what the function launches depends "
                "on what it computes, which cannot be waited for there");
  }
  if (call->held && QueueHeld(call) != 0) return -1;
  return call->driver->copy_to_host(call->device.device_id, into, memory, bytes);
}

int32_t CopyOnDevice(int32_t device_type, int32_t device_id, void* to, const void* from,
                     int64_t bytes) {
  const tn_dl_device device = {device_type, device_id};
  const DeviceDriver* driver = RequireDevice(device);
  if (!driver) return -1;
  if (current_call && current_call->held && QueueHeld(current_call) != 0) return -1;
  return driver->copy_between(device_id, to, device_id, from, bytes, CurrentStream(device));
}

int32_t MoveToOrFromDevice(int32_t device_type, int32_t device_id, void* to, const void* from,
                           int64_t bytes, int32_t to_device) {
  const DeviceDriver* driver = RequireDevice({device_type, device_id});
  if (!driver) return -1;
  return (to_device != 0 ? driver->copy_from_host : driver->copy_to_host)(device_id, to, from,
                                                                          bytes);
}

}  // namespace tenon::runtime

extern "C" int32_t tn_core_device_launch(const tn_device_code* code, int32_t kernel,
                                         const int64_t* extents, void** args) {
  using namespace tenon::runtime;
  const tn_host_services* host = Host();
  auto launch = host && host->device_launch ? host->device_launch : LaunchDeviceCode;
  const int32_t status = launch(code, kernel, extents, args);
  if (status != 0 && launch != LaunchDeviceCode) TakeError(host);
  return status;
}

extern "C" int32_t tn_core_device_fetch(void* into, const void* memory, int64_t bytes) {
  using namespace tenon::runtime;
  const tn_host_services* host = Host();
  if (!host || !host->device_run) return FetchFromDevice(into, memory, bytes);
  if (IsOlder(*host)) return -1;
  const int32_t status = host->device_fetch(into, memory, bytes);
  if (status != 0) TakeError(host);
  return status;
}

extern "C" int32_t tn_core_device_copy(int32_t device_type, int32_t device_id, void* to,
                                       const void* from, int64_t bytes) {
  using namespace tenon::runtime;
  const tn_host_services* host = Host();
  if (!host || !host->device_run) return CopyOnDevice(device_type, device_id, to, from, bytes);
  if (IsOlder(*host)) return -1;
  const int32_t status = host->device_copy(device_type, device_id, to, from, bytes);
  if (status != 0) TakeError(host);
  return status;
}

extern "C" int32_t tn_core_device_move(int32_t device_type, int32_t device_id, void* to,
                                       const void* from, int64_t bytes, int32_t to_device) {
  using namespace tenon::runtime;
  const tn_host_services* host = Host();
  if (!host || !host->device_run)
    return MoveToOrFromDevice(device_type, device_id, to, from, bytes, to_device);
  if (IsOlder(*host)) return -1;
  const int32_t status = host->device_move(device_type, device_id, to, from, bytes, to_device);
  if (status != 0) TakeError(host);
  return status;
}

extern "C" int32_t tn_core_device_tensor_alloc(int32_t device_type, int32_t device_id,
                                               int32_t dtype_packed, int32_t ndim,
                                               const int64_t* shape, tn_ffi_any* out,
                                               void** out_data) {
  using namespace tenon::runtime;
  const tn_host_services* host = Host();
  const bool has = host && host->tensor_make;
  const int32_t status = AllocateOutput(dtype_packed, ndim, shape, {device_type, device_id},
                                        has ? host->tensor_make : MakeDeviceTensor, out, out_data);
  if (status != 0 && has) TakeError(host);
  return status;
}

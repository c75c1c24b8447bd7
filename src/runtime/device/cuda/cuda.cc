// NVIDIA GPUs by the driver API.
//
// Everything happens in each device's primary context, the one that CUDA's own runtime, and with it
// PyTorch, uses. The calling thread's current context is put back after every call (Use). A launch
// on a device that is not current is
//
//   cuCtxGetCurrent       another context, or none
//   cuCtxPushCurrent      the device's
//   cuLaunchKernel        cuLaunchKernelEx where it has clusters, or is cooperative or dependent
//   cuCtxPopCurrent
//
// and without the pushing and popping where PyTorch has made the device current. The driver is
// found at run time (library.h).
#include <stdio.h>

#include "runtime/core/error.h"
#include "runtime/device/cuda/context.h"
#include "tenon/kernel_abi.h"

namespace tenon::runtime {
namespace {

using cuda::Address;
using cuda::Apart;
using cuda::Context;
using cuda::DevicePtr;
using cuda::Library;
using cuda::Raise;
using cuda::Result;
using cuda::Use;

constexpr uint32_t kStaticShared = 48 * 1024;  // more must be asked for

// Calls a function of the driver in the device's context.
#define TN_CALL(id, symbol, of, member, ...)              \
  Use use(id);                                            \
  if (!use.library) return -1;                            \
  const Result result = use.library->member(__VA_ARGS__); \
  return result == 0 ? 0 : Raise(id, symbol, of, result)

int32_t Count() {
  const Library* library = cuda::Find(nullptr);
  return library ? library->devices : 0;
}

const char* Missing() {
  const char* missing = nullptr;
  cuda::Find(&missing);
  return missing;
}

int32_t Describe(int32_t id, char* out, size_t bytes) {
  const Library* library = cuda::Find(nullptr);
  char name[96] = "";
  int32_t device = 0, version = 0, multiprocessors = 0;
  Result result = library->device_get(&device, id);
  if (result == 0) result = library->device_name(name, sizeof name, device);
  if (result == 0) result = library->driver_version(&version);
  if (result == 0)
    result = library->device_attribute(&multiprocessors, cuda::kMultiprocessors, device);
  if (result != 0) return Raise(id, "cuDeviceGetName", nullptr, result);
  snprintf(out, bytes, "%s, %d multiprocessors, CUDA %d.%d", name, multiprocessors, version / 1000,
           version % 1000 / 10);
  return 0;
}

// ---- memory ----

constexpr size_t kNoBytes = 1;  // never an address of nothing: an empty tensor has one too

int32_t Allocated(int32_t id, const char* function, int64_t bytes, Result result, DevicePtr address,
                  void** out) {
  if (result == cuda::kOutOfMemory) {
    char message[96];
    snprintf(message, sizeof message, "out of memory on cuda:%d: %lld bytes were asked for", id,
             static_cast<long long>(bytes));
    return Fail("MemoryError", message);
  }
  if (result != 0) return Raise(id, function, nullptr, result);
  *out = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): CUDA's are numbers
  return 0;
}

size_t SizeOf(int64_t bytes) { return bytes > 0 ? static_cast<size_t>(bytes) : kNoBytes; }

int32_t Allocate(int32_t id, int64_t bytes, void** out) {
  Use use(id);
  if (!use.library) return -1;
  const Apart apart(use.library);
  DevicePtr address = 0;
  const Result result = use.library->allocate(&address, SizeOf(bytes));
  return Allocated(id, "cuMemAlloc", bytes, result, address, out);
}

// What it could report belongs to work that was queued before; the next wait reports it too.
void Free(int32_t id, void* memory) {
  Use use(id, true);
  const Apart apart(use.library);
  if (use.library) use.library->free(Address(memory));
}

// Devices without pools of memory say that they do not support it.
int32_t AllocateOn(int32_t id, int64_t bytes, void* stream, void** out) {
  constexpr int32_t kHasPools = 115;
  int32_t device = 0, has = 0;
  Use use(id);
  if (!use.library) return -1;
  const Library& library = *use.library;
  const bool known = library.allocate_async && library.free_async &&
                     library.device_get(&device, id) == 0 &&
                     library.device_attribute(&has, kHasPools, device) == 0;
  if (!known || has == 0) return Allocate(id, bytes, out);
  const Apart apart(use.library);
  DevicePtr address = 0;
  const Result result = library.allocate_async(&address, SizeOf(bytes), stream);
  return Allocated(id, "cuMemAllocAsync", bytes, result, address, out);
}

// Where memory was not made in a stream's order it goes as other memory.
void FreeOn(int32_t id, void* memory, void* stream) {
  Use use(id, true);
  const Apart apart(use.library);
  if (!use.library) return;
  if (use.library->free_async && use.library->free_async(Address(memory), stream) == 0) return;
  use.library->free(Address(memory));
}

int32_t AllocatePinned(int32_t id, int64_t bytes, void** out) {
  Use use(id);
  if (!use.library) return -1;
  const Apart apart(use.library);
  if (!use.library->allocate_pinned) return Fail("RuntimeError", "the CUDA driver is too old");
  const Result result = use.library->allocate_pinned(out, SizeOf(bytes), 0);
  return result == 0 ? 0 : Raise(id, "cuMemHostAlloc", nullptr, result);
}

void FreePinned(int32_t id, void* memory) {
  Use use(id, true);
  const Apart apart(use.library);
  if (use.library && use.library->free_pinned) use.library->free_pinned(memory);
}

int32_t CopyFromHostAsync(int32_t id, void* target, const void* source, int64_t bytes,
                          void* stream) {
  if (bytes <= 0) return 0;
  TN_CALL(id, "cuMemcpyHtoDAsync", nullptr, to_device, Address(target), source,
          static_cast<size_t>(bytes), stream);
}

int32_t CopyToHostAsync(int32_t id, void* target, const void* source, int64_t bytes, void* stream) {
  if (bytes <= 0) return 0;
  TN_CALL(id, "cuMemcpyDtoHAsync", nullptr, to_host, target, Address(source),
          static_cast<size_t>(bytes), stream);
}

int32_t CopyBetween(int32_t target_id, void* target, int32_t source_id, const void* source,
                    int64_t bytes, void* stream) {
  if (bytes <= 0) return 0;
  const size_t size = static_cast<size_t>(bytes);
  if (target_id == source_id) {
    TN_CALL(target_id, "cuMemcpyDtoDAsync", nullptr, on_device, Address(target), Address(source),
            size, stream);
  }
  Context from = nullptr;
  {
    Use source_use(source_id);
    if (!source_use.library) return -1;
    from = source_use.context();
  }
  TN_CALL(target_id, "cuMemcpyPeerAsync", nullptr, between, Address(target), use.context(),
          Address(source), from, size, stream);
}

// ---- streams and events ----

int32_t StreamMake(int32_t id, void** out) {
  TN_CALL(id, "cuStreamCreate", nullptr, stream_make, out, cuda::kNonBlocking);
}

int32_t StreamFree(int32_t id, void* stream) {
  TN_CALL(id, "cuStreamDestroy", nullptr, stream_free, stream);
}

int32_t StreamWait(int32_t id, void* stream) {
  TN_CALL(id, "cuStreamSynchronize", nullptr, stream_wait, stream);
}

int32_t StreamWaitEvent(int32_t id, void* stream, void* event) {
  TN_CALL(id, "cuStreamWaitEvent", nullptr, stream_wait_event, stream, event, 0);
}

int32_t EventMake(int32_t id, void** out) {
  TN_CALL(id, "cuEventCreate", nullptr, event_make, out, 0);
}

int32_t EventFree(int32_t id, void* event) {
  TN_CALL(id, "cuEventDestroy", nullptr, event_free, event);
}

int32_t EventRecord(int32_t id, void* event, void* stream) {
  TN_CALL(id, "cuEventRecord", nullptr, event_record, event, stream);
}

int32_t EventWait(int32_t id, void* event) {
  TN_CALL(id, "cuEventSynchronize", nullptr, event_wait, event);
}

int32_t EventElapsed(int32_t id, void* from, void* to, float* out_milliseconds) {
  TN_CALL(id, "cuEventElapsedTime", nullptr, event_elapsed, out_milliseconds, from, to);
}

int32_t MarkMake(int32_t id, void** out) {
  TN_CALL(id, "cuEventCreate", nullptr, event_make, out, cuda::kNoTiming);
}

bool MarkDone(int32_t id, void* mark) {
  Use use(id, true);
  const Apart apart(use.library);
  return use.library && use.library->event_query && use.library->event_query(mark) == 0;
}

// Pageable host memory: the driver may return before a copy to the host is done.
int32_t CopyFromHost(int32_t id, void* target, const void* source, int64_t bytes) {
  void* stream = CurrentStream({TN_DEVICE_cuda, id});
  if (CopyFromHostAsync(id, target, source, bytes, stream) != 0) return -1;
  return bytes > 0 ? StreamWait(id, stream) : 0;
}

int32_t CopyToHost(int32_t id, void* target, const void* source, int64_t bytes) {
  void* stream = CurrentStream({TN_DEVICE_cuda, id});
  if (CopyToHostAsync(id, target, source, bytes, stream) != 0) return -1;
  return bytes > 0 ? StreamWait(id, stream) : 0;
}

// ---- code ----

// PTX is a text that ends in 0, a cubin says its own size.
int32_t ModuleLoad(int32_t id, const void* code, int64_t, void** out) {
  Use use(id);
  if (!use.library) return -1;
  const Apart apart(use.library);
  char log[512] = "";
  int32_t options[] = {cuda::kErrorLog, cuda::kErrorLogBytes};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a number in a pointer's place
  void* values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
  const Result result = use.library->module_load(out, code, 2, options, values);
  return result == 0 ? 0 : Raise(id, "cuModuleLoadData", nullptr, result, log);
}

int32_t ModuleFree(int32_t id, void* module) {
  const Apart apart(cuda::Find(nullptr));
  TN_CALL(id, "cuModuleUnload", nullptr, module_free, module);
}

int32_t FindFunction(int32_t id, void* module, const char* name, uint32_t shared_bytes,
                     void** out) {
  Use use(id);
  if (!use.library) return -1;
  void* function = nullptr;
  Result result = use.library->find_function(&function, module, name);
  if (result != 0) return Raise(id, "cuModuleGetFunction", name, result);
  if (shared_bytes > kStaticShared) {
    result = use.library->set_attribute(function, cuda::kMaxDynamicShared,
                                        static_cast<int32_t>(shared_bytes));
    if (result != 0) return Raise(id, "cuFuncSetAttribute", name, result);
  }
  // Now, and not at the first launch, which may be somebody's capture: drivers load lazily.
  const Apart apart(use.library);
  result = use.library->load_function ? use.library->load_function(function) : 0;
  if (result != 0) return Raise(id, "cuFuncLoad", name, result);
  *out = function;
  return 0;
}

#undef TN_CALL

}  // namespace

const DeviceDriver cuda_driver = {
    .type = TN_DEVICE_cuda,
    .name = "cuda",
    .opaque = false,
    .count = Count,
    .missing = Missing,
    .describe = Describe,
    .allocate = Allocate,
    .free = Free,
    .allocate_on = AllocateOn,
    .free_on = FreeOn,
    .allocate_pinned = AllocatePinned,
    .free_pinned = FreePinned,
    .copy_from_host = CopyFromHost,
    .copy_to_host = CopyToHost,
    .copy_from_host_async = CopyFromHostAsync,
    .copy_to_host_async = CopyToHostAsync,
    .copy_between = CopyBetween,
    .stream_make = StreamMake,
    .stream_free = StreamFree,
    .stream_wait = StreamWait,
    .stream_wait_event = StreamWaitEvent,
    .event_make = EventMake,
    .event_free = EventFree,
    .event_record = EventRecord,
    .event_wait = EventWait,
    .event_elapsed = EventElapsed,
    .mark_make = MarkMake,
    .mark_done = MarkDone,
    .module_load = ModuleLoad,
    .module_free = ModuleFree,
    .find_function = FindFunction,
    .launch = cuda::Launch,
    .capture_of = cuda::CaptureOf,
    .graph_make = cuda::GraphMake,
    .graph_set = cuda::GraphSet,
    .graph_launch = cuda::GraphLaunch,
    .graph_free = cuda::GraphFree,
};

}  // namespace tenon::runtime

// NVIDIA GPUs by the driver API.
//
// Everything happens in each device's primary context, the one that CUDA's own runtime, and with it
// PyTorch, uses; it is retained at the device's first use and kept. The calling thread's current
// context is put back after every call (Use). A launch on a device that is not current is
//
//   cuCtxGetCurrent       another context, or none
//   cuCtxPushCurrent      the device's
//   cuLaunchKernel        cuLaunchKernelEx where it has clusters, or is cooperative or dependent
//   cuCtxPopCurrent
//
// and without the pushing and popping where PyTorch has made the device current. What a kernel
// takes as a tensor map is described for each launch, in the place of the address that it
// describes, since both the address and the sizes are the call's. The driver is found at run time
// (library.h).
#include <stdio.h>

#include <atomic>

#include "runtime/core/error.h"
#include "runtime/core/os.h"
#include "runtime/device/cuda/library.h"
#include "runtime/device/device.h"
#include "tenon/kernel_abi.h"

namespace tenon::runtime {
namespace {

using cuda::Context;
using cuda::DevicePtr;
using cuda::Library;
using cuda::Result;

constexpr int32_t kMaxDevices = 64;
constexpr uint32_t kStaticShared = 48 * 1024;  // more must be asked for

std::atomic<Context> contexts[kMaxDevices];
uint32_t context_lock;

/// -1 with the thread's error: what failed, on which device, and why. `of` is a kernel's name, or
/// null; `log` says more where it is not empty.
int32_t Raise(int32_t id, const char* function, const char* of, Result result,
              const char* log = "") {
  const Library* library = cuda::Find(nullptr);
  const char *name = nullptr, *text = nullptr;
  library->error_name(result, &name);
  library->error_text(result, &text);
  char message[1024];
  snprintf(message, sizeof message, "%s%s%s%s on cuda:%d failed: %s (%s)%s%s", function,
           of ? " of '" : "", of ? of : "", of ? "'" : "", id, name ? name : "unknown error",
           text ? text : "no text", *log ? ": " : "", log);
  return Fail(result == cuda::kOutOfMemory ? "MemoryError" : "RuntimeError", message);
}

/// The device's context for as long as this object lives. `library` is null where that failed, with
/// the error set.
class Use {
 public:
  explicit Use(int32_t id) {
    const char* missing = nullptr;
    const Library* found = cuda::Find(&missing);
    if (!found) {
      Fail("RuntimeError", missing);
      return;
    }
    if (id < 0 || id >= found->devices) {
      Fail("RuntimeError", "there is no such CUDA device");
      return;
    }
    context_ = Retain(*found, id);
    if (!context_) return;
    Context current = nullptr;
    found->get_current(&current);
    if (current != context_) {
      Result result = found->push(context_);
      if (result != 0) {
        Raise(id, "cuCtxPushCurrent", nullptr, result);
        return;
      }
      pushed_ = true;
    }
    library = found;
  }
  ~Use() {
    Context ignored;
    if (pushed_) library->pop(&ignored);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  Context context() const { return context_; }

  const Library* library = nullptr;

 private:
  static Context Retain(const Library& library, int32_t id) {
    Context context = contexts[id].load(std::memory_order_acquire);
    if (context) return context;
    MutexLock guard(&context_lock);
    context = contexts[id].load(std::memory_order_relaxed);
    if (context) return context;
    int32_t device = 0;
    Result result = library.device_get(&device, id);
    const char* function = "cuDeviceGet";
    if (result == 0) {
      result = library.retain(&context, device);
      function = "cuDevicePrimaryCtxRetain";
    }
    if (result != 0) {
      Raise(id, function, nullptr, result);
      return nullptr;
    }
    contexts[id].store(context, std::memory_order_release);
    return context;
  }

  Context context_ = nullptr;
  bool pushed_ = false;
};

// Calls a function of the driver in the device's context.
#define TN_CALL(id, symbol, of, member, ...)              \
  Use use(id);                                            \
  if (!use.library) return -1;                            \
  const Result result = use.library->member(__VA_ARGS__); \
  return result == 0 ? 0 : Raise(id, symbol, of, result)

DevicePtr Address(const void* memory) { return reinterpret_cast<DevicePtr>(memory); }

int32_t Count() {
  const Library* library = cuda::Find(nullptr);
  return library ? library->devices : 0;
}

const char* Missing() {
  const char* missing = nullptr;
  cuda::Find(&missing);
  return missing;
}

// ---- memory ----

int32_t Allocate(int32_t id, int64_t bytes, void** out) {
  Use use(id);
  if (!use.library) return -1;
  DevicePtr address = 0;
  // Never an address of nothing: an empty tensor has one too.
  const size_t size = bytes > 0 ? static_cast<size_t>(bytes) : 1;
  const Result result = use.library->allocate(&address, size);
  if (result == cuda::kOutOfMemory) {
    char message[96];
    snprintf(message, sizeof message, "out of memory on cuda:%d: %lld bytes were asked for", id,
             static_cast<long long>(bytes));
    return Fail("MemoryError", message);
  }
  if (result != 0) return Raise(id, "cuMemAlloc", nullptr, result);
  *out = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): CUDA's are numbers
  return 0;
}

// What it could report belongs to work that was queued before; the next wait reports it too.
void Free(int32_t id, void* memory) {
  Use use(id);
  if (use.library) use.library->free(Address(memory));
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
  char log[512] = "";
  int32_t options[] = {cuda::kErrorLog, cuda::kErrorLogBytes};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a number in a pointer's place
  void* values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
  const Result result = use.library->module_load(out, code, 2, options, values);
  return result == 0 ? 0 : Raise(id, "cuModuleLoadData", nullptr, result, log);
}

int32_t ModuleFree(int32_t id, void* module) {
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
  *out = function;
  return 0;
}

/// The descriptions of memory that a launch passes in the place of addresses: as long as this
/// object lives the launch's arguments are the descriptions, and afterwards the addresses again.
class TensorMaps {
 public:
  explicit TensorMaps(const DeviceLaunch& launch) : launch_(launch) {}
  ~TensorMaps() {
    for (uint32_t n = 0; n < count_; ++n) launch_.args[places_[n]] = addresses_[n];
  }
  TensorMaps(const TensorMaps&) = delete;
  TensorMaps& operator=(const TensorMaps&) = delete;

  int32_t Make(int32_t id) {
    // Behind the bytes of the parameters, aligned as data of the library.
    const uint8_t* end = launch_.params + launch_.num_params;
    end += (8 - reinterpret_cast<uintptr_t>(end) % 8) % 8;
    const auto* rows = reinterpret_cast<const tn_device_map*>(end);
    for (uint32_t i = 0; i < launch_.num_params; ++i) {
      if (launch_.params[i] != TN_PARAM_TENSOR_MAP) continue;
      if (count_ == TN_MAX_TENSOR_MAPS) return Fail("RuntimeError", "too many tensor maps");
      if (Encode(id, rows[count_], i) != 0) return -1;
    }
    return 0;
  }

 private:
  int64_t ValueOf(int64_t value, int32_t param) const {
    return param < 0 ? value : *static_cast<const int64_t*>(launch_.args[param]);
  }

  int32_t Encode(int32_t id, const tn_device_map& row, uint32_t place) {
    const Library* library = cuda::Find(nullptr);
    if (!library->encode_map) {
      return Fail("RuntimeError",
                  "the CUDA driver has no cuTensorMapEncodeTiled: it is too old for the kernel");
    }
    const auto columns = static_cast<uint64_t>(ValueOf(row.columns, row.columns_param));
    const uint64_t sizes[] = {columns, static_cast<uint64_t>(ValueOf(row.rows, row.rows_param))};
    const uint64_t strides[] = {columns * (row.type_bits / 8)};
    const uint32_t box[] = {row.box_columns, row.box_rows}, steps[] = {1, 1};
    const int32_t type = row.type_code == TN_DL_BFLOAT ? cuda::kMapBFloat16 : cuda::kMapFloat16;
    void* memory = *static_cast<void**>(launch_.args[place]);
    const Result result =
        library->encode_map(maps_[count_], type, 2, memory, sizes, strides, box, steps, 0,
                            cuda::kMapSwizzle128, cuda::kMapPromote128, 0);
    if (result != 0) return Raise(id, "cuTensorMapEncodeTiled", launch_.name, result);
    places_[count_] = place;
    addresses_[count_] = launch_.args[place];
    launch_.args[place] = maps_[count_++];
    return 0;
  }

  const DeviceLaunch& launch_;
  alignas(cuda::kTensorMapAlign) uint8_t maps_[TN_MAX_TENSOR_MAPS][cuda::kTensorMapBytes];
  uint32_t places_[TN_MAX_TENSOR_MAPS];
  void* addresses_[TN_MAX_TENSOR_MAPS];
  uint32_t count_ = 0;
};

bool HasMaps(const DeviceLaunch& launch) {
  for (uint32_t i = 0; i < launch.num_params; ++i) {
    if (launch.params[i] == TN_PARAM_TENSOR_MAP) return true;
  }
  return false;
}

int32_t LaunchPlain(int32_t id, const DeviceLaunch& launch) {
  TN_CALL(id, "cuLaunchKernel", launch.name, launch, launch.function, launch.grid[0],
          launch.grid[1], launch.grid[2], launch.block[0], launch.block[1], launch.block[2],
          launch.shared_bytes, launch.stream, launch.args, nullptr);
}

/// Those of a launch that it has, in the driver's words; how many.
uint32_t AttributesOf(const DeviceLaunch& launch, cuda::LaunchAttribute* out) {
  uint32_t count = 0;
  auto add = [&](int32_t id) -> cuda::LaunchAttribute& {
    out[count] = {};
    out[count].id = id;
    out[count].value.on = 1;
    return out[count++];
  };
  if ((launch.attributes & TN_LAUNCH_COOPERATIVE) != 0) add(cuda::kLaunchCooperative);
  if ((launch.attributes & TN_LAUNCH_DEPENDENT) != 0) add(cuda::kLaunchDependent);
  const uint32_t* n = launch.cluster;
  if (n[0] > 1 || n[1] > 1 || n[2] > 1) {
    cuda::LaunchAttribute& cluster = add(cuda::kLaunchCluster);
    for (int i = 0; i < 3; ++i) cluster.value.cluster[i] = n[i] > 1 ? n[i] : 1;
  }
  return count;
}

/// Says how many blocks there would have been room for.
int32_t RaiseTooLarge(int32_t id, const Library& library, const DeviceLaunch& launch) {
  int32_t each = 0, device = 0, multiprocessors = 0;
  const auto threads = static_cast<int32_t>(launch.block[0] * launch.block[1] * launch.block[2]);
  const bool known =
      library.blocks_that_fit &&
      library.blocks_that_fit(&each, launch.function, threads, launch.shared_bytes) == 0 &&
      library.device_get(&device, id) == 0 &&
      library.device_attribute(&multiprocessors, cuda::kMultiprocessors, device) == 0;
  if (!known) return Raise(id, "cuLaunchKernelEx", launch.name, cuda::kCooperativeTooLarge);
  const unsigned long long blocks = 1ULL * launch.grid[0] * launch.grid[1] * launch.grid[2];
  char message[512];
  snprintf(message, sizeof message,
           "kernel '%s' on cuda:%d: a cooperative launch of %llu blocks, but at most %lld fit at "
           "once: %d on each of %d multiprocessors",
           launch.name, id, blocks, 1LL * each * multiprocessors, each, multiprocessors);
  return Fail("ValueError", message);
}

int32_t LaunchWith(int32_t id, const DeviceLaunch& launch, cuda::LaunchAttribute* attributes,
                   uint32_t count) {
  Use use(id);
  if (!use.library) return -1;
  if (!use.library->launch_ex) {
    return Fail("RuntimeError",
                "the CUDA driver has no cuLaunchKernelEx: it is too old for clusters, cooperative "
                "and dependent launches");
  }
  cuda::LaunchConfig config = {};
  for (int i = 0; i < 3; ++i) {
    config.grid[i] = launch.grid[i];
    config.block[i] = launch.block[i];
  }
  config.shared_bytes = launch.shared_bytes;
  config.stream = launch.stream;
  config.attributes = attributes;
  config.num_attributes = count;
  const Result result = use.library->launch_ex(&config, launch.function, launch.args, nullptr);
  if (result == 0) return 0;
  if (result == cuda::kCooperativeTooLarge) return RaiseTooLarge(id, *use.library, launch);
  return Raise(id, "cuLaunchKernelEx", launch.name, result);
}

int32_t LaunchAs(int32_t id, const DeviceLaunch& launch) {
  cuda::LaunchAttribute attributes[3];
  const uint32_t count = AttributesOf(launch, attributes);
  return count == 0 ? LaunchPlain(id, launch) : LaunchWith(id, launch, attributes, count);
}

int32_t Launch(int32_t id, const DeviceLaunch& launch) {
  if (!HasMaps(launch)) return LaunchAs(id, launch);
  const Use use(id);  // descriptions, too, are made in the device's context
  if (!use.library) return -1;
  TensorMaps maps(launch);
  return maps.Make(id) == 0 ? LaunchAs(id, launch) : -1;
}

#undef TN_CALL

}  // namespace

const DeviceDriver cuda_driver = {
    .type = TN_DEVICE_cuda,
    .name = "cuda",
    .opaque = false,
    .count = Count,
    .missing = Missing,
    .allocate = Allocate,
    .free = Free,
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
    .module_load = ModuleLoad,
    .module_free = ModuleFree,
    .find_function = FindFunction,
    .launch = Launch,
};

}  // namespace tenon::runtime

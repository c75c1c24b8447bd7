// What the runtime asks of a kind of device. One table of functions per kind, in a folder of its
// own.
//
// Work is queued on streams and runs in their order; the null stream is the device's default one
// (CUDA: the legacy default stream, so that it sees what the caller queued before). Streams, events
// and modules are the vendor's own handles: a CUstream of the caller's serves as well as one made
// here. Every function may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tenon/devices.h"
#include "tenon/ffi_types.h"

namespace tenon::runtime {

/// One launch of a kernel.
struct DeviceLaunch {
  const char* name;  // for errors
  void* function;    // of find_function
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;  // of dynamic shared memory
  void* stream;
  void** args;            // the address of each parameter's value
  const uint8_t* params;  // what each parameter is, as tn_device_kernel has it: 0 for a buffer,
                          // whose value is its address, a map of one, else the bytes of its value
  uint32_t num_params;
  uint32_t cluster[3];  // blocks of a cluster; 0 or 1: alone
  uint32_t attributes;  // of TN_LAUNCH_…
  void* forms[2];       // what `function` is one of: for any addresses, and for those that are all
                        // multiples of TN_KERNEL_ALIGN (null: the first)
};

/// Functions return 0, or -1 with the thread's error set. `id` counts from 0 to count(); memory is
/// what Allocate of the same device gave, at any offset, or the caller's own on that device; where
/// memory has handles in the place of addresses (`opaque`), the handle alone, without offsets. The
/// functions from copy_from_host_async on are null for a device without streams.
struct DeviceDriver {
  int32_t type;  // DLDeviceType
  const char* name;
  bool opaque;  // a pointer to its memory is a handle (DLPack's `data` of OpenCL: a cl_mem)
  int32_t (*count)();
  const char* (*missing)();  // why count() is 0: static text; null otherwise
  // Its model and its driver, for people and as what measurements are about; null: nothing is said.
  int32_t (*describe)(int32_t id, char* out, size_t bytes);    // cut where it is too long
  int32_t (*allocate)(int32_t id, int64_t bytes, void** out);  // aligned to 64 bytes at least
  void (*free)(int32_t id, void* memory);
  // In the order of a stream, without waiting for anything; null where there is no such memory.
  int32_t (*allocate_on)(int32_t id, int64_t bytes, void* stream, void** out);
  void (*free_on)(int32_t id, void* memory, void* stream);
  // Host memory that copies read while the host goes on; may be null.
  int32_t (*allocate_pinned)(int32_t id, int64_t bytes, void** out);
  void (*free_pinned)(int32_t id, void* memory);
  // When these return, the copy is done; what was queued on the thread's stream came before it.
  int32_t (*copy_from_host)(int32_t id, void* target, const void* source, int64_t bytes);
  int32_t (*copy_to_host)(int32_t id, void* target, const void* source, int64_t bytes);

  // Queued. Host memory that is not pinned is read before the first returns.
  int32_t (*copy_from_host_async)(int32_t id, void* target, const void* source, int64_t bytes,
                                  void* stream);
  int32_t (*copy_to_host_async)(int32_t id, void* target, const void* source, int64_t bytes,
                                void* stream);
  /// Between memories of devices of this kind, on a stream of the target's.
  int32_t (*copy_between)(int32_t target_id, void* target, int32_t source_id, const void* source,
                          int64_t bytes, void* stream);

  int32_t (*stream_make)(int32_t id, void** out);
  int32_t (*stream_free)(int32_t id, void* stream);
  int32_t (*stream_wait)(int32_t id, void* stream);  // until all that is queued is done
  int32_t (*stream_wait_event)(int32_t id, void* stream, void* event);
  int32_t (*event_make)(int32_t id, void** out);
  int32_t (*event_free)(int32_t id, void* event);
  int32_t (*event_record)(int32_t id, void* event, void* stream);
  int32_t (*event_wait)(int32_t id, void* event);
  int32_t (*event_elapsed)(int32_t id, void* from, void* to, float* out_milliseconds);
  // An event that tells no time, and whether all that it was recorded behind is done. May be null.
  int32_t (*mark_make)(int32_t id, void** out);
  bool (*mark_done)(int32_t id, void* mark);

  /// Device code of a library, in the device's form; `code` need not outlive the call.
  int32_t (*module_load)(int32_t id, const void* code, int64_t bytes, void** out);
  int32_t (*module_free)(int32_t id, void* module);
  /// A kernel that will be launched with up to `shared_bytes` of dynamic shared memory.
  int32_t (*find_function)(int32_t id, void* module, const char* name, uint32_t shared_bytes,
                           void** out);
  int32_t (*launch)(int32_t id, const DeviceLaunch& launch);

  // The functions below are null for a device without graphs.
  /// Whether somebody else records what is queued on the stream: the number of that recording, 0
  /// for none.
  int32_t (*capture_of)(int32_t id, void* stream, uint64_t* out);
  /// Launches that run one after another; their streams do not count. 1, without an error, where
  /// this device, or its driver, cannot.
  int32_t (*graph_make)(int32_t id, const DeviceLaunch* launches, uint32_t count, void** out);
  /// Gives launch number `place` other arguments, for the graph's launches from now on.
  int32_t (*graph_set)(int32_t id, void* graph, uint32_t place, const DeviceLaunch& launch);
  int32_t (*graph_launch)(int32_t id, void* graph, void* stream);
  void (*graph_free)(int32_t id, void* graph);  // what is queued of it is still done
};

/// The driver of a device type, or null.
const DeviceDriver* FindDriver(int32_t type);
/// The driver of a device that exists; null + error otherwise.
const DeviceDriver* RequireDevice(tn_dl_device device);
/// The same, of a device with streams.
const DeviceDriver* RequireStreams(tn_dl_device device);

/// Whether the thread's error says that memory was out.
bool IsOutOfMemory();

/// The stream that the calling thread's work on a device is queued on: the one it has set, else
/// that of TVM-FFI where it is in the process, else null, the default one.
void* CurrentStream(tn_dl_device device);
/// 0, and what was set before, null for nothing; -1 + error where a thread has streams set on more
/// than 16 devices.
int32_t SetCurrentStream(tn_dl_device device, void* stream, void** out_before);

#define TN_DRIVER(name, built) extern const DeviceDriver name##_driver;
#include "runtime/device/drivers.def"

}  // namespace tenon::runtime

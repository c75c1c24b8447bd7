// OpenCL devices through the installable client driver loader, by number over all platforms. Each
// has a context and a queue of its own, made at its first use and kept; streams are command queues
// in order. Work on a queue of the caller's runs in that queue's context, where the caller's memory
// is.
//
// Memory is a cl_mem, as DLPack has it, and a cl_mem has no addresses: the tensors of kernels begin
// at its first byte. An event is what a marker in a queue was given, so that it can be recorded
// again:
//
//   EventRecord(e, queue a)        marker in a → e, and a flush: what e waits for has been sent
//   StreamWaitEvent(queue b, e)    barrier in b behind e
//   EventRecord(e, queue b)        the first marker is let go; b's waiting stays as it was
//
// A launch sets the kernel's arguments one by one and enqueues grid times block threads, on a
// kernel object that no other thread uses meanwhile (program.h).
#include <stdio.h>
#include <stdlib.h>

#include <atomic>

#include "runtime/core/error.h"
#include "runtime/core/os.h"
#include "runtime/device/device.h"
#include "runtime/device/opencl/program.h"

namespace tenon::runtime {
namespace {

using opencl::Handle;
using opencl::Library;
using opencl::Place;
using opencl::Raise;
using opencl::Result;

struct Device {
  Handle context;
  std::atomic<Handle> queue;  // made last: with it, the context is there
};

Device devices[opencl::kMaxDevices];
uint32_t device_lock;

/// False + error where the device's context and queue cannot be made.
bool Prepare(const Library& cl, int32_t id) {
  Device& device = devices[id];
  if (device.queue.load(std::memory_order_acquire)) return true;
  MutexLock guard(&device_lock);
  if (device.queue.load(std::memory_order_relaxed)) return true;
  Result result = 0;
  if (!device.context) {
    device.context = cl.context_make(nullptr, 1, &cl.device[id], nullptr, nullptr, &result);
    if (!device.context) return Raise(id, "clCreateContext", nullptr, result) == 0;
  }
  Handle queue = cl.queue_make(device.context, cl.device[id], opencl::kProfiling, &result);
  if (!queue) return Raise(id, "clCreateCommandQueue", nullptr, result) == 0;
  device.queue.store(queue, std::memory_order_release);
  return true;
}

/// A device that is ready; `cl` is null where it is not, with the error set.
struct Use {
  explicit Use(int32_t number) : id(number) {
    const char* missing = nullptr;
    const Library* found = opencl::Find(&missing);
    if (!found) {
      SetError("RuntimeError", missing);
    } else if (id < 0 || id >= found->num_devices) {
      SetError("RuntimeError", "there is no such OpenCL device");
    } else if (Prepare(*found, id)) {
      cl = found;
    }
  }
  Handle QueueOf(void* stream) const {
    return stream ? stream : devices[id].queue.load(std::memory_order_relaxed);
  }
  Place Here() const { return {cl, id, cl->device[id], devices[id].context}; }
  int32_t Check(const char* function, Result result) const {
    return result == 0 ? 0 : Raise(id, function, nullptr, result);
  }

  int32_t id;
  const Library* cl = nullptr;
};

int32_t Count() {
  const Library* library = opencl::Find(nullptr);
  return library ? library->num_devices : 0;
}

const char* Missing() {
  const char* missing = nullptr;
  opencl::Find(&missing);
  return missing;
}

int32_t Describe(int32_t id, char* out, size_t bytes) {
  const Library* library = opencl::Find(nullptr);
  char name[128] = "", driver[64] = "";
  Result result =
      library->device_info(library->device[id], opencl::kDeviceName, sizeof name, name, nullptr);
  if (result == 0) {
    result = library->device_info(library->device[id], opencl::kDeviceDriver, sizeof driver, driver,
                                  nullptr);
  }
  if (result != 0) return Raise(id, "clGetDeviceInfo", nullptr, result);
  snprintf(out, bytes, "%s, driver %s", name, driver);
  return 0;
}

// ---- memory ----

bool IsOutOfMemory(Result result) {
  return result == opencl::kAllocationFailure || result == opencl::kOutOfResources ||
         result == opencl::kOutOfHostMemory || result == opencl::kInvalidBufferSize;
}

int32_t Allocate(int32_t id, int64_t bytes, void** out) {
  Use use(id);
  if (!use.cl) return -1;
  const size_t size = bytes > 0 ? static_cast<size_t>(bytes) : 1;  // empty tensors have memory too
  Result result = 0;
  Handle memory =
      use.cl->buffer_make(devices[id].context, opencl::kReadWrite, size, nullptr, &result);
  if (memory) {
    *out = memory;
    return 0;
  }
  if (!IsOutOfMemory(result)) return Raise(id, "clCreateBuffer", nullptr, result);
  char message[96];
  snprintf(message, sizeof message, "out of memory on opencl:%d: %lld bytes were asked for", id,
           static_cast<long long>(bytes));
  return Fail("MemoryError", message);
}

// The driver keeps it until what is queued is done.
void Free(int32_t id, void* memory) {
  Use use(id);
  if (use.cl) use.cl->buffer_free(memory);
}

int32_t Write(int32_t id, void* target, const void* source, int64_t bytes, void* stream) {
  if (bytes <= 0) return 0;
  Use use(id);
  if (!use.cl) return -1;
  return use.Check("clEnqueueWriteBuffer",
                   use.cl->write(use.QueueOf(stream), target, /*blocking=*/1, 0,
                                 static_cast<size_t>(bytes), source, 0, nullptr, nullptr));
}

int32_t Read(int32_t id, void* target, const void* source, int64_t bytes, void* stream,
             bool blocking) {
  if (bytes <= 0) return 0;
  Use use(id);
  if (!use.cl) return -1;
  return use.Check("clEnqueueReadBuffer",
                   use.cl->read(use.QueueOf(stream), const_cast<void*>(source), blocking ? 1 : 0, 0,
                                static_cast<size_t>(bytes), target, 0, nullptr, nullptr));
}

int32_t CopyFromHost(int32_t id, void* target, const void* source, int64_t bytes) {
  return Write(id, target, source, bytes, CurrentStream({TN_DEVICE_opencl, id}));
}

int32_t CopyToHost(int32_t id, void* target, const void* source, int64_t bytes) {
  return Read(id, target, source, bytes, CurrentStream({TN_DEVICE_opencl, id}), /*blocking=*/true);
}

int32_t CopyToHostAsync(int32_t id, void* target, const void* source, int64_t bytes, void* stream) {
  return Read(id, target, source, bytes, stream, /*blocking=*/false);
}

// Devices of different platforms share no memory: through the host.
int32_t CopyAcross(int32_t target_id, void* target, int32_t source_id, const void* source,
                   int64_t bytes, void* stream) {
  void* between = malloc(static_cast<size_t>(bytes));
  if (!between) return Fail("MemoryError", "out of memory");
  int32_t status = CopyToHost(source_id, between, source, bytes);
  if (status == 0) status = Write(target_id, target, between, bytes, stream);
  free(between);
  return status;
}

int32_t CopyBetween(int32_t target_id, void* target, int32_t source_id, const void* source,
                    int64_t bytes, void* stream) {
  if (bytes <= 0) return 0;
  if (target_id != source_id)
    return CopyAcross(target_id, target, source_id, source, bytes, stream);
  Use use(target_id);
  if (!use.cl) return -1;
  return use.Check("clEnqueueCopyBuffer",
                   use.cl->copy(use.QueueOf(stream), const_cast<void*>(source), target, 0, 0,
                                static_cast<size_t>(bytes), 0, nullptr, nullptr));
}

// ---- streams and events ----

int32_t StreamMake(int32_t id, void** out) {
  Use use(id);
  if (!use.cl) return -1;
  Result result = 0;
  *out = use.cl->queue_make(devices[id].context, use.cl->device[id], opencl::kProfiling, &result);
  return *out ? 0 : Raise(id, "clCreateCommandQueue", nullptr, result);
}

int32_t StreamFree(int32_t id, void* stream) {
  Use use(id);
  return use.cl ? use.Check("clReleaseCommandQueue", use.cl->queue_free(stream)) : -1;
}

int32_t StreamWait(int32_t id, void* stream) {
  Use use(id);
  return use.cl ? use.Check("clFinish", use.cl->finish(use.QueueOf(stream))) : -1;
}

struct Event {
  Handle recorded;  // null: not yet, and then there is nothing to wait for
};

int32_t EventMake(int32_t, void** out) {
  auto* event = static_cast<Event*>(malloc(sizeof(Event)));
  if (!event) return Fail("MemoryError", "out of memory");
  event->recorded = nullptr;
  *out = event;
  return 0;
}

int32_t Forget(const Use& use, Event* event) {
  const Handle before = event->recorded;
  event->recorded = nullptr;
  return before ? use.Check("clReleaseEvent", use.cl->event_free(before)) : 0;
}

int32_t EventFree(int32_t id, void* event) {
  Use use(id);
  if (!use.cl) return -1;
  const int32_t status = Forget(use, static_cast<Event*>(event));
  free(event);
  return status;
}

int32_t EventRecord(int32_t id, void* event, void* stream) {
  Use use(id);
  if (!use.cl || Forget(use, static_cast<Event*>(event)) != 0) return -1;
  const Handle queue = use.QueueOf(stream);
  Handle* recorded = &static_cast<Event*>(event)->recorded;
  const int32_t status =
      use.Check("clEnqueueMarkerWithWaitList", use.cl->marker(queue, 0, nullptr, recorded));
  // Else another queue could wait for what this one has not begun.
  return status == 0 ? use.Check("clFlush", use.cl->flush(queue)) : -1;
}

int32_t StreamWaitEvent(int32_t id, void* stream, void* event) {
  const Handle recorded = static_cast<Event*>(event)->recorded;
  Use use(id);
  if (!use.cl) return -1;
  if (!recorded) return 0;
  return use.Check("clEnqueueBarrierWithWaitList",
                   use.cl->barrier(use.QueueOf(stream), 1, &recorded, nullptr));
}

int32_t EventWait(int32_t id, void* event) {
  const Handle recorded = static_cast<Event*>(event)->recorded;
  Use use(id);
  if (!use.cl) return -1;
  return recorded ? use.Check("clWaitForEvents", use.cl->wait(1, &recorded)) : 0;
}

int32_t EventElapsed(int32_t id, void* from, void* to, float* out_milliseconds) {
  Use use(id);
  if (!use.cl) return -1;
  uint64_t nanoseconds[2] = {0, 0};
  for (int i = 0; i < 2; ++i) {
    const Handle recorded = static_cast<Event*>(i ? to : from)->recorded;
    if (!recorded) return Fail("ValueError", "an event that was not recorded has no time");
    const Result result = use.cl->event_time(recorded, opencl::kCommandEnd, sizeof nanoseconds[i],
                                             &nanoseconds[i], nullptr);
    if (result != 0) return Raise(id, "clGetEventProfilingInfo", nullptr, result);
  }
  const auto passed = static_cast<int64_t>(nanoseconds[1] - nanoseconds[0]);
  *out_milliseconds = static_cast<float>(static_cast<double>(passed) * 1e-6);
  return 0;
}

// ---- code ----

int32_t ModuleLoad(int32_t id, const void* code, int64_t bytes, void** out) {
  Use use(id);
  if (!use.cl) return -1;
  *out = opencl::MakeModule(use.Here(), static_cast<const char*>(code), static_cast<size_t>(bytes));
  return *out ? 0 : -1;
}

int32_t ModuleFree(int32_t id, void* module) {
  Use use(id);
  if (!use.cl) return -1;
  opencl::FreeModule(*use.cl, static_cast<opencl::Module*>(module));
  return 0;
}

// Its shared memory is part of the kernel.
int32_t FindFunction(int32_t id, void* module, const char* name, uint32_t, void** out) {
  Use use(id);
  if (!use.cl) return -1;
  *out = opencl::FindIn(use.Here(), static_cast<opencl::Module*>(module), name);
  return *out ? 0 : -1;
}

int32_t Enqueue(const Place& place, Handle queue, Handle kernel, const DeviceLaunch& launch) {
  for (uint32_t i = 0; i < launch.num_params; ++i) {
    const size_t bytes = launch.params[i] ? launch.params[i] : sizeof(Handle);
    const Result result = place.library->set_arg(kernel, i, bytes, launch.args[i]);
    if (result != 0) return Raise(place.id, "clSetKernelArg", launch.name, result);
  }
  size_t threads[3], block[3];
  for (int i = 0; i < 3; ++i) {
    block[i] = launch.block[i];
    threads[i] = size_t{launch.grid[i]} * launch.block[i];
  }
  Result result =
      place.library->launch(queue, kernel, 3, nullptr, threads, block, 0, nullptr, nullptr);
  if (result == 0) result = place.library->flush(queue);
  return result == 0 ? 0 : Raise(place.id, "clEnqueueNDRangeKernel", launch.name, result);
}

int32_t Launch(int32_t id, const DeviceLaunch& launch) {
  Use use(id);
  if (!use.cl) return -1;
  Place place = use.Here();
  if (launch.stream) {
    const Result result = use.cl->queue_info(launch.stream, opencl::kQueueContext, sizeof(Handle),
                                             static_cast<void*>(&place.context), nullptr);
    if (result != 0) return Raise(id, "clGetCommandQueueInfo", launch.name, result);
  }
  opencl::KernelUse kernel(place, static_cast<opencl::Function*>(launch.function));
  return kernel.kernel ? Enqueue(place, use.QueueOf(launch.stream), kernel.kernel, launch) : -1;
}

}  // namespace

const DeviceDriver opencl_driver = {
    .type = TN_DEVICE_opencl,
    .name = "opencl",
    .opaque = true,
    .count = Count,
    .missing = Missing,
    .describe = Describe,
    .allocate = Allocate,
    .free = Free,
    .copy_from_host = CopyFromHost,
    .copy_to_host = CopyToHost,
    .copy_from_host_async = Write,
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

// A libcuda.so.1 for tests: two devices whose memory is the host's, a log of what was called, and
// failures on demand. FAKE_CUDA_FAIL=symbol=code in the environment fails from the start. What
// needs a context fails where none is current.
//
// Streams are queues. What is queued runs when it is waited for, and now and then before: after
// every call that queues something, a few steps of streams that a seed decides. So what nothing
// orders comes in many orders. Kernels are run by whoever a test names (FakeSetRunner); without
// one, launches are noted only. A kernel that fails leaves its device in that state: every later
// call there fails with the same number.
//
// A capture makes a graph of what is queued on its stream. While one is in global mode, calls that
// the driver calls unsafe (allocating, loading, waiting, asking) fail in threads that are not
// relaxed, and break it; so does waiting for a captured stream in any mode.
#include "support/fake_cuda/state.h"

// NOLINTBEGIN(readability-identifier-naming, performance-no-int-to-ptr): CUDA's names and addresses
using namespace fake_cuda;  // NOLINT(google-build-using-namespace): its functions are C's

#pragma GCC visibility push(default)
extern "C" {

// ---- for tests ----
void FakeFail(const char* symbol, int code) {
  const Guard guard(mutex);
  failing = symbol;
  failing_code = code;
}
/// Of code whose kind the device takes, no more than so many modules; -1: all. PTX is not counted.
void FakeLoadNoMore(int count) {
  const Guard guard(mutex);
  loads_left = count;
}
/// What was called since the last time.
const char* FakeTakeLog() {
  static std::string taken;
  const Guard guard(mutex);
  taken = std::move(log_text);
  log_text.clear();
  return taken.c_str();
}
void FakeLog(int on) {
  const Guard guard(mutex);
  logging = on != 0;
  log_text.clear();
}
/// How many bytes each argument of a kernel has, and who runs it: 0, or the device's error.
void FakeSetRunner(SizesFn sizes, RunFn run) {
  const Guard guard(mutex);
  sizes_of = sizes;
  run_kernel = run;
}
/// The error that the device is in; 0: none.
void FakeSetBroken(int device, int code) {
  const Guard guard(mutex);
  devices[device].broken = code;
}
void FakeSetCapability(int device, int major, int minor) {
  const Guard guard(mutex);
  devices[device].major = major;
  devices[device].minor = minor;
}
void FakeSetMemory(uint64_t most_bytes) {
  const Guard guard(mutex);
  memory_limit = most_bytes;
}
/// Allocations that live, their bytes, graphs, events and streams.
void FakeCount(uint64_t* out) {
  const Guard guard(mutex);
  out[0] = memory.size();
  out[1] = memory_bytes;
  out[2] = execs.size();
  out[3] = events.size();
  out[4] = streams.size();
}
void FakeSeed(unsigned seed) {
  const Guard guard(mutex);
  random_state = seed;
}

// ---- the driver ----
int cuInit(unsigned) { return Note("cuInit"); }
int cuDeviceGetCount(int* count) {
  *count = 2;
  return Note("cuDeviceGetCount");
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return Note("cuDeviceGet");
}
int cuDeviceGetName(char* out, int bytes, int device) {
  snprintf(out, static_cast<size_t>(bytes), "Fake %d", device);
  return Note("cuDeviceGetName");
}
int cuDriverGetVersion(int* out) {
  *out = 12080;
  return Note("cuDriverGetVersion");
}
int cuDeviceGetAttribute(int* out, int attribute, int device) {
  const Guard guard(mutex);
  *out = attribute == 75    ? devices[device].major
         : attribute == 76  ? devices[device].minor
         : attribute == 16  ? 4
         : attribute == 115 ? 1
                            : 0;
  return Note("cuDeviceGetAttribute");
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = ContextOf(device);
  return Note("cuDevicePrimaryCtxRetain", std::to_string(device));
}
int cuCtxGetCurrent(void** context) {
  *context = current;
  return 0;
}
int cuCtxPushCurrent_v2(void* context) {
  if (int code = Note("cuCtxPushCurrent_v2")) return code;
  current = context;
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  *context = current;
  Note("cuCtxPopCurrent_v2");
  current = nullptr;
  return 0;
}
int cuMemAlloc_v2(uint64_t* out, size_t bytes) {
  const Guard guard(mutex);
  if (int code = Note("cuMemAlloc_v2", Bytes(bytes))) return code;
  if (int code = Unsafe()) return code;
  return AddMemory(out, bytes);
}
int cuMemFree_v2(uint64_t address) {
  const Guard guard(mutex);
  const int code = Note("cuMemFree_v2");
  if (int unsafe = Unsafe()) return unsafe;
  DrainAll();
  DropMemory(address);
  return code;
}
int cuMemAllocAsync(uint64_t* out, size_t bytes, void* stream) {
  const Guard guard(mutex);
  if (int code = Note("cuMemAllocAsync", Bytes(bytes) + ", " + Hex(stream))) return code;
  if (int code = Unsafe()) return code;
  return AddMemory(out, bytes);
}
int cuMemFreeAsync(uint64_t address, void* stream) {
  const Guard guard(mutex);
  if (int code = Note("cuMemFreeAsync", Hex(stream))) return code;
  return Queue(stream, [address] {
    DropMemory(address);
    return 0;
  });
}
int cuMemHostAlloc(void** out, size_t bytes, unsigned) {
  const Guard guard(mutex);
  if (int code = Note("cuMemHostAlloc", Bytes(bytes))) return code;
  if (int code = Unsafe()) return code;
  *out = malloc(bytes);
  return 0;
}
int cuMemFreeHost(void* address) {
  free(address);
  return Note("cuMemFreeHost");
}
int cuMemcpyHtoDAsync_v2(uint64_t target, const void* source, size_t bytes, void* stream) {
  const Guard guard(mutex);
  if (int code = Note("cuMemcpyHtoDAsync_v2", Bytes(bytes) + ", " + Hex(stream))) return code;
  const auto* from = static_cast<const uint8_t*>(source);
  const std::vector<uint8_t> copy(from, from + bytes);
  return Queue(stream, [copy, target] {
    memcpy(reinterpret_cast<void*>(target), copy.data(), copy.size());
    return 0;
  });
}
int cuMemcpyDtoHAsync_v2(void* target, uint64_t source, size_t bytes, void* stream) {
  const Guard guard(mutex);
  if (int code = Note("cuMemcpyDtoHAsync_v2", Bytes(bytes) + ", " + Hex(stream))) return code;
  return Queue(stream, [target, source, bytes] {
    memcpy(target, reinterpret_cast<void*>(source), bytes);
    return 0;
  });
}
int cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t bytes, void* stream) {
  const Guard guard(mutex);
  if (int code = Note("cuMemcpyDtoDAsync_v2", Bytes(bytes) + ", " + Hex(stream))) return code;
  return Queue(stream, [target, source, bytes] {
    memcpy(reinterpret_cast<void*>(target), reinterpret_cast<void*>(source), bytes);
    return 0;
  });
}
int cuMemcpyPeerAsync(uint64_t target, void* to, uint64_t source, void* from, size_t bytes,
                      void* stream) {
  const Guard guard(mutex);
  const std::string names = std::to_string(reinterpret_cast<uintptr_t>(from) - 0x1000) + " to " +
                            std::to_string(reinterpret_cast<uintptr_t>(to) - 0x1000);
  if (int code = Note("cuMemcpyPeerAsync", names + ", " + Bytes(bytes) + ", " + Hex(stream)))
    return code;
  for (Stream& s : defaults) Drain(&s);
  return Queue(stream, [target, source, bytes] {
    memcpy(reinterpret_cast<void*>(target), reinterpret_cast<void*>(source), bytes);
    return 0;
  });
}
int cuStreamCreate(void** out, unsigned flags) {
  const Guard guard(mutex);
  if (int code = Note("cuStreamCreate", std::to_string(flags))) return code;
  Stream stream;
  stream.device = CurrentDevice();
  stream.blocking = flags == 0;
  *out = streams.Add(std::move(stream));
  return 0;
}
int cuStreamDestroy_v2(void* stream) {
  const Guard guard(mutex);
  const int code = Note("cuStreamDestroy_v2", Hex(stream));
  if (code) return code;
  Drain(StreamOf(stream).get());
  streams.Remove(stream);
  return 0;
}
int cuStreamSynchronize(void* stream) {
  const Guard guard(mutex);
  if (int code = Note("cuStreamSynchronize", Hex(stream))) return code;
  return WaitFor(StreamOf(stream).get());
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const Guard guard(mutex);
  if (int code = Note("cuStreamWaitEvent", Hex(stream) + ", " + Hex(event))) return code;
  const auto known = events.Find(event);
  if (!known || !known->stream) return 0;
  const auto waiting = StreamOf(stream);
  if (waiting->capture) {
    waiting->broken = true;
    return kCaptureIsolation;
  }
  const Event at = *known;
  return Queue(stream, [at] {
    RunTo(at.stream, at.place);
    return 0;
  });
}
int cuEventCreate(void** out, unsigned) {
  const Guard guard(mutex);
  if (int code = Note("cuEventCreate")) return code;
  *out = events.Add({});
  return 0;
}
int cuEventDestroy_v2(void* event) {
  const Guard guard(mutex);
  if (int code = Note("cuEventDestroy_v2", Hex(event))) return code;
  events.Remove(event);
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  const Guard guard(mutex);
  if (int code = Note("cuEventRecord", Hex(event) + ", " + Hex(stream))) return code;
  const auto known = events.Find(event);
  const auto on = StreamOf(stream);
  if (known) *known = {on.get(), on, on->queued};
  return 0;
}
int cuEventQuery(void* event) {
  const Guard guard(mutex);
  if (int code = Note("cuEventQuery", Hex(event))) return code;
  if (int code = Unsafe()) return code;
  const auto known = events.Find(event);
  return !known || !known->stream || known->stream->done >= known->place ? 0 : kNotReady;
}
int cuEventSynchronize(void* event) {
  const Guard guard(mutex);
  if (int code = Note("cuEventSynchronize", Hex(event))) return code;
  if (int code = Unsafe()) return code;
  const auto known = events.Find(event);
  if (known && known->stream) RunTo(known->stream, known->place);
  return devices[CurrentDevice()].broken;
}
int cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 1.5f;
  return Note("cuEventElapsedTime");
}
int cuModuleLoadDataEx(void** out, const void* code, unsigned, int*, void** values) {
  const Guard guard(mutex);
  const std::string text(static_cast<const char*>(code));
  const int result = Note("cuModuleLoadDataEx", text.substr(0, text.find('\n')));
  if (result) strcpy(static_cast<char*>(values[0]), "line 3 is no PTX");
  if (result) return result;
  if (int unsafe = Unsafe()) return unsafe;
  if (!Takes(text, CurrentDevice())) return kNoBinary;
  const bool is_ptx = text.find(" PTX ") != std::string::npos;
  if (loads_left == 0 && !is_ptx) return kNoBinary;
  if (loads_left > 0 && !is_ptx) --loads_left;
  *out = modules.Add(text);
  return 0;
}
int cuModuleUnload(void* module) {
  const Guard guard(mutex);
  if (int code = Note("cuModuleUnload", Hex(module))) return code;
  modules.Remove(module);
  return 0;
}
int cuModuleGetFunction(void** out, void* module, const char* name) {
  const Guard guard(mutex);
  if (int code = Note("cuModuleGetFunction", name)) return code;
  // Code of the fake NVRTC has its source behind its first line.
  const auto code = modules.Find(module);
  const bool has_source = code && code->find('\n') != std::string::npos;
  if (has_source && code->find(std::string(" ") + name + "(") == std::string::npos)
    return kNotFound;
  *out = functions.Add({name, CurrentDevice()});
  return 0;
}
int cuFuncLoad(void*) { return 0; }
int cuFuncSetAttribute(void*, int attribute, int value) {
  return Note("cuFuncSetAttribute", std::to_string(attribute) + ", " + std::to_string(value));
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** args, void** extra) {
  const Guard guard(mutex);
  std::string text = Hex(function);
  for (unsigned n : {gx, gy, gz, bx, by, bz, shared}) text += ", " + std::to_string(n);
  text += ", " + Hex(stream) + ", " + std::to_string(*static_cast<int*>(args[0]));
  if (int code = Note("cuLaunchKernel", text + (extra ? ", extra" : ""))) return code;
  const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  const auto launch = LaunchOf(function, grid, block, args);
  return Queue(stream, [launch] { return launch->Run(); }, launch);
}
struct FakeAttribute {
  int id, pad;
  unsigned value[16];
};
struct FakeConfig {
  unsigned grid[3], block[3], shared;
  void* stream;
  FakeAttribute* attributes;
  unsigned count;
};
// A device of 4 multiprocessors, with 8 blocks each.
int cuLaunchKernelEx(const FakeConfig* config, void* function, void** args, void** extra) {
  const Guard guard(mutex);
  std::string text = Hex(function);
  bool cooperative = false;
  for (unsigned n : config->grid) text += ", " + std::to_string(n);
  for (unsigned n : config->block) text += ", " + std::to_string(n);
  text += ", " + std::to_string(config->shared) + ", " + Hex(config->stream) + ", " +
          std::to_string(*static_cast<int*>(args[0]));
  for (unsigned i = 0; i < config->count; ++i) {
    const FakeAttribute& a = config->attributes[i];
    text += ", " + std::to_string(a.id) + ":";
    for (int k = 0; k < (a.id == 4 ? 3 : 1); ++k) text += " " + std::to_string(a.value[k]);
    cooperative |= a.id == 2 && a.value[0] == 1;
  }
  const int code = Note("cuLaunchKernelEx", text + (extra ? ", extra" : ""));
  const unsigned blocks = config->grid[0] * config->grid[1] * config->grid[2];
  if (code) return code;
  if (cooperative && blocks > 32) return 720;
  const auto launch = LaunchOf(function, config->grid, config->block, args);
  return Queue(config->stream, [launch] { return launch->Run(); }, launch);
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, void*, int, size_t) {
  *out = 8;
  return Note("cuOccupancyMaxActiveBlocksPerMultiprocessor");
}
int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* address,
                           const unsigned long* sizes, const unsigned long* strides,
                           const unsigned* box, const unsigned*, int, int swizzle, int, int) {
  *static_cast<int*>(map) = 77;
  std::string text = std::to_string(type) + ", " + std::to_string(rank) + ", " + Hex(address);
  for (unsigned long n : {sizes[0], sizes[1], strides[0]}) text += ", " + std::to_string(n);
  for (unsigned n : {box[0], box[1]}) text += ", " + std::to_string(n);
  return Note("cuTensorMapEncodeTiled", text + ", " + std::to_string(swizzle));
}

int cuGetErrorName(int error, const char** out) {
  *out = error == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
         : error == 700        ? "CUDA_ERROR_ILLEGAL_ADDRESS"
         : error == kNoBinary  ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
                               : "CUDA_ERROR_FAKE";
  return 0;
}
int cuGetErrorString(int, const char** out) {
  *out = "as asked";
  return 0;
}

}  // extern "C"
#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming, performance-no-int-to-ptr)

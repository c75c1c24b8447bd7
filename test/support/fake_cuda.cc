// A libcuda.so.1 for tests: two devices whose memory is the host's, a log of what was called, and
// failures on demand. FAKE_CUDA_FAIL=symbol=code in the environment fails from the start. What
// needs a context fails where none is current.
// NOLINTBEGIN(readability-identifier-naming, performance-no-int-to-ptr): CUDA's names and addresses
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;
std::string log_text, failing;
int failing_code = 0;
thread_local void* current = nullptr;

bool ReadEnvironment() {
  const char* text = getenv("FAKE_CUDA_FAIL");
  const char* equals = text ? strchr(text, '=') : nullptr;
  if (!equals) return false;
  failing.assign(text, equals);
  failing_code = atoi(equals + 1);
  return true;
}
const bool fails_from_the_start = ReadEnvironment();

void* ContextOf(int device) { return reinterpret_cast<void*>(uintptr_t{0x1000} + device); }

constexpr int kInvalidContext = 201;

// Whether the driver does this for whoever asks, without a context.
bool NeedsNone(const char* symbol) {
  for (const char* prefix : {"cuInit", "cuDevice", "cuCtx"}) {
    if (strncmp(symbol, prefix, strlen(prefix)) == 0) return true;
  }
  return false;
}

// Notes the call, with the device whose context is current; the code it is to fail with.
int Note(const char* symbol, const std::string& details = "") {
  std::lock_guard<std::mutex> guard(mutex);
  log_text += symbol;
  if (current) log_text += "@" + std::to_string(reinterpret_cast<uintptr_t>(current) - 0x1000);
  if (!details.empty()) log_text += "(" + details + ")";
  log_text += "\n";
  if (failing == symbol) return failing_code;
  return current || NeedsNone(symbol) ? 0 : kInvalidContext;
}

std::string Bytes(size_t bytes) { return std::to_string(bytes); }
std::string Hex(void* p) { return p ? std::to_string(reinterpret_cast<uintptr_t>(p)) : "default"; }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// ---- for tests ----
void FakeFail(const char* symbol, int code) {
  std::lock_guard<std::mutex> guard(mutex);
  failing = symbol;
  failing_code = code;
}
/// What was called since the last time.
const char* FakeTakeLog() {
  static std::string taken;
  std::lock_guard<std::mutex> guard(mutex);
  taken = std::move(log_text);
  log_text.clear();
  return taken.c_str();
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
int cuDeviceGetAttribute(int* out, int attribute, int) {
  *out = attribute == 75 ? 9 : attribute == 16 ? 4 : 0;  // sm_90
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
  if (int code = Note("cuMemAlloc_v2", Bytes(bytes))) return code;
  if (bytes > size_t{1} << 40) return 2;
  *out = reinterpret_cast<uint64_t>(malloc(bytes));
  return 0;
}
int cuMemFree_v2(uint64_t memory) {
  free(reinterpret_cast<void*>(memory));
  return Note("cuMemFree_v2");
}
int cuMemcpyHtoDAsync_v2(uint64_t target, const void* source, size_t bytes, void* stream) {
  if (int code = Note("cuMemcpyHtoDAsync_v2", Bytes(bytes) + ", " + Hex(stream))) return code;
  memcpy(reinterpret_cast<void*>(target), source, bytes);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* target, uint64_t source, size_t bytes, void* stream) {
  if (int code = Note("cuMemcpyDtoHAsync_v2", Bytes(bytes) + ", " + Hex(stream))) return code;
  memcpy(target, reinterpret_cast<void*>(source), bytes);
  return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t bytes, void* stream) {
  if (int code = Note("cuMemcpyDtoDAsync_v2", Bytes(bytes) + ", " + Hex(stream))) return code;
  memcpy(reinterpret_cast<void*>(target), reinterpret_cast<void*>(source), bytes);
  return 0;
}
int cuMemcpyPeerAsync(uint64_t target, void* to, uint64_t source, void* from, size_t bytes,
                      void* stream) {
  const std::string devices = std::to_string(reinterpret_cast<uintptr_t>(from) - 0x1000) + " to " +
                              std::to_string(reinterpret_cast<uintptr_t>(to) - 0x1000);
  if (int code = Note("cuMemcpyPeerAsync", devices + ", " + Bytes(bytes) + ", " + Hex(stream)))
    return code;
  memcpy(reinterpret_cast<void*>(target), reinterpret_cast<void*>(source), bytes);
  return 0;
}
int cuStreamCreate(void** out, unsigned flags) {
  *out = reinterpret_cast<void*>(uintptr_t{77});
  return Note("cuStreamCreate", std::to_string(flags));
}
int cuStreamDestroy_v2(void* stream) { return Note("cuStreamDestroy_v2", Hex(stream)); }
int cuStreamSynchronize(void* stream) { return Note("cuStreamSynchronize", Hex(stream)); }
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  return Note("cuStreamWaitEvent", Hex(stream) + ", " + Hex(event));
}
int cuEventCreate(void** out, unsigned) {
  *out = reinterpret_cast<void*>(uintptr_t{99});
  return Note("cuEventCreate");
}
int cuEventDestroy_v2(void* event) { return Note("cuEventDestroy_v2", Hex(event)); }
int cuEventRecord(void* event, void* stream) {
  return Note("cuEventRecord", Hex(event) + ", " + Hex(stream));
}
int cuEventSynchronize(void* event) { return Note("cuEventSynchronize", Hex(event)); }
int cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 1.5f;
  return Note("cuEventElapsedTime");
}
int cuModuleLoadDataEx(void** out, const void* code, unsigned, int*, void** values) {
  *out = reinterpret_cast<void*>(uintptr_t{55});
  const int result = Note("cuModuleLoadDataEx", static_cast<const char*>(code));
  if (result) strcpy(static_cast<char*>(values[0]), "line 3 is no PTX");
  return result;
}
int cuModuleUnload(void* module) { return Note("cuModuleUnload", Hex(module)); }
int cuModuleGetFunction(void** out, void*, const char* name) {
  *out = reinterpret_cast<void*>(uintptr_t{66});
  return Note("cuModuleGetFunction", name);
}
int cuFuncSetAttribute(void*, int attribute, int value) {
  return Note("cuFuncSetAttribute", std::to_string(attribute) + ", " + std::to_string(value));
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** args, void** extra) {
  std::string text = Hex(function);
  for (unsigned n : {gx, gy, gz, bx, by, bz, shared}) text += ", " + std::to_string(n);
  text += ", " + Hex(stream) + ", " + std::to_string(*static_cast<int*>(args[0]));
  return Note("cuLaunchKernel", text + (extra ? ", extra" : ""));
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
  return code == 0 && cooperative && blocks > 32 ? 720 : code;
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
  *out = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return 0;
}
int cuGetErrorString(int, const char** out) {
  *out = "as asked";
  return 0;
}

}  // extern "C"
#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming, performance-no-int-to-ptr)

// What the fake driver knows: devices, memory, kernels, graphs, and streams with what is queued.
// NOLINTBEGIN(readability-identifier-naming, performance-no-int-to-ptr): CUDA's names and addresses
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace fake_cuda {

inline constexpr int kOutOfMemory = 2, kInvalidContext = 201, kNoBinary = 209, kNotFound = 500,
                     kNotReady = 600;
inline constexpr int kCaptureUnsupported = 900, kCaptureInvalidated = 901, kCaptureIsolation = 905,
                     kCaptureImplicit = 906;
inline constexpr int kGlobal = 0, kRelaxed = 2;

inline std::recursive_mutex mutex;
using Guard = std::lock_guard<std::recursive_mutex>;
inline std::string log_text, failing;
inline int failing_code = 0;
inline int loads_left = -1;
inline bool logging = true;
inline thread_local void* current = nullptr;
inline thread_local int capture_mode = kGlobal;

// ---- what tests say and ask ----

struct Device {
  int broken = 0, major = 9, minor = 0;
};
inline Device devices[2];
inline size_t memory_limit = size_t{1} << 40;
inline std::map<uint64_t, size_t> memory;  // allocations
inline size_t memory_bytes = 0;
inline unsigned random_state = 1;

using SizesFn = int (*)(const char* kernel, unsigned* sizes, unsigned most);
using RunFn = int (*)(const char* kernel, const unsigned* grid, const unsigned* block,
                      void* const* args);
inline SizesFn sizes_of = nullptr;
inline RunFn run_kernel = nullptr;

inline bool ReadEnvironment() {
  const char* text = getenv("FAKE_CUDA_FAIL");
  const char* equals = text ? strchr(text, '=') : nullptr;
  if (!equals) return false;
  failing.assign(text, equals);
  failing_code = atoi(equals + 1);
  return true;
}
inline const bool fails_from_the_start = ReadEnvironment();

inline void* ContextOf(int device) { return reinterpret_cast<void*>(uintptr_t{0x1000} + device); }
inline int CurrentDevice() {
  return current ? static_cast<int>(reinterpret_cast<uintptr_t>(current) - 0x1000) : 0;
}

// Whether the driver does this for whoever asks, without a context.
inline bool NeedsNone(const char* symbol) {
  for (const char* prefix : {"cuInit", "cuDevice", "cuDriver", "cuCtx", "cuThread"}) {
    if (strncmp(symbol, prefix, strlen(prefix)) == 0) return true;
  }
  return false;
}

// Notes the call, with the device whose context is current; the code it is to fail with.
inline int Note(const char* symbol, const std::string& details = "") {
  const Guard guard(mutex);
  if (logging) {
    log_text += symbol;
    if (current) log_text += "@" + std::to_string(CurrentDevice());
    if (!details.empty()) log_text += "(" + details + ")";
    log_text += "\n";
  }
  if (failing == symbol) return failing_code;
  if (NeedsNone(symbol)) return 0;
  if (!current) return kInvalidContext;
  return devices[CurrentDevice()].broken;
}

inline std::string Bytes(size_t bytes) { return std::to_string(bytes); }
inline std::string Hex(const void* p) {
  return p ? std::to_string(reinterpret_cast<uintptr_t>(p)) : "default";
}
inline void* Number(uintptr_t n) { return reinterpret_cast<void*>(n); }

/// Objects with small numbers for handles, the lowest that is free.
template <class T>
class Handles {
 public:
  explicit Handles(uintptr_t first) : first_(first) {}
  void* Add(T object) {
    uintptr_t n = first_;
    while (objects_.count(n)) ++n;
    objects_.emplace(n, std::make_shared<T>(std::move(object)));
    return Number(n);
  }
  std::shared_ptr<T> Find(const void* handle) const {
    auto it = objects_.find(reinterpret_cast<uintptr_t>(handle));
    return it == objects_.end() ? nullptr : it->second;
  }
  void Remove(const void* handle) { objects_.erase(reinterpret_cast<uintptr_t>(handle)); }
  size_t size() const { return objects_.size(); }
  std::map<uintptr_t, std::shared_ptr<T>>& all() { return objects_; }

 private:
  uintptr_t first_;
  std::map<uintptr_t, std::shared_ptr<T>> objects_;
};

// ---- kernels and graphs ----

struct Function {
  std::string name;
  int device;
};
inline Handles<Function> functions(66);
inline Handles<std::string> modules(55);

/// A launch with copies of its arguments.
struct Launch {
  std::string name;
  int device = 0;
  unsigned grid[3], block[3];
  std::vector<std::vector<uint8_t>> args;

  int Run() const {
    if (!run_kernel) return 0;
    std::vector<void*> pointers;
    for (const std::vector<uint8_t>& arg : args)
      pointers.push_back(const_cast<uint8_t*>(arg.data()));
    return run_kernel(name.c_str(), grid, block, pointers.data());
  }
};

inline std::shared_ptr<Launch> LaunchOf(void* function, const unsigned* grid, const unsigned* block,
                                        void** args) {
  auto launch = std::make_shared<Launch>();
  const auto known = functions.Find(function);
  launch->name = known ? known->name : "";
  launch->device = known ? known->device : CurrentDevice();
  std::copy(grid, grid + 3, launch->grid);
  std::copy(block, block + 3, launch->block);
  unsigned sizes[256];
  const int count = sizes_of && known ? sizes_of(known->name.c_str(), sizes, 256) : 0;
  for (int i = 0; i < count; ++i) {
    const auto* bytes = static_cast<const uint8_t*>(args[i]);
    launch->args.emplace_back(bytes, bytes + sizes[i]);
  }
  return launch;
}

struct Graph {
  std::vector<std::shared_ptr<Launch>> launches;
};
inline Handles<Graph> graphs(200);
struct Node {
  void* graph;
  size_t place;
};
inline Handles<Node> nodes(1000);
inline Handles<Graph> execs(100000);

// ---- streams ----

struct Step {
  std::function<int()> run;  // a code, where it fails
  int device;
};
struct Stream {
  int device = 0;
  bool blocking = false;  // waits for the default stream, and it for this one
  uint64_t done = 0, queued = 0;
  std::deque<Step> steps;
  uint64_t capture = 0;  // its number, while somebody records
  int mode = kGlobal;
  bool broken = false;  // the recording is
  Graph recorded;
};
inline Handles<Stream> streams(77);
inline Stream defaults[2];
inline uint64_t captures = 0;

struct Event {
  Stream* stream = nullptr;  // … at which place it was recorded there
  std::shared_ptr<Stream> keep;
  uint64_t place = 0;
};
inline Handles<Event> events(99);

inline std::shared_ptr<Stream> StreamOf(const void* handle) {
  if (!handle) return {&defaults[CurrentDevice()], [](Stream*) {}};
  auto found = streams.Find(handle);
  if (found) return found;
  // Of a test that made up a number.
  streams.all().emplace(reinterpret_cast<uintptr_t>(handle), std::make_shared<Stream>());
  return streams.Find(handle);
}

inline void RunOne(Stream* stream) {
  Step step = std::move(stream->steps.front());
  stream->steps.pop_front();
  ++stream->done;
  if (devices[step.device].broken) return;
  const int code = step.run();
  if (code) devices[step.device].broken = code;
}
inline void RunTo(Stream* stream, uint64_t place) {
  while (stream->done < place && !stream->steps.empty()) RunOne(stream);
}
inline void Drain(Stream* stream) { RunTo(stream, stream->queued); }
inline void DrainAll() {
  for (Stream& s : defaults) Drain(&s);
  for (auto& [number, s] : streams.all()) Drain(s.get());
}

inline unsigned Random() { return random_state = random_state * 1664525 + 1013904223; }

// A few steps of some streams.
inline void RunSome() {
  std::vector<Stream*> ready;
  for (Stream& s : defaults) {
    if (!s.steps.empty()) ready.push_back(&s);
  }
  for (auto& [number, s] : streams.all()) {
    if (!s->steps.empty()) ready.push_back(s.get());
  }
  for (unsigned n = Random() >> 16 & 3; n > 0 && !ready.empty(); --n) {
    Stream* s = ready[(Random() >> 8) % ready.size()];
    if (!s->steps.empty()) RunOne(s);
  }
}

inline bool IsCapturedGlobally() {
  return std::any_of(streams.all().begin(), streams.all().end(),
                     [](const auto& s) { return s.second->capture && s.second->mode == kGlobal; });
}

// The code of a call that captures in global mode forbid; it breaks them.
inline int Unsafe() {
  if (capture_mode == kRelaxed || !IsCapturedGlobally()) return 0;
  for (auto& [number, s] : streams.all()) s->broken |= s->capture != 0;
  return kCaptureUnsupported;
}

// What must hold before something is queued on a stream.
inline int MayQueue(Stream* stream) {
  const bool is_default = stream == &defaults[0] || stream == &defaults[1];
  for (auto& [number, other] : streams.all()) {
    if (is_default && other->blocking && other->capture) {
      other->broken = true;
      return kCaptureImplicit;
    }
  }
  return 0;
}

inline int Queue(const void* handle, std::function<int()> run,
                 const std::shared_ptr<Launch>& launch = nullptr) {
  const auto stream = StreamOf(handle);
  if (int code = MayQueue(stream.get())) return code;
  if (stream->capture) {
    if (!launch) {
      stream->broken = true;
      return kCaptureUnsupported;
    }
    stream->recorded.launches.push_back(launch);
    return 0;
  }
  const bool is_default = !handle;
  if (is_default) {
    for (auto& [number, other] : streams.all()) {
      if (other->blocking) Drain(other.get());
    }
  } else if (stream->blocking) {
    Drain(&defaults[stream->device]);
  }
  stream->steps.push_back({std::move(run), CurrentDevice()});
  ++stream->queued;
  RunSome();  // what fails there is told to the next call
  return 0;
}

inline int WaitFor(Stream* stream) {
  if (stream->capture) {
    stream->broken = true;
    return kCaptureUnsupported;
  }
  if (int code = Unsafe()) return code;
  Drain(stream);
  return devices[CurrentDevice()].broken;
}

inline int AddMemory(uint64_t* out, size_t bytes) {
  if (memory_bytes + bytes > memory_limit) return kOutOfMemory;
  *out = reinterpret_cast<uint64_t>(aligned_alloc(512, (bytes + 511) / 512 * 512));
  // What nobody has written is not zero.
  memset(reinterpret_cast<void*>(*out), 0xcd, bytes);
  memory[*out] = bytes;
  memory_bytes += bytes;
  return 0;
}
inline void DropMemory(uint64_t address) {
  auto it = memory.find(address);
  if (it == memory.end()) return;
  memory_bytes -= it->second;
  memset(reinterpret_cast<void*>(address), 0xcd, it->second);
  memory.erase(it);
  free(reinterpret_cast<void*>(address));
}

// Whether the device takes code that begins like this; other code it takes as it is.
inline bool Takes(const std::string& code, int device) {
  int number = 0;
  const int own = 10 * devices[device].major + devices[device].minor;
  if (sscanf(code.c_str(), "fake cubin for sm_%d", &number) == 1)
    return number / 10 == own / 10 && number <= own;
  if (sscanf(code.c_str(), "fake PTX for compute_%d", &number) == 1) return number <= own;
  return true;
}

}  // namespace fake_cuda
// NOLINTEND(readability-identifier-naming, performance-no-int-to-ptr)

// A call of a host function for a device: what it needs there, then its launches, as a graph where
// that is possible.
#include "runtime/device/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/error.h"
#include "runtime/core/host.h"
#include "runtime/core/os.h"
#include "runtime/core/pool.h"
#include "runtime/device/arena.h"
#include "runtime/device/code.h"
#include "runtime/device/graph.h"
#include "runtime/device/weights.h"

namespace tenon::runtime {

static_assert(sizeof(tn_device_state) == TN_DEVICE_STATE_BYTES);

DeviceModule* DeviceModuleOf(const tn_device_code* code, tn_device_state* state) {
  std::atomic_ref<void*> slot(state->module);
  void* there = slot.load();
  if (there) return static_cast<DeviceModule*>(there);
  MutexLock guard(&state->lock);
  there = slot.load(std::memory_order_relaxed);
  if (there) return static_cast<DeviceModule*>(there);
  auto* module = static_cast<DeviceModule*>(calloc(1, sizeof(DeviceModule)));
  if (!module) {
    SetError("MemoryError", "out of memory");
    return nullptr;
  }
  module->device_type = code->device_type;
  slot.store(module, std::memory_order_release);
  return module;
}

void FreeDeviceModule(DeviceModule* module) {
  const DeviceDriver& driver = *FindDriver(module->device_type);
  TrimArenas(module);
  DropGraphs(module, nullptr);
  while (DeviceArena* arena = module->arenas) {
    module->arenas = arena->next;
    if (arena->mark) driver.event_free(arena->device_id, arena->mark);
    free(arena);
  }
  for (int32_t id = 0; id < TN_MAX_DEVICES; ++id) {
    if (LoadedWeights* weights = module->weights[id].load(std::memory_order_acquire))
      FreeWeights(driver, id, weights);
    FreeCode(driver, id, module->code[id].load(std::memory_order_acquire));
  }
  free(module);
}

namespace {

// Whether launches of calls become graphs: unless TENON_DEVICE_GRAPHS=0, or each launch is waited
// for.
bool WantsGraphs() {
  static std::atomic<int32_t> known{0};  // 1: no, 2: yes
  int32_t answer = known.load(std::memory_order_relaxed);
  if (answer == 0) {
    const char* text = getenv("TENON_DEVICE_GRAPHS");
    answer = (text && strcmp(text, "0") == 0) || QueuesEach() ? 1 : 2;
    known.store(answer, std::memory_order_relaxed);
  }
  return answer == 2;
}

// Code, then weights; 0, or -1 + error.
int32_t Prepare(DeviceCall* call, void** closure) {
  const tn_device_call& given = *call->given;
  if (call->driver->capture_of &&
      call->driver->capture_of(call->device.device_id, call->stream, &call->capture) != 0) {
    return -1;
  }
  call->code = CodeOf(*call);
  if (!call->code) return -1;
  if (!given.weights) return 0;
  LoadedWeights* weights = WeightsOf(*call);
  if (!weights) return -1;
  closure[given.weights_slot] = static_cast<void*>(weights->addresses());
  return 0;
}

int32_t Queue(DeviceCall* call, void** closure) {
  const tn_device_call& given = *call->given;
  if (call->driver->graph_make && call->capture == 0 && WantsGraphs()) {
    if ((given.flags & TN_CALL_REPEATS) != 0) return RunThroughGraph(call, closure);
    // What has memory between its launches has several.
    if (given.num_arenas > 0) return RunInPieces(call, closure);
  }
  const CallScope scope(call);
  return given.body(static_cast<void*>(closure), 0, 1, nullptr);
}

/// Counts a call while it is under way.
class Counted {
 public:
  explicit Counted(tn_device_state* state) : calls_(state->calls) { calls_.fetch_add(1); }
  ~Counted() { calls_.fetch_sub(1); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic_ref<uint32_t> calls_;
};

}  // namespace

// A call counts itself before it looks for the module, and this looks at the count after the module
// is out of sight: one of the two sees the other.
void LeaveDevices(tn_device_state* state) {
  std::atomic_ref<void*> slot(state->module);
  void* module = slot.exchange(nullptr);
  if (!module) return;
  if (std::atomic_ref(state->calls).load() == 0)
    return FreeDeviceModule(static_cast<DeviceModule*>(module));
  void* none = nullptr;
  slot.compare_exchange_strong(none, module);
}

int32_t LimitDevices(const tn_device_code* code, tn_device_state* state, int64_t bytes) {
  if (code->num_kernels == 0) return 0;  // it is for CPUs
  const Counted counted(state);
  DeviceModule* module = DeviceModuleOf(code, state);
  if (!module) return -1;
  MutexLock guard(&module->lock);
  module->arena_limit = bytes;
  return 0;
}

void TrimDevices(tn_device_state* state) {
  const Counted counted(state);
  void* module = std::atomic_ref<void*>(state->module).load();
  if (module) TrimArenas(static_cast<DeviceModule*>(module));
}

namespace {

/// The arenas of a call, while it has them.
class Lent {
 public:
  explicit Lent(const DeviceCall& call) : call_(call) {}
  ~Lent() {
    while (DeviceArena* const arena = first_) {
      first_ = arena->next_lent;
      ReleaseArena(call_, arena, failed_);
    }
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  void Failed() { failed_ = true; }

  // Null + error.
  void* Borrow(int64_t bytes) {
    DeviceArena* const arena = AcquireArena(call_, bytes);
    if (!arena) return nullptr;
    arena->next_lent = first_;
    first_ = arena;
    return arena->memory;
  }

 private:
  const DeviceCall& call_;
  DeviceArena* first_ = nullptr;
  bool failed_ = false;
};

constexpr int64_t kWorkspaceAlign = 64;

int64_t WorkspaceOf(const tn_device_call& given) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < given.num_arenas; ++i)
    bytes += (given.arena_bytes[i] + kWorkspaceAlign - 1) / kWorkspaceAlign * kWorkspaceAlign;
  return bytes;
}

// Puts the caller's workspace in the place of arenas; 0, or -1 + error.
int32_t TakeWorkspace(const DeviceCall& call, const CallLimits& limits, void** closure) {
  const tn_device_call& given = *call.given;
  const int64_t needed = WorkspaceOf(given);
  if (call.driver->opaque)
    return Fail("ValueError", "this device takes no workspace of the caller's");
  if (reinterpret_cast<uintptr_t>(limits.workspace) % kWorkspaceAlign != 0)
    return Fail("ValueError", "expected a workspace aligned to 64 bytes");
  if (limits.workspace_bytes < needed) {
    char message[128];
    snprintf(message, sizeof message, "the call works in %lld bytes, but its workspace has %lld",
             static_cast<long long>(needed), static_cast<long long>(limits.workspace_bytes));
    return Fail("MemoryError", message);
  }
  char* at = static_cast<char*>(limits.workspace);
  for (int64_t i = 0; i < given.num_arenas; ++i) {
    closure[given.first_arena_slot + i] = at;
    at += (given.arena_bytes[i] + kWorkspaceAlign - 1) / kWorkspaceAlign * kWorkspaceAlign;
  }
  return 0;
}

int32_t FillArenas(const DeviceCall& call, const CallLimits* limits, Lent* lent, void** closure) {
  if (limits && limits->workspace) return TakeWorkspace(call, *limits, closure);
  for (int64_t i = 0; i < call.given->num_arenas; ++i) {
    void* const memory = lent->Borrow(call.given->arena_bytes[i]);
    if (!memory) return -1;
    closure[call.given->first_arena_slot + i] = memory;
  }
  return 0;
}

}  // namespace

int32_t RunOnDevice(const tn_device_call* given, void** closure) {
  const CallLimits* const limits = ThreadLimits();
  if (limits && limits->out_workspace_bytes) {
    *limits->out_workspace_bytes = WorkspaceOf(*given);
    return 0;
  }
  const Counted counted(given->state);
  DeviceCall call = {};
  call.given = given;
  call.device = {static_cast<int32_t>(given->device_type), static_cast<int32_t>(given->device_id)};
  call.driver = RequireDevice(call.device);
  if (!call.driver) return -1;
  if (call.device.device_id >= TN_MAX_DEVICES)
    return Fail("ValueError", "the device's number is too large");
  call.module = DeviceModuleOf(given->code, given->state);
  if (!call.module) return -1;
  call.stream = CurrentStream(call.device);
  if (Prepare(&call, closure) != 0) return -1;
  Lent lent(call);
  if (FillArenas(call, limits, &lent, closure) != 0) return -1;
  const int32_t status = Queue(&call, closure);
  if (status != 0) lent.Failed();
  return status;
}

}  // namespace tenon::runtime

extern "C" int32_t tn_core_device_run(const tn_device_call* call, void** closure) {
  using namespace tenon::runtime;
  const tn_host_services* host = Host();
  auto run = host && host->device_run ? host->device_run : RunOnDevice;
  const int32_t status = run(call, closure);
  if (status != 0 && run != RunOnDevice) TakeError(host);
  return status;
}

// Arenas on devices: one for each call at a time, kept for the next.
//
// A stream's own arena needs nothing: its work is in the stream's order. Another stream's is behind
// the mark that its last call recorded, so that it can be asked whether it is idle, and waited for
// on the device where memory is short. An arena that a captured graph uses is that graph's: whoever
// replays the graph asks nobody, so it is never lent, moved or freed again.
//
//   stream 1   call ── mark A          call (A again)
//   stream 2              call (A is idle: A; else B)
//   capture             call (B, for good)
#include "runtime/device/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "runtime/core/error.h"
#include "runtime/core/foreign.h"
#include "runtime/core/object.h"
#include "runtime/core/os.h"
#include "runtime/device/graph.h"

namespace tenon::runtime {
namespace {

bool IsIdle(const DeviceCall& call, const DeviceArena& arena) {
  return !arena.lent && arena.device_id == call.device.device_id && arena.capture == 0;
}

bool IsDone(const DeviceCall& call, const DeviceArena& arena) {
  const DeviceDriver& driver = *call.driver;
  return !arena.memory ||
         (arena.marked && driver.mark_done && driver.mark_done(arena.device_id, arena.mark));
}

// The smallest idle arena that is large enough and suits; null where there is none.
template <class F>
DeviceArena* FindIdle(const DeviceCall& call, int64_t bytes, F&& suits) {
  DeviceArena* best = nullptr;
  for (DeviceArena* a = call.module->arenas; a; a = a->next) {
    if (!IsIdle(call, *a) || a->bytes < bytes || (best && a->bytes >= best->bytes)) continue;
    if (suits(*a)) best = a;
  }
  return best;
}

// From the allocator that a framework has set, whose memory one process should have once.
bool FromFramework(const DeviceCall& call, int64_t bytes, DeviceArena* arena) {
  const TvmFfi* ffi = FindTvmFfi();
  if (call.driver->opaque || !ffi || !ffi->env_tensor_alloc || !ffi->env_get_allocator ||
      !ffi->env_get_allocator()) {
    return false;
  }
  tn_dl_tensor prototype = {nullptr, call.device, 1, {TN_DL_UINT, 8, 1}, &bytes, nullptr, 0};
  void* object = nullptr;
  if (ffi->env_tensor_alloc(&prototype, &object) != 0) return false;
  const tn_dl_tensor& view = static_cast<tn_ffi_tensor*>(object)->dl_tensor;
  arena->tensor = static_cast<tn_ffi_object*>(object);
  arena->memory = static_cast<char*>(view.data) + view.byte_offset;
  return true;
}

bool Fill(const DeviceCall& call, int64_t bytes, DeviceArena* arena) {
  const DeviceDriver& driver = *call.driver;
  const int32_t id = arena->device_id;
  bool filled = FromFramework(call, bytes, arena);
  if (!filled) {
    filled = (driver.allocate_on ? driver.allocate_on(id, bytes, call.stream, &arena->memory)
                                 : driver.allocate(id, bytes, &arena->memory)) == 0;
  }
  arena->bytes = filled ? bytes : 0;
  return filled;
}

// Work that uses it may still be queued: what its stream does next comes after that.
void Empty(const DeviceModule& module, DeviceArena* arena, void* stream) {
  const DeviceDriver& driver = *FindDriver(module.device_type);
  const int32_t id = arena->device_id;
  if (arena->tensor) {
    if (arena->marked) driver.event_wait(id, arena->mark);
    Release(arena->tensor);
  } else if (arena->memory && driver.free_on) {
    if (arena->marked && arena->stream != stream) driver.stream_wait_event(id, stream, arena->mark);
    driver.free_on(id, arena->memory, stream);
  } else if (arena->memory) {
    driver.free(id, arena->memory);
  }
  arena->tensor = nullptr;
  arena->memory = nullptr;
  arena->bytes = 0;
}

int64_t BytesOn(const DeviceCall& call) {
  int64_t sum = 0;
  for (const DeviceArena* a = call.module->arenas; a; a = a->next) {
    if (a->device_id == call.device.device_id) sum += a->bytes;
  }
  return sum;
}

// A call with several arenas has them in all sizes.
bool HasMany(const DeviceCall& call) { return call.given->num_arenas > 1; }

// Empties idle arenas that are too small: they grow. Of many, the one that is next.
void DropSmaller(const DeviceCall& call, int64_t bytes) {
  for (DeviceArena* a = call.module->arenas; a; a = a->next) {
    if (!IsIdle(call, *a) || !a->memory || a->bytes >= bytes) continue;
    DropGraphs(call.module, a->memory);
    Empty(*call.module, a, call.stream);
    if (HasMany(call)) return;
  }
}

// An object without memory.
DeviceArena* Blank(const DeviceCall& call) {
  for (DeviceArena* a = call.module->arenas; a; a = a->next) {
    if (IsIdle(call, *a) && !a->memory) return a;
  }
  auto* arena = static_cast<DeviceArena*>(calloc(1, sizeof(DeviceArena)));
  if (!arena) {
    SetError("MemoryError", "out of memory");
    return nullptr;
  }
  arena->device_id = call.device.device_id;
  arena->next = call.module->arenas;
  call.module->arenas = arena;
  return arena;
}

bool MayTake(const DeviceCall& call, int64_t bytes) {
  const int64_t limit = call.module->arena_limit;
  return limit == 0 || BytesOn(call) + bytes <= limit;
}

int32_t RaiseLimit(const DeviceCall& call, int64_t bytes) {
  char message[160];
  snprintf(message, sizeof message,
           "an arena of %lld bytes: the module has %lld bytes on the device, of %lld that it may",
           static_cast<long long>(bytes), static_cast<long long>(BytesOn(call)),
           static_cast<long long>(call.module->arena_limit));
  return Fail("MemoryError", message);
}

// A new arena, as large as the largest so far where there is room; null + error.
DeviceArena* New(const DeviceCall& call, int64_t bytes) {
  DeviceModule* module = call.module;
  DropSmaller(call, bytes);
  if (!MayTake(call, bytes)) {
    RaiseLimit(call, bytes);
    return nullptr;
  }
  DeviceArena* arena = Blank(call);
  if (!arena) return nullptr;
  const int64_t most = HasMany(call) ? bytes : std::max(bytes, module->largest_arena);
  if (!(MayTake(call, most) && Fill(call, most, arena)) &&
      (most == bytes || !Fill(call, bytes, arena))) {
    return nullptr;
  }
  module->largest_arena = std::max(most, module->largest_arena);
  return arena;
}

DeviceArena* ForCapture(const DeviceCall& call, int64_t bytes) {
  for (DeviceArena* a = call.module->arenas; a; a = a->next) {
    const bool own = a->capture == call.capture && a->stream == call.stream;
    if (own && !a->lent && a->device_id == call.device.device_id && a->bytes >= bytes) return a;
  }
  DeviceArena* arena = FindIdle(call, bytes, [](const DeviceArena&) { return true; });
  if (!arena) {
    SetError("RuntimeError",
             "the stream is being captured into a graph, and there is no working memory that the "
             "graph could have; call the function once with these sizes before each capture");
    return nullptr;
  }
  DropGraphs(call.module, arena->memory);
  arena->capture = call.capture;
  return arena;
}

DeviceArena* ForStream(const DeviceCall& call, int64_t bytes) {
  DeviceArena* arena =
      FindIdle(call, bytes, [&](const DeviceArena& a) { return a.stream == call.stream; });
  if (!arena) arena = FindIdle(call, bytes, [&](const DeviceArena& a) { return IsDone(call, a); });
  if (!arena) arena = New(call, bytes);
  if (arena) return arena;
  // There is no more memory: one that another stream uses is good enough, a little later.
  arena = FindIdle(call, bytes, [](const DeviceArena& a) { return a.marked; });
  if (!arena || call.driver->stream_wait_event(arena->device_id, call.stream, arena->mark) != 0) {
    return nullptr;
  }
  return arena;
}

}  // namespace

DeviceArena* AcquireArena(const DeviceCall& call, int64_t bytes) {
  MutexLock guard(&call.module->lock);
  const int64_t least = std::max<int64_t>(bytes, 1);
  DeviceArena* arena = call.capture != 0 ? ForCapture(call, least) : ForStream(call, least);
  if (arena) {
    arena->lent = true;
    arena->stream = call.stream;
  }
  return arena;
}

void ReleaseArena(const DeviceCall& call, DeviceArena* arena, bool failed) {
  const DeviceDriver& driver = *call.driver;
  const int32_t id = arena->device_id;
  bool marked = false;
  if (driver.mark_make && call.capture == 0 && !failed) {
    if (!arena->mark) driver.mark_make(id, &arena->mark);
    marked = arena->mark && driver.event_record(id, arena->mark, call.stream) == 0;
  }
  MutexLock guard(&call.module->lock);
  arena->marked = marked;
  arena->lent = false;
}

void TrimArenas(DeviceModule* module) {
  const DeviceDriver& driver = *FindDriver(module->device_type);
  MutexLock guard(&module->lock);
  for (DeviceArena* a = module->arenas; a; a = a->next) {
    if (a->lent || a->capture != 0 || !a->memory) continue;
    if (a->marked) driver.event_wait(a->device_id, a->mark);
    DropGraphs(module, a->memory);
    Empty(*module, a, nullptr);
  }
  module->largest_arena = 0;
}

}  // namespace tenon::runtime

// Arenas, lent to calls. See tn_instances in kernel_abi.h.
#include <stdio.h>
#include <sys/mman.h>

#include <atomic>

#include "runtime/core/error.h"
#include "runtime/core/host.h"
#include "runtime/core/os.h"
#include "runtime/core/query.h"

#ifndef MADV_HUGEPAGE
#define MADV_HUGEPAGE 14
#endif

static_assert(sizeof(tn_instances) == TN_INSTANCES_BYTES);

namespace tenon::runtime {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;

// Stands in the 64 bytes before the arena.
struct alignas(64) Header {
  size_t capacity;  // of the arena
  void* mapping;
  size_t mapping_bytes;
  Header* next;         // on the overflow list
  tn_instances* state;  // whose arena it is
  Header *newer, *older;
};
static_assert(sizeof(Header) == 64);

// All arenas of this library, lent and idle.
Header* newest;
uint32_t list_lock;

Header* HeaderOf(void* arena) { return static_cast<Header*>(arena) - 1; }

void Enlist(Header* header) {
  MutexLock lock(&list_lock);
  header->older = newest;
  if (newest) newest->newer = header;
  newest = header;
}

void Strike(Header* header) {
  MutexLock lock(&list_lock);
  (header->newer ? header->newer->older : newest) = header->older;
  if (header->older) header->older->newer = header->newer;
}

void* MapArena(tn_instances* state, size_t bytes) {
  bool huge = bytes >= kHugePage;
  size_t alignment = huge ? kHugePage : alignof(Header);
  if (bytes > SIZE_MAX / 2) return nullptr;
  size_t mapping_bytes = (sizeof(Header) + alignment + bytes + kPage - 1) / kPage * kPage;
  void* mapping =
      mmap(nullptr, mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  uintptr_t start = reinterpret_cast<uintptr_t>(mapping) + sizeof(Header);
  void* arena = reinterpret_cast<void*>((start + alignment - 1) / alignment * alignment);
  if (huge) madvise(arena, bytes, MADV_HUGEPAGE);
  *HeaderOf(arena) = {bytes, mapping, mapping_bytes, nullptr, state, nullptr, nullptr};
  Enlist(HeaderOf(arena));
  return arena;
}

void UnmapArena(void* arena) {
  Strike(HeaderOf(arena));
  Header header = *HeaderOf(arena);
  munmap(header.mapping, header.mapping_bytes);
}

// A new arena is as large as the largest so far, so that each grows once at most; where that is too
// much now, as asked.
void* MakeArena(tn_instances* state, size_t bytes) {
  std::atomic_ref<int64_t> largest(state->largest);
  int64_t known = largest.load(std::memory_order_relaxed);
  if (static_cast<size_t>(known) > bytes) {
    void* arena = MapArena(state, static_cast<size_t>(known));
    return arena ? arena : MapArena(state, bytes);
  }
  void* arena = MapArena(state, bytes);
  if (!arena) return nullptr;
  while (static_cast<size_t>(known) < bytes &&
         !largest.compare_exchange_weak(known, static_cast<int64_t>(bytes),
                                        std::memory_order_relaxed)) {
  }
  return arena;
}

void* TakeIdle(tn_instances* state) {
  for (void*& slot : state->slots) {
    std::atomic_ref<void*> ref(slot);
    if (!ref.load(std::memory_order_relaxed)) continue;
    void* arena = ref.exchange(nullptr, std::memory_order_acquire);
    if (arena) return arena;
  }
  if (!std::atomic_ref<void*>(state->overflow).load(std::memory_order_relaxed)) return nullptr;
  MutexLock lock(&state->lock);
  std::atomic_ref<void*> head(state->overflow);
  void* arena = head.load(std::memory_order_relaxed);
  if (!arena) return nullptr;
  Header* next = HeaderOf(arena)->next;
  head.store(next ? next + 1 : nullptr, std::memory_order_relaxed);
  return arena;
}

void PutIdle(tn_instances* state, void* arena) {
  for (void*& slot : state->slots) {
    std::atomic_ref<void*> ref(slot);
    void* expected = nullptr;
    if (!ref.load(std::memory_order_relaxed) &&
        ref.compare_exchange_strong(expected, arena, std::memory_order_release)) {
      return;
    }
  }
  MutexLock lock(&state->lock);
  std::atomic_ref<void*> head(state->overflow);
  void* first = head.load(std::memory_order_relaxed);
  HeaderOf(arena)->next = first ? HeaderOf(first) : nullptr;
  head.store(arena, std::memory_order_relaxed);
}

void* Acquire(tn_instances* state, size_t bytes) {
  void* arena = TakeIdle(state);
  if (arena && HeaderOf(arena)->capacity >= bytes) return arena;
  if (arena) UnmapArena(arena);
  return MakeArena(state, bytes);
}

// Some state's idle arena, taken; null where all are lent.
void* TakeAnyIdle() {
  MutexLock lock(&list_lock);
  for (Header* h = newest; h; h = h->older) {
    if (void* arena = TakeIdle(h->state)) return arena;
  }
  return nullptr;
}

}  // namespace

void FreeIdleArenas() {
  while (void* arena = TakeAnyIdle()) UnmapArena(arena);
}

int32_t ReserveInstances(tn_instances* state, int32_t count, int64_t bytes) {
  // Holds all of them at once, on a list through their headers, so that they are different ones.
  void* held = nullptr;
  int32_t result = 0;
  for (int32_t i = 0; i < count && result == 0; ++i) {
    void* arena = tn_core_arena_acquire(state, bytes);
    if (arena) {
      HeaderOf(arena)->next = held ? HeaderOf(held) : nullptr;
      held = arena;
    } else {
      result = -1;
    }
  }
  while (held) {
    Header* next = HeaderOf(held)->next;
    PutIdle(state, held);
    held = next ? next + 1 : nullptr;
  }
  return result;
}

}  // namespace tenon::runtime

extern "C" void* tn_core_arena_acquire(tn_instances* state, int64_t bytes) {
  using namespace tenon::runtime;
  const bool may = bytes >= 0 && MayTake(bytes);
  void* arena = may ? Acquire(state, static_cast<size_t>(bytes)) : nullptr;
  if (!arena) {
    char message[96];
    snprintf(message, sizeof message, "%s: an arena of %lld bytes",
             may || bytes < 0 ? "out of memory" : "more memory than the call may have",
             static_cast<long long>(bytes));
    SetError("MemoryError", message);
  }
  return arena;
}

extern "C" void tn_core_arena_release(tn_instances* state, void* arena) {
  tenon::runtime::PutIdle(state, arena);
}

// The core of a WebAssembly module, as far as it is not that of other machines: one thread, so
// teams of one; no other library beside it; memory that only grows.
#include <stdio.h>
#include <stdlib.h>

#include "runtime/core/error.h"
#include "runtime/core/foreign.h"
#include "runtime/core/host.h"
#include "runtime/core/query.h"

namespace tenon::runtime {

const tn_host_services* Host() { return nullptr; }
void Adopt(const tn_host_services*) {}
void TellError(const char*, const char*) {}
void TakeError(const tn_host_services*) {}
bool MayTake(int64_t) { return true; }  // the engine bounds a module's memory
const TvmFfi* FindTvmFfi() { return nullptr; }

// An idle arena stands in slots[0]: only a function that calls itself would need a second one.
int32_t ReserveInstances(tn_instances* state, int32_t count, int64_t bytes) {
  if (count <= 0) return 0;
  void* arena = tn_core_arena_acquire(state, bytes);
  if (!arena) return -1;
  tn_core_arena_release(state, arena);
  return 0;
}

}  // namespace tenon::runtime

extern "C" {

int32_t tn_core_run_team(tn_body_fn body, void* closure, int32_t) {
  return body(closure, 0, 1, nullptr);
}

int32_t tn_core_barrier(tn_team*) { return 0; }

int32_t tn_core_take(tn_team*, int64_t, tn_part* part) {
  if (part->loop != 0) return 0;
  *part = {0, 1, 1, 0};
  return 1;
}

// An engine that lacks a feature does not take the module.
int32_t tn_core_check_cpu(void) { return 0; }

void* tn_core_arena_acquire(tn_instances* state, int64_t bytes) {
  void* idle = state->slots[0];
  state->slots[0] = nullptr;
  if (idle && state->largest >= bytes) return idle;
  free(idle);
  void* arena = bytes >= 0 && bytes < INT32_MAX ? malloc(static_cast<size_t>(bytes)) : nullptr;
  if (arena) {
    state->largest = bytes;
    return arena;
  }
  state->largest = 0;
  char message[96];
  snprintf(message, sizeof message, "out of memory: an arena of %lld bytes",
           static_cast<long long>(bytes));
  tenon::runtime::SetError("MemoryError", message);
  return nullptr;
}

void tn_core_arena_release(tn_instances* state, void* arena) {
  if (state->slots[0]) return free(arena);
  state->slots[0] = arena;
}

// For whoever instantiates the module: memory for arguments, aligned to 64 bytes (null where there
// is none), results to let go, and the message of the last call that failed.
#define TN_EXPORT __attribute__((visibility("default")))
TN_EXPORT void* tn_alloc(size_t bytes);
TN_EXPORT void tn_free(void* memory);
TN_EXPORT void tn_release(tn_ffi_any* value);
TN_EXPORT const char* tn_last_error(const char** out_kind);

void* tn_alloc(size_t bytes) { return malloc(bytes); }
void tn_free(void* memory) { free(memory); }
void tn_release(tn_ffi_any* value) { tn_core_release(value); }
const char* tn_last_error(const char** out_kind) { return tenon::runtime::LastError(out_kind); }
}

// A context is retained at the device's first use and kept. An error after which CUDA does nothing
// more in it (an illegal address, a lost device) is noted with its first words, and told to
// everybody who comes later; other devices go on. A forked child has its parent's contexts no
// more, which a word that forks wipe tells.
#include "runtime/device/cuda/context.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "runtime/core/error.h"
#include "runtime/core/os.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace tenon::runtime::cuda {
namespace {

constexpr int32_t kMaxDevices = 64;
constexpr size_t kFirstError = 700;

std::atomic<Context> contexts[kMaxDevices];
uint32_t context_lock, loss_lock, fork_lock;

/// What ended the use of a device; `text` is written before `lost` says so.
struct Lost {
  std::atomic<char*> text;
};
Lost losses[kMaxDevices];

// Errors that CUDA's documentation says leave the process's context in an inconsistent state.
bool IsFinal(Result result) {
  switch (result) {
    case 46:   // the device is not available
    case 214:  // a memory error that could not be corrected
    case 220:  // one of a link between devices
    case 226:  // one that was contained
    case 700:  // an illegal address
    case 702:  // a launch took too long
    case 709:  // the context was destroyed
    case 710:  // a kernel's assertion
    case 714:
    case 715:
    case 716:
    case 717:
    case 718:
    case 719:  // of instructions and addresses
    case 721:  // a mismatched launch
      return true;
    default: return false;
  }
}

// Kept for the process; the first one stays.
void NoteLoss(int32_t id, const char* message) {
  static char texts[kMaxDevices][kFirstError];
  MutexLock guard(&loss_lock);
  if (losses[id].text.load(std::memory_order_relaxed)) return;
  snprintf(texts[id], kFirstError, "%s", message);
  losses[id].text.store(texts[id], std::memory_order_release);
}

// Whether this process is a child of the one that began to use CUDA.
bool IsForked() {
  static std::atomic<uint32_t*> word;
  uint32_t* mine = word.load(std::memory_order_acquire);
  if (!mine) {
    MutexLock guard(&fork_lock);
    mine = word.load(std::memory_order_relaxed);
    if (!mine) {
      constexpr size_t kPage = 4096;
      void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (page == MAP_FAILED) return false;
      madvise(page, kPage, MADV_WIPEONFORK);
      mine = static_cast<uint32_t*>(page);
      *mine = 1;
      word.store(mine, std::memory_order_release);
    }
  }
  return *mine == 0;
}

// What is wrong with the device before anything is asked of it; null where nothing is.
const char* FaultOf(int32_t id, const Library** out_found, char* room, size_t bytes) {
  const char* missing = nullptr;
  *out_found = Find(&missing);
  if (!*out_found) return missing;
  if (id < 0 || id >= (*out_found)->devices) return "there is no such CUDA device";
  if (IsForked()) {
    return "CUDA cannot be used in a forked child of a process that uses it; start the child anew "
           "(Python: the start method 'spawn')";
  }
  const char* first = losses[id].text.load(std::memory_order_acquire);
  if (!first) return nullptr;
  snprintf(room, bytes, "cuda:%d cannot be used any more in this process, since %s", id, first);
  return room;
}

Context Retain(const Library& library, int32_t id) {
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

}  // namespace

int32_t Raise(int32_t id, const char* function, const char* of, Result result, const char* log) {
  const Library* library = Find(nullptr);
  const char *name = nullptr, *text = nullptr;
  library->error_name(result, &name);
  library->error_text(result, &text);
  char message[1024];
  snprintf(message, sizeof message, "%s%s%s%s on cuda:%d failed: %s (%s)%s%s", function,
           of ? " of '" : "", of ? of : "", of ? "'" : "", id, name ? name : "unknown error",
           text ? text : "no text", *log ? ": " : "", log);
  if (IsFinal(result)) NoteLoss(id, message);
  return Fail(result == kOutOfMemory ? "MemoryError" : "RuntimeError", message);
}

Use::Use(int32_t id, bool quiet) {
  const Library* found = nullptr;
  char room[kFirstError + 100];
  if (const char* fault = FaultOf(id, &found, room, sizeof room)) {
    if (!quiet) Fail("RuntimeError", fault);
    return;
  }
  context_ = Retain(*found, id);
  if (!context_) return;
  Context current = nullptr;
  found->get_current(&current);
  if (current != context_) {
    const Result result = found->push(context_);
    if (result != 0) {
      if (!quiet) Raise(id, "cuCtxPushCurrent", nullptr, result);
      return;
    }
    pushed_ = true;
  }
  library = found;
}

}  // namespace tenon::runtime::cuda

#include "support/deep_stack.h"

#include <pthread.h>

#include <cstddef>
#include <exception>

namespace tenon {

namespace {

struct Call {
  const std::function<void()>& fn;
  std::exception_ptr failure;
};

void* Run(void* data) {
  auto* call = static_cast<Call*>(data);
  try {
    call->fn();
  } catch (...) {
    call->failure = std::current_exception();
  }
  return nullptr;
}

bool RunOnStack(Call* call, size_t bytes) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_t thread;
  const bool started = pthread_attr_setstacksize(&attributes, bytes) == 0 &&
                       pthread_create(&thread, &attributes, Run, call) == 0;
  pthread_attr_destroy(&attributes);
  if (started) pthread_join(thread, nullptr);
  return started;
}

}  // namespace

void OnDeepStack(const std::function<void()>& fn) {
  constexpr size_t kMost = size_t{4} << 30, kLeast = size_t{16} << 20;
  Call call{fn, nullptr};
  size_t bytes = kMost;
  while (bytes >= kLeast && !RunOnStack(&call, bytes)) bytes /= 2;
  if (bytes < kLeast) Run(&call);  // no thread to be had: the stack at hand
  if (call.failure) std::rethrow_exception(call.failure);
}

}  // namespace tenon

#include "support/deep_stack.h"

#include <pthread.h>

#include <cstddef>
#include <ctime>
#include <exception>

#include "support/stop.h"

namespace tenon {

namespace {

struct Call {
  const std::function<void()>& fn;
  std::exception_ptr failure;
  StopRequest* asked_for = CurrentStop();
};

void* Run(void* data) {
  auto* call = static_cast<Call*>(data);
  const StopScope scope(call->asked_for);
  try {
    call->fn();
  } catch (...) {
    call->failure = std::current_exception();
  }
  return nullptr;
}

// Asking is for the thread that waits: the other one does not own the request.
void Join(pthread_t thread, StopRequest* asked_for) {
  constexpr long kOften = 50'000'000, kSecond = 1'000'000'000;  // ns
  while (asked_for) {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += kOften;
    until.tv_sec += until.tv_nsec / kSecond;
    until.tv_nsec %= kSecond;
    if (pthread_timedjoin_np(thread, nullptr, &until) == 0) return;
    asked_for->Ask();
  }
  pthread_join(thread, nullptr);
}

bool RunOnStack(Call* call, size_t bytes) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_t thread;
  const bool started = pthread_attr_setstacksize(&attributes, bytes) == 0 &&
                       pthread_create(&thread, &attributes, Run, call) == 0;
  pthread_attr_destroy(&attributes);
  if (started) Join(thread, call->asked_for);
  return started;
}

}  // namespace

void OnDeepStack(const std::function<void()>& fn) {
  constexpr size_t kMost = size_t{4} << 30, kLeast = size_t{16} << 20;
  Call call{fn, nullptr, CurrentStop()};
  size_t bytes = kMost;
  while (bytes >= kLeast && !RunOnStack(&call, bytes)) bytes /= 2;
  if (bytes < kLeast) Run(&call);  // no thread to be had: the stack at hand
  if (call.failure) std::rethrow_exception(call.failure);
}

}  // namespace tenon

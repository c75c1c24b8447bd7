// Switching is ucontext's: the interpreter switches at barriers, so its cost does not show.
// AddressSanitizer and ThreadSanitizer must be told of every change of stacks.
#include "interp/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "support/check.h"
#include "support/sanitizers.h"

#ifdef TN_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef TN_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace tenon::interp {

namespace {

// Address space; memory is used as far as the walk through expressions goes.
#if defined(TN_ASAN) || defined(TN_TSAN)
constexpr size_t kStackBytes = size_t{1} << 20;
#else
constexpr size_t kStackBytes = size_t{256} << 10;
#endif

// Whose first switch is under way: makecontext passes no pointers.
thread_local Fiber* entered = nullptr;

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

void StartSwitch([[maybe_unused]] void** fake, [[maybe_unused]] const void* bottom,
                 [[maybe_unused]] size_t size, [[maybe_unused]] void* tsan) {
#ifdef TN_ASAN
  __sanitizer_start_switch_fiber(fake, bottom, size);
#endif
#ifdef TN_TSAN
  __tsan_switch_to_fiber(tsan, 0);
#endif
}

void FinishSwitch([[maybe_unused]] void* fake, [[maybe_unused]] const void** bottom,
                  [[maybe_unused]] size_t* size) {
#ifdef TN_ASAN
  __sanitizer_finish_switch_fiber(fake, bottom, size);
#endif
}

}  // namespace

FiberStack::FiberStack() {
  map_ = mmap(nullptr, kStackBytes + PageBytes(), PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  TN_CHECK(map_ != MAP_FAILED, "no memory for the stack of a fiber");
  TN_CHECK(mprotect(map_, PageBytes(), PROT_NONE) == 0);
}

FiberStack::~FiberStack() { munmap(map_, kStackBytes + PageBytes()); }

void* FiberStack::bottom() const { return static_cast<uint8_t*>(map_) + PageBytes(); }
size_t FiberStack::size() const { return kStackBytes; }

Fiber::Fiber(FiberStack* stack, std::function<void()> body)
    : stack_(stack), body_(std::move(body)) {
  TN_CHECK(getcontext(&own_) == 0);
  own_.uc_stack.ss_sp = stack->bottom();
  own_.uc_stack.ss_size = stack->size();
  own_.uc_link = nullptr;
  makecontext(&own_, &Fiber::Enter, 0);
#ifdef TN_TSAN
  own_tsan_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  TN_CHECK(done_ || !started_);
#ifdef TN_TSAN
  __tsan_destroy_fiber(own_tsan_);
#endif
}

void Fiber::Enter() { entered->Main(); }

void Fiber::Main() {
  FinishSwitch(nullptr, &resumer_bottom_, &resumer_size_);
  body_();
  done_ = true;
  StartSwitch(nullptr, resumer_bottom_, resumer_size_, resumer_tsan_);
  setcontext(&resumer_);
  TN_UNREACHABLE();
}

void Fiber::Resume() {
  TN_CHECK(!done_);
  if (!std::exchange(started_, true)) entered = this;
#ifdef TN_TSAN
  resumer_tsan_ = __tsan_get_current_fiber();
#endif
  StartSwitch(&resumer_fake_, stack_->bottom(), stack_->size(), own_tsan_);
  swapcontext(&resumer_, &own_);
  FinishSwitch(resumer_fake_, nullptr, nullptr);
}

void Fiber::Yield() {
  StartSwitch(&own_fake_, resumer_bottom_, resumer_size_, resumer_tsan_);
  swapcontext(&own_, &resumer_);
  FinishSwitch(own_fake_, &resumer_bottom_, &resumer_size_);
}

}  // namespace tenon::interp

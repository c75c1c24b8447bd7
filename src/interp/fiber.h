// Fibers: functions with stacks of their own that run one at a time and hand over where they
// choose. What the threads of a GPU kernel are to the interpreter, a thousand at a time.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace tenon::interp {

/// A stack with a page at its end that faults.
class FiberStack {
 public:
  FiberStack();
  ~FiberStack();
  FiberStack(const FiberStack&) = delete;
  FiberStack& operator=(const FiberStack&) = delete;
  void* bottom() const;
  size_t size() const;

 private:
  void* map_;
};

class Fiber {
 public:
  /// `body` throws nothing. The stack is this fiber's until it is destroyed.
  Fiber(FiberStack* stack, std::function<void()> body);
  /// It has ended, or was never resumed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  bool done() const { return done_; }
  bool started() const { return started_; }
  /// Runs it until it yields or ends.
  void Resume();
  /// Called inside: back to where it was resumed. Not from a catch block, nor while unwinding.
  void Yield();

 private:
  static void Enter();
  void Main();

  FiberStack* stack_;
  std::function<void()> body_;
  ucontext_t own_{}, resumer_{};
  bool started_ = false, done_ = false;
  // What the sanitizers are told when stacks change.
  void* own_fake_ = nullptr;
  void* resumer_fake_ = nullptr;
  const void* resumer_bottom_ = nullptr;
  size_t resumer_size_ = 0;
  void* own_tsan_ = nullptr;
  void* resumer_tsan_ = nullptr;
};

}  // namespace tenon::interp

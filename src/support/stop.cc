#include "support/stop.h"

#include <utility>

namespace tenon {

namespace {
thread_local StopRequest* current_request = nullptr;
}  // namespace

StopRequest::StopRequest(std::function<bool()> ask)
    : ask_(std::move(ask)),
      owner_(std::this_thread::get_id()),
      asked_(std::chrono::steady_clock::now()) {}

bool StopRequest::Ask() {
  constexpr auto kOften = std::chrono::milliseconds(40);
  if (std::this_thread::get_id() == owner_ && !stopped_.load(std::memory_order_relaxed)) {
    const auto now = std::chrono::steady_clock::now();
    if (now - asked_ >= kOften) {
      asked_ = now;
      if (ask_()) stopped_ = true;
    }
  }
  return stopped_.load(std::memory_order_relaxed);
}

StopScope::StopScope(StopRequest* request) : before_(std::exchange(current_request, request)) {}
StopScope::~StopScope() { current_request = before_; }

StopRequest* CurrentStop() { return current_request; }

void PollStop() {
  if (current_request && current_request->Ask()) throw Stopped();
}

}  // namespace tenon

#include "tune/build_ahead.h"

#include <memory>
#include <system_error>
#include <utility>

#include "support/deep_stack.h"
#include "tune/same_kernels.h"

namespace tenon::tune {

Expected<std::string> Building::Identity() const {
  const Expected<LoweredCandidate>& lowered = lowered_.get();
  if (!lowered) return lowered.errors();
  return IdentityOf(*lowered);
}

Expected<BuiltCandidate> Building::Wait() const {
  const Expected<LoweredCandidate>& lowered = lowered_.get();
  if (!lowered) return lowered.errors();
  TN_ASSIGN_OR_RETURN(std::string image, Expected<std::string>(image_.get()));
  return BuiltCandidate{std::move(image), lowered->parameters};
}

BuildAhead::BuildAhead(Build build, int threads) : build_(std::move(build)) {
  for (int i = 0; i < threads; ++i) {
    try {
      threads_.emplace_back([this] { Work(); });
    } catch (const std::system_error&) {
      break;  // the machine gives no more threads: fewer do the same work
    }
  }
}

BuildAhead::~BuildAhead() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    waiting_.clear();
  }
  some_.notify_all();
}

void BuildAhead::Work() {
  while (true) {
    std::function<void()> next;
    {
      std::unique_lock lock(mutex_);
      some_.wait(lock, [&] { return over_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    OnDeepStack(next);
  }
}

void BuildAhead::Post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(job));
  }
  some_.notify_one();
}

Building BuildAhead::Start(Lowering lower, LoweredBy by) {
  const auto built = [this](const Building::Lowered& of) {
    return [this, of]() -> Expected<std::string> {
      const Expected<LoweredCandidate>& lowered = of.get();
      if (!lowered) return lowered.errors();
      return build_(lowered->module);
    };
  };
  if (threads_.empty()) {
    const Building::Lowered lowered = std::async(std::launch::deferred, std::move(lower)).share();
    return {lowered, std::async(std::launch::deferred, built(lowered)).share()};
  }
  // Shared, since functions are copied.
  const auto lowering =
      std::make_shared<std::packaged_task<Expected<LoweredCandidate>()>>(std::move(lower));
  const Building::Lowered lowered = lowering->get_future().share();
  const auto building =
      std::make_shared<std::packaged_task<Expected<std::string>()>>(built(lowered));
  Building out(lowered, building->get_future().share());
  if (by == LoweredBy::kCaller) {
    (*lowering)();
    lowered.get();  // what a user's code throws ends the session here
    Post([building] { (*building)(); });
  } else {
    Post([lowering, building] {
      (*lowering)();
      (*building)();
    });
  }
  return out;
}

BuildAhead::Identity BuildAhead::Identify(Lowering lower) {
  const auto identify = [lower = std::move(lower)]() -> Expected<std::string> {
    TN_ASSIGN_OR_RETURN(const LoweredCandidate lowered, lower());
    return IdentityOf(lowered);
  };
  if (threads_.empty()) return std::async(std::launch::deferred, identify).share();
  const auto task = std::make_shared<std::packaged_task<Expected<std::string>()>>(identify);
  Post([task] { (*task)(); });
  return task->get_future().share();
}

}  // namespace tenon::tune

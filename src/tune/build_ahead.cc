#include "tune/build_ahead.h"

#include <memory>
#include <system_error>
#include <utility>

namespace tenon::tune {

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
    std::packaged_task<Image()> next;
    {
      std::unique_lock lock(mutex_);
      some_.wait(lock, [&] { return over_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    next();
  }
}

Building BuildAhead::Start(const Lowering& lower) {
  if (threads_.empty()) {
    return [this, lower]() -> Expected<BuiltCandidate> {
      TN_ASSIGN_OR_RETURN(LoweredCandidate lowered, lower());
      TN_ASSIGN_OR_RETURN(std::string image, build_(lowered.module));
      return BuiltCandidate{std::move(image), std::move(lowered.parameters)};
    };
  }
  Expected<LoweredCandidate> lowered = lower();
  if (!lowered) return [errors = lowered.errors()]() -> Expected<BuiltCandidate> { return errors; };
  std::packaged_task<Image()> task(
      [this, module = std::move(lowered->module)] { return build_(module); });
  const std::shared_future<Image> image = task.get_future().share();
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(task));
  }
  some_.notify_one();
  return [image, parameters = std::move(lowered->parameters)]() -> Expected<BuiltCandidate> {
    TN_ASSIGN_OR_RETURN(std::string bytes, Image(image.get()));
    return BuiltCandidate{std::move(bytes), parameters};
  };
}

}  // namespace tenon::tune

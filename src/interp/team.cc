#include "interp/team.h"

#include <algorithm>
#include <thread>

namespace tenon::interp {

Team::Team(Machine& machine, int size)
    : machine_(machine),
      size_(size),
      order_(machine.Order(size)),
      states_(static_cast<size_t>(size), State::kReady) {}

Team::~Team() {
  for (auto& [key, memory] : shared_) machine_.memory.Remove(memory);
}

Memory* Team::Shared(const Node* alloc, int visit,
                     const std::function<std::unique_ptr<Memory>()>& make) {
  auto [it, added] = shared_.try_emplace({alloc, visit});
  if (added) it->second = machine_.memory.Add(make());
  return it->second;
}

void Team::Run(const std::function<void(int rank)>& body) {
  ++machine_.phase;
  std::vector<std::thread> threads;
  {
    std::unique_lock lock(mutex_);
    for (int rank = 0; rank < size_; ++rank)
      threads.emplace_back([this, rank, &body] { Work(rank, body); });
    PassOn();
  }
  for (std::thread& t : threads) t.join();
  ++machine_.phase;
  if (failure_) std::rethrow_exception(failure_);
}

void Team::Work(int rank, const std::function<void(int rank)>& body) {
  std::unique_lock lock(mutex_);
  try {
    TakeTurn(rank, lock);
    lock.unlock();
    body(rank);
    lock.lock();
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    // Where another worker failed, this one was cancelled: the other's failure is the one to
    // report.
    if (!failure_) failure_ = std::current_exception();
  }
  if (!lock.owns_lock()) lock.lock();
  states_[static_cast<size_t>(rank)] = State::kDone;
  PassOn();
}

void Team::TakeTurn(int rank, std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] { return turn_ == rank || failure_; });
  if (failure_) throw Cancelled{};
}

void Team::Barrier(int rank) {
  std::unique_lock lock(mutex_);
  states_[static_cast<size_t>(rank)] = State::kWaiting;
  PassOn();
  TakeTurn(rank, lock);
}

void Team::PassOn() {
  auto next = [&] {
    auto it = std::find_if(order_.begin(), order_.end(), [&](int64_t r) {
      return states_[static_cast<size_t>(r)] == State::kReady;
    });
    return it == order_.end() ? -1 : static_cast<int>(*it);
  };
  turn_ = next();
  if (turn_ < 0) {
    auto waiting = std::count(states_.begin(), states_.end(), State::kWaiting);
    if (waiting == size_) {
      ++machine_.phase;
      std::fill(states_.begin(), states_.end(), State::kReady);
      order_ = machine_.Order(size_);
      turn_ = next();
    } else if (waiting > 0 && !failure_) {
      failure_ = std::make_exception_ptr(Failure{
          MakeError("sync team: " + std::to_string(waiting) + " of " + std::to_string(size_) +
                    " workers wait at a barrier that the others never reach")});
    }
  }
  changed_.notify_all();
}

}  // namespace tenon::interp

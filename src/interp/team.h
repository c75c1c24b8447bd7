// A team of workers that take turns: one runs until it reaches a barrier or its end, then the next.
// All workers' turns between two barriers form a phase, in which their accesses must not conflict.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "interp/machine.h"

namespace tenon::interp {

class Team {
 public:
  Team(Machine& machine, int size);
  ~Team();
  int size() const { return size_; }

  /// Runs `body(rank)` once per worker, each on its own thread, one at a time. Rethrows the first
  /// failure.
  void Run(const std::function<void(int rank)>& body);
  /// Called by a running worker: waits for the others.
  void Barrier(int rank);
  /// Memory that all workers share, for the n-th visit of an allocation.
  Memory* Shared(const Node* alloc, int visit,
                 const std::function<std::unique_ptr<Memory>()>& make);

 private:
  enum class State { kReady, kWaiting, kDone };
  struct Cancelled {};
  void Work(int rank, const std::function<void(int rank)>& body);
  void TakeTurn(int rank, std::unique_lock<std::mutex>& lock);
  /// Chooses who runs next; starts a new phase when everyone waits.
  void PassOn();

  Machine& machine_;
  int size_;
  std::vector<int64_t> order_;
  std::vector<State> states_;
  int turn_ = -1;
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<const Node*, int>, Memory*> shared_;
};

}  // namespace tenon::interp

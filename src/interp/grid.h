// A launch of a kernel in its bound form (loop/threads.h): the threads of a block as fibers that
// hand over at barriers; blocks one after another, those that may wait for each other (of a
// cluster, of a cooperative launch: a gang) side by side.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "interp/barriers.h"
#include "interp/fiber.h"
#include "interp/machine.h"
#include "loop/threads.h"

namespace tenon::interp {

class Cta;
struct Gang;

/// One thread of a block, as its worker sees it.
class GridThread {
 public:
  GridThread(Cta* cta, const Actor& actor) : cta_(cta), actor_(actor) {}

  /// Waits for those that the level names. Fails where threads do not meet.
  void Sync(const Sync& sync);
  /// Its place in its group of so many lanes.
  int64_t lane(int64_t lanes) const { return actor_.thread % lanes; }
  int64_t warp() const { return actor_.warp; }
  /// Waits for all of its group of so many lanes, at an operation that they do together. One of a
  /// warp orders nothing; one of a warpgroup is over for all when it is for one.
  void Meet(const CallFunc& call, int64_t lanes);
  /// What the lane whose turn it is gets to see of the others: set before, read after a Meet.
  Frame* posted = nullptr;
  std::vector<Frame*> PostedByGroup(int64_t lanes) const;
  /// Between a Meet and the next one of lane 0: what it reads, it reads for so many. 1: for itself.
  void SetReadsFor(int64_t lanes) { reads_for_ = lanes; }
  /// Makes the barrier at an address ready; `what` names it.
  void MakeReady(uintptr_t address, int64_t arrivals, const std::string& what);
  /// An operation on a barrier.
  void OnBarrier(BarrierOp op, uintptr_t address, int64_t value, const std::string& what);
  /// Hands over the writes of a copy, which complete on a barrier: when nobody can go on.
  void Begin(std::vector<AsyncWrite> writes, uintptr_t barrier, const std::string& what);
  /// The memory of an allocation that threads share; null: the thread's own. Each call is a new
  /// visit: what was written in earlier ones is gone.
  Memory* Shared(const Alloc* alloc, const std::function<std::unique_ptr<Memory>()>& make);
  /// The launch before this one has ended, for this thread.
  void WaitForLaunch() { has_waited_ = true; }
  /// Notes an access; fails when it races.
  void Touch(Memory* memory, int64_t offset, int64_t bytes, AccessKind kind, const Accessed& what);
  /// True when a read would race, or what was there is gone. The read is not noted.
  bool SeesAnything(Memory* memory, int64_t offset, int64_t bytes);

 private:
  friend class Cta;
  void BeforeAccess();
  uint32_t VisitOf(Memory* memory) const;
  const Clock* seen() const;
  Actor Now() const;
  enum class State { kReady, kWaiting, kBlocked, kDone };
  Cta* cta_;
  Actor actor_;
  State state_ = State::kReady;
  const StmtNode* at_ = nullptr;  // where it waits
  Level level_ = Level::kThread;  // and for whom
  int64_t reads_for_ = 1;
  bool has_waited_ = false;
  const BarrierState* barrier_ = nullptr;  // where it is blocked, until the phase is over
  int64_t phase_ = 0;
  std::string barrier_name_;
  std::unordered_map<const Memory*, uint32_t> visits_;
};

/// Memory shared by threads, by the allocation that made it; freed at the end.
class SharedMemory {
 public:
  explicit SharedMemory(Machine& machine) : machine_(machine) {}
  ~SharedMemory();
  Memory* Get(const Alloc* alloc, const std::function<std::unique_ptr<Memory>()>& make);

 private:
  Machine& machine_;
  std::map<const Alloc*, Memory*> memory_;
};

/// What the blocks of a launch have in common.
struct Grid {
  Machine& machine;
  const Frame& frame;  // of the kernel, without the axes' variables
  ThreadNest nest;
  std::vector<int64_t> extents;  // of the nest's axes
  int64_t threads = 1, blocks = 1, warp_size = 32;
  SharedMemory global;  // its `global` allocations
  bool has_barriers = false;
  std::vector<std::unique_ptr<FiberStack>> stacks;
  int64_t cluster = 1;                 // blocks of each cluster
  bool cooperative = false;            // all blocks are there at once
  std::vector<const Memory*> awaited;  // nobody touches these before a wait for the launch before
};

/// The blocks of a launch that run side by side.
struct Gang {
  std::vector<std::unique_ptr<Cta>> ctas;
  bool cancelled = false;
};

/// Runs every block.
void RunGrid(Machine& machine, const Frame& frame);

}  // namespace tenon::interp

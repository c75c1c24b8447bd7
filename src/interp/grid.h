// A launch of a kernel in its bound form (loop/threads.h): blocks of threads one after another, the
// threads of a block as fibers that hand over at barriers.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "interp/fiber.h"
#include "interp/machine.h"
#include "loop/threads.h"

namespace tenon::interp {

class Cta;

/// One thread of a block, as its worker sees it.
class GridThread {
 public:
  GridThread(Cta* cta, const Actor& actor) : cta_(cta), actor_(actor) {}

  /// Waits for those that the level names. Fails where threads do not meet.
  void Sync(const Sync& sync);
  /// Its place in its warp.
  int64_t lane() const;
  /// Waits for all lanes of its warp at an operation that they do together, which orders nothing.
  void Meet(const CallFunc& call);
  /// What the lane whose turn it is gets to see of the others: set before, read after a Meet.
  Frame* posted = nullptr;
  std::vector<Frame*> PostedByWarp() const;
  /// Between a Meet and the next one of lane 0: what it reads, it reads for all.
  void SetForWarp(bool together) { for_warp_ = together; }
  /// The memory of an allocation that threads share; null: the thread's own. Each call is a new
  /// visit: what was written in earlier ones is gone.
  Memory* Shared(const Alloc* alloc, const std::function<std::unique_ptr<Memory>()>& make);
  /// Notes an access; fails when it races.
  void Touch(Memory* memory, int64_t offset, int64_t bytes, AccessKind kind,
             const std::string& what);
  /// True when a read would race, or what was there is gone. The read is not noted.
  bool SeesAnything(Memory* memory, int64_t offset, int64_t bytes);

 private:
  friend class Cta;
  void BeforeAccess();
  uint32_t VisitOf(Memory* memory) const;
  enum class State { kReady, kWaiting, kDone };
  Cta* cta_;
  Actor actor_;
  State state_ = State::kReady;
  const StmtNode* at_ = nullptr;  // where it waits
  Level level_ = Level::kThread;  // and for whom
  bool for_warp_ = false;
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
  std::vector<std::unique_ptr<FiberStack>> stacks;
};

/// Runs every block.
void RunGrid(Machine& machine, const Frame& frame);

}  // namespace tenon::interp

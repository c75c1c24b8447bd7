// Who touched each byte of memory last, and whether the next one to touch it may rely on having
// been ordered after: the race detector for the threads of a kernel.
//
// Order comes from barriers alone: two accesses of one block of threads are ordered when a `sync
// cta` lies between them, or a `sync warp` if both are of one warp, or when barriers have told the
// later one's thread of the earlier one (barriers.h); accesses of two blocks when a `sync grid`
// does, or a `sync cluster` if both are of one cluster. As in
// FastTrack (Flanagan and Freund, 2009) the last writer of a byte is enough, because a write that
// is not ordered after the one before is reported; of readers, the last one or the smallest group
// (warp, block, cluster, launch) that holds those since.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interp/barriers.h"

namespace tenon::interp {

/// A thread at a moment: where it is in its launch, and how many barriers it has passed.
struct Actor {
  uint32_t launch = 0;                       // 0: nobody
  uint32_t block = 0, warp = 0, thread = 0;  // of the launch; of the block; of the block
  uint32_t cluster = 0;                      // of the launch
  uint32_t cta_epoch = 0, warp_epoch = 0, cluster_epoch = 0, grid_epoch = 0;
  uint32_t clock = 0;  // its own count, of a block with barriers; else 0
  /// One of the lanes of its warp, nobody knows which: no thread, not even of the warp, sees what
  /// it wrote without a barrier.
  Actor SomeLane() const;
  std::string ToString() const;  // "thread 3 of block 0"
};

enum class AccessKind : uint8_t { kRead, kWrite, kAtomic };

class AccessHistory {
 public:
  explicit AccessHistory(int64_t bytes) : marks_(static_cast<size_t>(bytes)) {}

  /// Notes an access; what it races with, or "". `visit`: how often the thread has entered the
  /// allocation, for StaleRead. `seen`: what the thread knows of others; null: no barriers.
  std::string Note(int64_t offset, int64_t bytes, const Actor& actor, AccessKind kind,
                   uint32_t visit, const Clock* seen);
  /// True when a byte was last written in an earlier visit of the allocation: its content is gone.
  bool StaleRead(int64_t offset, int64_t bytes, const Actor& actor, uint32_t visit) const;
  /// True when a read would race with the last write of a byte. Nothing is noted.
  bool TornRead(int64_t offset, int64_t bytes, const Actor& actor, const Clock* seen) const;

 private:
  enum class Group : uint8_t { kThread, kWarp, kBlock, kCluster, kLaunch };
  struct Mark {
    Actor writer, reader;
    Group readers = Group::kThread;
    bool atomic = false;     // the writer was
    uint32_t visit = 0;      // of the writer
    std::vector<Actor> all;  // readers, one by one, where barriers order threads
  };
  static const Actor* UnorderedReader(const Mark& mark, const Actor& now, const Clock* seen);
  static void AddReader(Mark* mark, const Actor& now, const Clock* seen);
  static bool ReadersOrdered(const Mark& mark, const Actor& now);

  std::vector<Mark> marks_;
};

}  // namespace tenon::interp

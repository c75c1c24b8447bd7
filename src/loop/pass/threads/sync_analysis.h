// Which accesses of a kernel depend on each other across its threads: what place_syncs rests on.
#pragma once

#include <array>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "arith/analyzer.h"
#include "loop/pass/threads/place_syncs.h"
#include "loop/threads.h"

namespace tenon {

/// The loop that gives an access its thread along an axis.
struct Binder {
  const For* loop = nullptr;
  size_t depth = 0;       // loops around it
  size_t around = 0;      // conditions, bounds and lets around it
  bool repeated = false;  // one of them runs it several times
  int conditions = 0;     // around it
};

struct SyncAccess {
  Buffer buffer;
  std::vector<Expr> indices;  // empty: anywhere
  bool write = false, atomic = false;
  bool arrival = false;     // a wait of the thread for what it copied to the buffer
  std::vector<Expr> fixed;  // its indices; null: of a box, in dimensions of several elements
  bool solo = false;        // its statement is left to one thread along axes without a binder
  std::array<Binder, kNumAxes> binders;
  Expr value;          // that a store writes
  int conditions = 0;  // around

  /// Whether iterations of its loop over the axis may leave it out.
  bool IsGuarded(size_t axis) const { return conditions > binders[axis].conditions; }
};
using AccessList = std::vector<SyncAccess>;

/// The levels at which threads can wait for each other, each with its own barriers.
inline constexpr std::array kSyncLevels = {Level::kCta, Level::kCluster, Level::kGrid};
constexpr size_t kNumSyncLevels = kSyncLevels.size();

/// What is known at a place of a walk through a body in which loops over thread axes still stand
/// where the schedule has them. The walker keeps the state below up to date.
class SyncAnalysis {
 public:
  SyncAnalysis(const PrimFunc& func, const Module& module, const AxisExtents& extents,
               const Stmt& body);

  /// Accesses of a node to what the body writes, in the threads of the loops around.
  AccessList Collect(const NodeRef& node);

  /// An access through which threads depend on each other that meet at level number `level` and
  /// not below; null: none. The two lists have the loops up to `depth` in common; boxes speak of
  /// the loops up to `told`.
  const SyncAccess* Conflict(const AccessList& before, const AccessList& after, size_t depth,
                             size_t told, size_t level);

  /// True when the two touch one element only in the same thread along the axis; the two executions
  /// have the loops up to `depth` in common.
  bool SameThread(const SyncAccess& a, const SyncAccess& b, size_t axis, size_t depth);
  bool IsWritten(const Buffer& buffer) const { return written_.count(buffer.get()) != 0; }
  static bool Depend(const SyncAccess& a, const SyncAccess& b);
  bool MadeInside(const Buffer& buffer, const Binder& binder) const;
  /// True for memory that each iteration of the loop may treat as its own, made in it or written
  /// before it is read, but that is there once for all threads along the axis.
  bool MadeOnce(const Buffer& buffer, size_t axis, const Binder& binder);
  /// True for a write of one element by all iterations of a loop over the axis, of values of their
  /// own or of what they read there.
  bool Races(const SyncAccess& a, size_t axis);

  // ---- the walker's ----
  Analyzer analyzer;
  std::unordered_map<const Node*, size_t> loop_depth;  // of variables: how many are around
  std::unordered_map<const Node*, const For*> loops;   // of variables
  std::unordered_map<const BufferNode*, size_t> alloc_depth;
  /// Variables that differ between threads that meet at a level.
  std::array<std::unordered_set<const Node*>, kNumSyncLevels> varying;
  std::array<Binder, kNumAxes> binders;
  int conditions = 0;  // around
  AccessList all;      // found so far

 private:
  SyncAccess At(const Buffer& buffer, std::vector<Expr> indices, bool write, bool atomic) const {
    return {buffer, indices, write, atomic, false, std::move(indices), false, binders};
  }
  void AddUnknown(const NodeRef& node, AccessList* out);
  std::vector<Expr> AnyOf(const RegionNode& region);
  bool Matters(size_t axis) const { return extents_[axis] && !IsOne(extents_[axis]); }
  bool IsOwnOf(const For& loop, const Buffer& buffer);
  struct Line {
    int64_t step;
    Expr base;
  };
  bool IsFreeOf(const Expr& e, const For& loop) const;
  std::optional<Line> LineOf(const SyncAccess& a, const For& loop);
  bool OthersTouch(const SyncAccess& a, const SyncAccess& b, size_t axis);
  bool Cross(const SyncAccess& a, const SyncAccess& b, size_t axis);
  bool IndexTells(const SyncAccess& a, const SyncAccess& b, const Binder& x, const Binder& y);
  bool Apart(const SyncAccess& a, const SyncAccess& b, size_t depth, size_t level);
  bool IsTold(const Expr& e, size_t depth, size_t level) const;

  const Module& module_;
  const AxisExtents& extents_;
  const Stmt& body_;
  std::unordered_set<const Node*> dims_;  // and scalars
  std::unordered_set<const BufferNode*> written_;
  std::vector<Buffer> copied_;  // asynchronously
  std::unordered_map<const For*, std::unordered_set<const BufferNode*>> used_outside_;
};

/// Whether threads that differ along the axis are in different blocks.
inline bool IsBlockRank(size_t axis) { return axis < FirstAxisOf(Level::kCta); }

/// Whether threads that differ along the axis have the buffer in common.
inline bool IsOneFor(const BufferNode& buffer, size_t axis) {
  const Holder holder = HolderOf(buffer.scope);
  return holder == Holder::kLaunch || (holder == Holder::kBlock && !IsBlockRank(axis));
}

}  // namespace tenon

// Placing blocks of memory that live at different times into one arena.
#pragma once

#include <string>
#include <vector>

#include "arith/analyzer.h"
#include "ir/expr.h"
#include "loop/func.h"

namespace tenon {

/// A block of memory needed at the points first..last of a program (both included).
struct ArenaItem {
  std::string name;
  Expr bytes;         // index; symbolic where it depends on dims
  int64_t guess = 0;  // the bytes in a typical case: what the order is decided by
  int64_t first = 0, last = 0;
  /// Calls use the beginning alone, as a rule: a part for each worker that there may be.
  bool is_sparse = false;
};

struct ArenaPlan {
  std::vector<Expr> offsets;  // bytes, one per item, multiples of kArenaAlign
  Expr bytes;                 // of the arena, a multiple of kArenaAlign
};

inline constexpr int64_t kArenaAlign = 64;

/// Greedy by size (Pisarchyk and Lee, "Efficient memory management for deep neural net inference",
/// 2020): the largest item first, each at the lowest place where it overlaps no item that lives at
/// the same time, and sparse ones behind the others, so that what is used of all of them lies
/// together. The offsets found for the guesses only decide the *order* of items in memory; an
/// item's offset is then the largest end of those that live with it and come before it. That holds
/// for every value of the dims, and is the greedy answer or better for the guess. `analyzer` knows
/// the dims' ranges.
ArenaPlan PlanArena(const std::vector<ArenaItem>& items, Analyzer* analyzer);

/// The plan as a table for people: offset, bytes, lifetime, name.
std::string ToString(const std::vector<ArenaItem>& items, const ArenaPlan& plan);

/// When each allocation below `body` (its own and those of nested scopes) is needed. A use inside a
/// loop that the allocation is outside of counts for the whole loop. In order of appearance.
struct Lifetime {
  const Alloc* alloc = nullptr;
  bool in_parallel = false;  // made inside a parallel loop
  int64_t first = 0, last = -1;
};
struct Lifetimes {
  std::vector<Lifetime> allocs;
  /// The point of each launch, in order of appearance.
  std::vector<std::pair<const Launch*, int64_t>> launches;
  int64_t end = 0;
};
Lifetimes LifetimesOf(const Stmt& body);

}  // namespace tenon

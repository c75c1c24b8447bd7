// Schedule rules: programs over schedule primitives, one per shape of kernel. A rule never fails on
// a kernel that was built for it; where it must choose, it takes a decision (name, domain, guess).
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "target/target.h"

namespace tenon::ops {

struct Rule {
  const char* name;
  void (*apply)(Schedule& s, const Target& target);
};

const Rule* FindRule(const std::string& name);

// ---- What rules are written with (rules.cc) ----

using Names = std::vector<std::string>;
/// All of the lists in turn, without empty names.
Names Concat(std::initializer_list<Names> lists);
/// The buffer that a block writes (its first), and its element type.
std::string WrittenBuffer(const Schedule& s, const std::string& block);
DType WrittenType(const Schedule& s, const std::string& block);
/// Loops of `block` inside `loop`, split by what they run over.
struct InnerLoops {
  Names spatial, reduce;
};
InnerLoops LoopsInside(Schedule& s, const std::string& block, const std::string& loop);
/// Computes a reduction block in registers under `at`: reduction outside, tile unrolled, lanes
/// innermost. `lanes_axis` is the place of the vector axis among the block's inner spatial loops
/// (beyond the last: the last).
void ComputeInRegisters(Schedule& s, const std::string& block, const std::string& at, int64_t nv,
                        int64_t lanes, size_t lanes_axis, const Names& unrolled_reduce);

/// Schedules any kernel: every block by ScheduleBlock.
void ScheduleMap(Schedule& s, const Target& target);

/// Rules that keep a tile of results in registers (rule_tile.cc).
inline constexpr int64_t kMaxRowBlock =
    64;  // tiles of rows that may meet a panel one after another
void ScheduleTile(Schedule& s, const Target& target);
void ScheduleMatMul(Schedule& s, const Target& target);
void ScheduleImplicitGemm(Schedule& s, const Target& target);
/// Row by row (rule_rows.cc).
void ScheduleRows(Schedule& s, const Target& target);
/// Attention by blocks of queries (rule_attention.cc).
void ScheduleAttention(Schedule& s, const Target& target);

/// One block that no other rule wants: outer loops parallel, the loop that runs along memory
/// vectorized inside reductions.
void ScheduleBlock(Schedule& s, const Target& target, const std::string& block);

/// The attributes of a block.
Attrs BlockAttrs(const Schedule& s, const std::string& block);
/// Blocks whose attribute "role" is `role`.
std::vector<std::string> BlocksOfRole(const Schedule& s, const std::string& role);
/// How often a loop runs at the typical sizes of the function's dims (graph.h).
int64_t TypicalExtent(const Schedule& s, const std::string& loop);
/// Fuses loops from the front until their product is enough for every team, and makes the result
/// parallel. Returns it, or "" when there is nothing to run in parallel.
std::string ParallelOuter(Schedule& s, const std::vector<std::string>& loops);

}  // namespace tenon::ops

// What the schedules of algorithms are written with.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/algorithm.h"
#include "ops/micro_kernel.h"

namespace tenon::ops {

using Names = std::vector<std::string>;

/// The block of that name; null where there is none.
const Block* FindBlock(const Func& f, const std::string& name);

/// All of the lists in turn, without empty names.
Names Concat(std::initializer_list<Names> lists);
BlockPart PartOf(const Parts& parts, const std::string& block);
/// The function's blocks with that role, in program order.
Names BlocksOf(const Schedule& s, const Parts& parts, BlockRole role);
/// The only one, or "".
std::string OnlyBlock(const Schedule& s, const Parts& parts, BlockRole role);
/// The buffer that a block writes (its first), and its element type.
std::string WrittenBuffer(const Schedule& s, const std::string& block);
/// The last that it writes: what its steps leave, of one that is computed in order.
std::string StateBuffer(const Schedule& s, const std::string& block);
/// The buffers that a block reads, beside what it writes.
Names ReadBuffers(const Schedule& s, const std::string& block);
/// Of these, the one whose elements the loops `a` and `b` both choose among; "" where none is,
/// several are, or the block reads more of it.
std::string ReadAlong(const Schedule& s, const std::string& block, const std::string& a,
                      const std::string& b);
/// Whether neighbours along `loop` are neighbours in something that the block reads and any of the
/// loops `with` chooses from.
bool ReadsNeighbours(const Schedule& s, const std::string& block, const std::string& loop,
                     const Names& with);
/// The last of a block's reduce loops, as many as run through something that it reads without gaps;
/// at least one. Open sizes are among these where all that the block reads along these loops lies
/// so: a place elsewhere would be a quotient by such a size.
Names RunThroughMemory(const Schedule& s, const std::string& block, const Names& reduce);
/// How often a loop runs at the largest sizes of the function's dims; -1 where these have no end.
int64_t MostTrips(Schedule& s, const std::string& loop);
/// The same of loops together.
int64_t MostTripsTogether(Schedule& s, const Names& loops);
/// The same at the sizes that dims have where nothing is said.
int64_t TypicalTripsTogether(Schedule& s, const Names& loops);
/// An index without what keeps a branch that is not taken inside: loops are cut where that begins.
Expr WithoutClamps(const Expr& index);
int64_t WrittenRank(const Schedule& s, const std::string& block);
DType WrittenType(const Schedule& s, const std::string& block);
/// Loops of `block` inside `loop`, split by what they run over.
struct InnerLoops {
  Names spatial, reduce;
};
InnerLoops LoopsInside(Schedule& s, const std::string& block, const std::string& loop);

/// Computes a reduction block in registers under `at`: reduction outside, tile unrolled, the
/// kernel's operation innermost. `vectors` is a factor ("$nv"); `lanes_axis` is the place of the
/// vector axis among the block's inner spatial loops (beyond the last: the last). `along_k` is
/// called with the innermost loop of the reduction outside the tile, before what is in the tile
/// becomes the kernel's operation.
void ComputeInRegisters(Schedule& s, const std::string& block, const std::string& at,
                        const std::string& vectors, const MicroKernel& kernel, size_t lanes_axis,
                        const Names& unrolled_reduce,
                        const std::function<void(const Names& reduce)>& along_k = {});

/// How often loops run together; -1 where that is no number.
int64_t TripsTogether(Schedule& s, const Names& loops);

/// By axis of a buffer that the block reads in one place: whether one of the loops goes along it.
/// Empty where it reads it otherwise.
std::vector<bool> AxesAlong(const Schedule& s, const std::string& block, const std::string& buffer,
                            const Names& loops);

/// Any block: outer loops parallel, the loop that runs along memory vectorized inside reductions.
/// Returns the name of a block that went along with it, or "".
std::string ScheduleBlock(Schedule& s, const Parts& parts, const Machine& machine,
                          const std::string& block);
/// A block's results are shared out among the threads of a grid, each of which computes its own:
/// the last axis that is long is that of a block's threads (neighbours in memory for neighbours),
/// the axes around it are those of blocks. Returns the innermost loop over threads, or "" where the
/// block has no loops.
std::string ShareAmongThreads(Schedule& s, const Parts& parts, const std::string& block);
/// The same with a vector of neighbours in memory for each thread, of a block without a reduction
/// whose elements keep all threads of the machine busy all the same. False where it is none; then
/// nothing has changed.
bool ShareVectors(Schedule& s, const Parts& parts, const Machine& machine,
                  const std::string& block);
/// A reduction with fewer results than the machine has threads and much to reduce for each: a block
/// of threads makes a result together. False where it is none, or has a combiner that cannot be
/// shared out; then nothing has changed.
bool ReduceByThreads(Schedule& s, const Machine& machine, const std::string& block);
/// A function of two blocks, one that reduces and one that computes a result of each reduction,
/// which are few: both are one launch. False where it is none; then nothing has changed.
bool ReduceBeforeResult(Schedule& s, const Machine& machine);
/// Every block by itself, as ScheduleBlock or, where threads run together, those after it do.
void ScheduleBlocks(Schedule& s, const Parts& parts, const Machine& machine);
/// All blocks that fill halos, likewise.
void ScheduleHalos(Schedule& s, const Parts& parts, const Machine& machine);

/// So many parts can be shared out evenly, to within a few percent, among any team.
inline constexpr int64_t kEnoughParts = 64;
/// Fuses loops from the front until their product is enough for every team, and makes the result
/// parallel. Returns it, or "" when there is nothing to run in parallel.
std::string ParallelOuter(Schedule& s, const Names& loops);
/// The first `count` loops, fused and parallel; nothing for 0.
void ParallelFirst(Schedule& s, const Names& loops, int64_t count);

}  // namespace tenon::ops

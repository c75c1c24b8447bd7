// Schedules: a function transformed by primitives, each of which checks that the result computes
// the same thing.
//
// A handle is a name: loops, blocks and buffers are found by their names, which are unique in a
// function, and primitives derive new names from old ones (the table of derived names is with each
// method). The same thing means: the same value in every element of every output, up to the
// reassociation that a reduction permits. A request that is illegal, or that cannot be proved
// legal, changes nothing and leaves a diagnostic "primitive(arguments) of block B: reason".
//
// What is assumed of the input: what the verifier of `loop` checks, and that blocks declare
// truthfully (regions cover what is touched; different spatial values write different elements).
// Statements outside any block are moved only together with the loop around them.
//
// Buffers stay allocated where they are (at the function's root, usually) with their whole logical
// shape, also when all of their uses move into a loop: the pass compact_buffers moves and shrinks
// them later.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "loop/func.h"
#include "schedule/analysis/judged_loops.h"
#include "schedule/trace.h"
#include "support/expected.h"

namespace tenon {

/// Schedules one function of a module. A value: a copy is an independent schedule (cheap: the nodes
/// are shared). Errors are sticky: after a primitive has failed, all later ones do nothing and
/// return names ("") of the expected count, so that a rule is written straight down and asks
/// status() once at its end. Not thread-safe.
class Schedule {
 public:
  /// Works on module.funcs[func], which must exist (else status() says so).
  Schedule(Module module, std::string func);

  const Module& module() const { return module_; }  // current state; Outline adds functions
  const Func& func() const;
  const Trace& trace() const { return trace_; }
  Status status() const;
  bool ok() const { return errors_.empty(); }

  // ---- Looking. Names come in program order. An unknown name is an error like any other. ----
  std::vector<std::string> GetBlocks() const;
  std::vector<std::string> GetLoops(const std::string& block);       // outermost first
  std::vector<std::string> GetChildBlocks(const std::string& loop);  // the blocks under it
  std::vector<std::string> GetProducers(const std::string& block);   // blocks writing what it reads
  std::vector<std::string> GetConsumers(const std::string& block);  // blocks reading what it writes
  std::string GetBlockOf(const std::string& buffer);                // the last block writing it
  /// The constant trip count of a loop, or -1 when it is symbolic.
  int64_t GetExtent(const std::string& loop);
  /// The loops of a block whose variables appear in its bindings of that kind only, outermost
  /// first.
  std::vector<std::string> GetSpatialLoops(const std::string& block);
  std::vector<std::string> GetReduceLoops(const std::string& block);
  std::vector<std::string> GetOrderedLoops(const std::string& block);
  bool HasBlock(const std::string& block) const;
  bool HasLoop(const std::string& loop) const;

  // ---- Loops ----
  /// loop → loop.0 … loop.n-1, outermost first, with trip counts `factors`. At most one factor is
  /// -1 and is derived (the ceiling); without one the product must be at least the extent. Where it
  /// may exceed the extent, the blocks under the loop get a `where` guard. A loop of one iteration
  /// becomes loops of one iteration. Always legal.
  std::vector<std::string> Split(const std::string& loop, std::vector<int64_t> factors);
  /// Split with an outer loop that is derived: {outer, inner}.
  std::vector<std::string> Tile(const std::string& loop, int64_t factor) {
    return Split(loop, {-1, factor});
  }
  /// Split whose factors are texts: numbers, or "$name" for the choice of that name (Decide), so
  /// that a replay with other choices splits otherwise. Any number among a primitive's arguments in
  /// a trace can be such a reference.
  std::vector<std::string> SplitBy(const std::string& loop, std::vector<std::string> factors);
  /// Splits each loop by its factor and puts the tiles' loops outside: {outer of the first, …,
  /// inner of the first, …}. The loops are of one perfect nest, outermost first; legal as Reorder
  /// is.
  std::vector<std::string> TileLoops(std::vector<std::string> loops, std::vector<int64_t> factors);
  /// loop → loop.p0, loop.p1, …: consecutive loops over [min, points[0]), [points[0], points[1]),
  /// …, [points.back(), end). Points increase strictly; with a symbolic extent they are clamped to
  /// it. Everything inside is copied with names suffixed the same way (block C → C.p0, C.p1, …).
  /// Where the loop runs over a reduction, only the first part keeps the init.
  std::vector<std::string> Partition(const std::string& loop, std::vector<int64_t> points);
  /// The same into `parts` consecutive ranges whose sizes differ by one at most (longer ones
  /// first).
  std::vector<std::string> PartitionEqual(const std::string& loop, int64_t parts);
  /// Perfectly nested loops, outermost first → one loop "a_b".
  std::string Fuse(std::vector<std::string> loops);
  /// Puts the loops, all of one perfectly nested chain, into this order at the places they occupy
  /// now.
  void Reorder(std::vector<std::string> loops);
  void Parallel(const std::string& loop);
  /// The extent must be constant. A reduce loop may be vectorized when its reduction is over
  /// integers, a min or a max, or when the block's fp mode is reassoc.
  void Vectorize(const std::string& loop);
  void Unroll(const std::string& loop);
  /// Axes: "threadIdx.x", "blockIdx.y", … (up to .z), and "vthread", threads that one thread plays
  /// in turn. Legal as Parallel is. An axis is not inside itself, virtual threads aside.
  void Bind(const std::string& loop, ThreadAxis thread_axis);

  // ---- Where a block is computed ----
  /// Moves a producer under `loop`, just before the first of its consumers there, over the region
  /// they need in one iteration. Its new loops are <block>.ax0, <block>.ax1, …, one per iteration
  /// variable that is not pinned to a single value. All of its consumers must be under the loop.
  void ComputeAt(const std::string& block, const std::string& loop);
  /// Moves a consumer under `loop`, just after the last of its producers there, over what one
  /// iteration makes available.
  void ReverseComputeAt(const std::string& block, const std::string& loop);
  /// Moves a block out of all loops, over all they run over, just before the outermost loop it is
  /// in.
  void ComputeRoot(const std::string& block);
  /// Puts the value of a block that stores one element per iteration into all of its consumers;
  /// block and buffer vanish.
  void ComputeInline(const std::string& block);
  /// Folds an elementwise consumer into its only producer, which must not be a reduction.
  void ReverseComputeInline(const std::string& block);

  // ---- Caches ----
  /// New block and buffer "<buffer>.<scope>": a copy of the region of `buffer` that `block` reads,
  /// made just before the outermost loop around `block` (inside the loops that also write the
  /// buffer); `block` reads the copy. Returns the new block's name; place it with ComputeAt.
  std::string CacheRead(const std::string& block, const std::string& buffer, Scope scope);
  /// `block` writes a new buffer "<buffer>.<scope>"; a new block of that name, after the outermost
  /// loop around `block`, copies it to `buffer`. Returns the new block's name; place it with
  /// ReverseComputeAt.
  std::string CacheWrite(const std::string& block, const std::string& buffer, Scope scope);
  void SetScope(const std::string& buffer, Scope scope);

  // ---- Reductions ----
  /// Moves the init of a reduction to a block of its own, <block>.init, just before `loop` with
  /// copies <loop>.init of the spatial loops from `loop` inwards. No loop outside `loop` may run
  /// over the reduction. Returns the new block's name.
  std::string DecomposeReduction(const std::string& block, const std::string& loop);
  /// Which threads store the block's result: a condition over thread axes, "threadIdx.x == 0", that
  /// may choose among threads which have the same result alone. Without it the first one does.
  void SetStorePredicate(const std::string& block, const std::string& condition);
  /// Makes `loop`, a reduce loop, spatial: its block (now <block>.rf) reduces into a buffer
  /// <buffer>.rf that has one more dimension, at `axis` (negative: from the end), and a new block
  /// with the old name reduces that one. Returns the name of the rf block. The new nest stands
  /// after the old one; its loops are <block>.ax0 … and, innermost, the reduction.
  std::string RFactor(const std::string& loop, int64_t axis);

  // ---- Data ----
  /// Sets how a buffer is stored; accesses stay logical. Null: row-major.
  void TransformLayout(const std::string& buffer, Layout layout);

  /// Pads rows so that the stride of dimension `axis` is `offset` modulo `factor` (in elements):
  /// the dimensions after it are stored as one of that extent. For buffers made in the function,
  /// and without a layout of their own.
  void StorageAlign(const std::string& buffer, int64_t axis, int64_t factor, int64_t offset);
  /// Runs a block over other coordinates: `map` takes its iteration variables (in their order) to
  /// new ones, such as (i, j, k) -> (i / 4, j, k, i % 4), one to one and onto. The block is alone
  /// in a perfect nest that gives each variable a loop of its own; its new loops are <block>.ax0,
  /// ….
  void TransformBlockLayout(const std::string& block, Layout map);
  /// Rounds the domain of each iteration variable up to a multiple of its `padding`: what is read
  /// is copied with zeros around it (<buffer>.pad), and the result is computed in a padded buffer
  /// and copied out. For blocks alone in their nest whose indices are single variables, and sums of
  /// products that zeros do not change. Returns the names of the new blocks.
  std::vector<std::string> PadEinsum(const std::string& block, std::vector<int64_t> padding);

  // ---- Time ----
  /// Asks, in each iteration of `loop`, for what `block` reads of `buffer` `distance` iterations
  /// later: a hint per cache line, without a meaning. The buffer is one that the function does not
  /// write. Returns the name of the new block, "<buffer>.prefetch".
  std::string Prefetch(const std::string& block, const std::string& buffer, const std::string& loop,
                       int64_t distance);
  /// The same little by little, in the order of memory: in each turn of `over`, a loop between
  /// `loop` and the block, a few of the hints, so that all are given while one iteration of `loop`
  /// runs. They bring lines into the second-level cache: the rest of the iteration comes first.
  std::string SpreadPrefetch(const std::string& block, const std::string& buffer,
                             const std::string& loop, int64_t distance, const std::string& over);
  /// The statements in the loop's body run in different iterations: statement c of iteration i runs
  /// in iteration i + stages[c] of the new loop, as number order[c] there. Buffers that an
  /// iteration hands from one stage to a later one get as many versions as are alive at once, each
  /// as large as what one iteration uses. First and last iterations guard what they do not run;
  /// Partition at [last stage, extent] gives them loops of their own. Returns the name of the new
  /// loop, which counts from 0: <loop>.pipe.
  std::string SoftwarePipeline(const std::string& loop, std::vector<int64_t> stages,
                               std::vector<int64_t> order);
  /// The producer, a statement of a serial loop's body, fills one half of its buffer while the rest
  /// of the body uses the other: SoftwarePipeline of that loop with the producer one stage ahead.
  std::string DoubleBuffer(const std::string& block);
  /// The producer, under `loop` (ComputeAt), computes only what the iteration before has not, and
  /// its buffer is a ring that holds what one iteration needs.
  void RollingBuffer(const std::string& block, const std::string& loop);

  // ---- Tiles ----
  /// A perfect nest with one block in it becomes the body of a new block, <block>.tile, whose
  /// iteration variables are the loops around it and whose regions are what the nest touches: other
  /// primitives move and judge it as one. Returns the new block's name.
  std::string Blockize(const std::string& loop);
  /// Replaces a nest by a call of an intrinsic that computes the same: a `kind device` function of
  /// the module by that name (a user's, as loop text), or a row of src/intrin. The call stands in a
  /// block as Blockize makes it. Types, shapes, scopes (where the intrinsic names one other than
  /// global) and strides must agree; strides and sizes that are dims of the intrinsic are passed.
  /// Returns the block's name.
  std::string Tensorize(const std::string& loop, const std::string& intrinsic);

  // ---- Functions ----
  /// if (condition) {the body, with every name suffixed ".s"} else {the body}. The condition is
  /// over the function's dims; dims that it equates with a constant become that constant in the
  /// copy.
  void Specialize(Expr condition);
  /// Turns a loop nest or a block into a call of a function of the module: a kDevice function whose
  /// buffer parameters are the regions touched, whose dims are the strides and sizes that are not
  /// constant. A function of the module that was outlined before and computes the same is called
  /// instead of making another. Returns the callee's name (`name`, or the earlier function's).
  /// Outline last: a call is moved only with the loops around it.
  std::string Outline(const std::string& loop_or_block, const std::string& name);

  /// Sets an attribute of a loop or a block: a pragma, for whatever reads it later.
  void Annotate(const std::string& loop_or_block, const std::string& key, AttrValue value);

  // ---- Choices and replay ----
  /// A choice: the guess, unless UseDecisions gave another value of the domain for this name. The
  /// guess must be in the domain.
  int64_t Decide(const std::string& name, std::vector<int64_t> domain, int64_t guess);
  /// A choice among candidates with the probability of each; the guess is the most probable.
  int64_t SampleCategorical(const std::string& name, std::vector<int64_t> candidates,
                            std::vector<double> probabilities);
  /// Factors that multiply to the loop's extent, outermost first, the innermost at most
  /// `max_innermost`. They are the choices "name.0", "name.1", ….
  std::vector<int64_t> SamplePerfectTile(const std::string& name, const std::string& loop,
                                         int64_t parts, int64_t max_innermost);
  /// Choices to take instead of guesses, or of what a replayed trace chose, from now on. A value
  /// outside the domain it meets is ignored.
  void UseDecisions(std::map<std::string, int64_t> choices) { choices_ = std::move(choices); }
  /// Applies the steps of a trace to this schedule, which may be of another function or of other
  /// sizes: it fails at the first step that is not legal here. A choice is taken from UseDecisions,
  /// else as the trace took it if it is possible here, else by its guess; what refers to it
  /// ("$name") follows. Results must get the names that the trace gives them.
  Status Replay(const Trace& trace);

  /// True for the steps of traces that are choices.
  static bool IsChoice(const std::string& primitive);

  struct Steps;  // the table of primitives (internal)

 private:
  friend struct Steps;
  Module module_;
  std::string func_;
  Trace trace_;
  Diagnostics errors_;
  std::map<std::string, int64_t> choices_;  // to be taken
  std::map<std::string, int64_t> decided_;  // taken
  primitive::JudgedLoops judged_;
};

}  // namespace tenon

// The primitives of schedules, by the file that each is in; primitives.def is their table.
//
// A primitive changes the state only when it succeeds. Its results are the names it made; its
// diagnostics lack the "name(arguments)" that Schedule puts in front.
#pragma once

#include <string>

#include "schedule/analysis/state.h"

namespace tenon::primitive {

// loops.cc
Result Split(State& s, const std::string& loop, const Ints& factors);
Result Fuse(State& s, const Names& loops);
Result Reorder(State& s, const Names& loops);
Result Parallel(State& s, const std::string& loop);
Result Vectorize(State& s, const std::string& loop);
Result Unroll(State& s, const std::string& loop);
Result Bind(State& s, const std::string& loop, const ThreadAxis& thread_axis);
// tile.cc
Result Tile(State& s, const Names& loops, const Ints& factors);
// copies.cc
Result Partition(State& s, const std::string& loop, const Ints& points);
Result PartitionEqual(State& s, const std::string& loop, const int64_t& parts);
Result Specialize(State& s, const Expr& condition);
// compute_at.cc
Result ComputeAt(State& s, const std::string& block, const std::string& loop);
Result ComputeRoot(State& s, const std::string& block);
// reverse_compute_at.cc
Result ReverseComputeAt(State& s, const std::string& block, const std::string& loop);
// inline.cc
Result ComputeInline(State& s, const std::string& block);
Result ReverseComputeInline(State& s, const std::string& block);
// cache.cc
/// One copy for several readers that stand beside each other.
Result CacheRead(State& s, const Names& blocks, const std::string& buffer, const Scope& scope);
Result CacheWrite(State& s, const std::string& block, const Names& buffers, const Scope& scope);
// reduction.cc
Result DecomposeReduction(State& s, const std::string& block, const std::string& loop);
Result SetStorePredicate(State& s, const std::string& block, const std::string& condition);
// rfactor.cc
Result RFactor(State& s, const std::string& loop, const int64_t& axis);
// buffers.cc
Result SetScope(State& s, const std::string& buffer, const Scope& scope);
Result TransformLayout(State& s, const std::string& buffer, const Layout& layout);
Result StorageAlign(State& s, const std::string& buffer, const int64_t& axis, const int64_t& factor,
                    const int64_t& offset);
Result Annotate(State& s, const std::string& loop_or_block, const std::string& key,
                const AttrValue& value);
// remap.cc
Result TransformBlockLayout(State& s, const std::string& block, const Layout& map);
// pad_einsum.cc
Result PadEinsum(State& s, const std::string& block, const Ints& padding);
// prefetch.cc
Result Prefetch(State& s, const std::string& block, const std::string& buffer,
                const std::string& loop, const int64_t& distance);
Result SpreadPrefetch(State& s, const std::string& block, const std::string& buffer,
                      const std::string& loop, const int64_t& distance, const std::string& over);
// pipeline.cc
Result SoftwarePipeline(State& s, const std::string& loop, const Ints& stages, const Ints& order);
Result DoubleBuffer(State& s, const std::string& block);
// rolling.cc
Result RollingBuffer(State& s, const std::string& block, const std::string& loop);
// blockize.cc
Result Blockize(State& s, const std::string& loop);
// tensorize.cc
Result Tensorize(State& s, const std::string& loop, const std::string& intrinsic);
// outline.cc
Result Outline(State& s, const std::string& loop_or_block, const std::string& name);
/// The same, but trip counts do not become parameters; for comparing pieces.
Result OutlineExactly(State& s, const std::string& loop_or_block, const std::string& name);

}  // namespace tenon::primitive

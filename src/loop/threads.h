// The bound form of a GPU kernel: what bind_threads makes and back ends and the interpreter take.
//
// A kernel with the attribute `bound` is one perfect nest of loops over distinct thread axes,
// blockIdx axes outside of clusterCtaIdx axes outside of threadIdx axes, around its whole body, in
// which no further loop is bound to an axis. The loops start at 0; their extents, over the kernel's
// dims, are those of the launch. The blocks of a cluster are those that differ along clusterCtaIdx
// alone: constant numbers of them, at most kMostInCluster.
// Every thread runs the body: allocations in `shared` are one per block of threads (CTA), those in
// `global` one per launch, all others the thread's own, wherever they stand in the body.
//
// A buffer in `fragment` is memory of a warp, the 32 threads along threadIdx.x: each of its
// elements lies in the registers of one lane, as its layout says, whose first storage coordinate is
// the lane. Device functions with such parameters are operations that the lanes do together; they
// are passed the same boxes of the same buffers. Everything else touches a fragment within the
// lane. Where the function has the attribute `opaque`, nobody knows which element lies where: its
// layouts stand for the unit's own, and tell operands apart that cannot be exchanged. All that can
// be done with such a fragment besides is the same to every element.
//
// A device function with the attribute `async` is part of an asynchronous copy: the writes of a
// "copy" may take effect at any time until a wait; "commit" closes a group of those that the thread
// has begun; "wait" (its name ends in a number) lets it go on when no more than so many of its
// groups, the latest, are under way. Until then nobody may touch what is copied.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loop/func.h"

namespace tenon {

inline constexpr char kBoundAttr[] = "bound";

/// The axes from which on the threads that `level` lets wait for each other may differ: of a block
/// along threadIdx, of a cluster along clusterCtaIdx too, of a grid along all.
size_t FirstAxisOf(Level level);
inline constexpr int64_t kMostInCluster = 8;

inline bool IsBound(const PrimFunc& func) { return func.attrs.Has(kBoundAttr); }

/// An attribute of a loop or block, and then of its kernel: the launch has all blocks at once, so
/// that `sync grid` may let them wait for each other.
inline constexpr char kCooperativeAttr[] = "cooperative";
/// An attribute of a loop or block: the launch that it is in begins while the one before it runs.
inline constexpr char kDependentAttr[] = "dependent_launch";
/// Attributes of kernels that follow from it: what a dependent launch must not touch before it has
/// waited (names of buffers; those that it makes in global memory besides), and that the next
/// launch is one.
inline constexpr char kAwaitsAttr[] = "awaits";
inline constexpr char kPrecedesAttr[] = "precedes_dependent";
/// An attribute of a device function: it is the "wait" of a dependent launch, or says that the next
/// one may "begin".
inline constexpr char kLaunchOrderAttr[] = "launch_order";
enum class LaunchOrder : uint8_t { kNone, kWait, kBegin };
const char* Name(LaunchOrder order);
LaunchOrder LaunchOrderOf(const PrimFunc& func);
/// What asks for an attribute, "loop 'i'" or "block 'B'"; "" where nothing does.
std::string AskedBy(const Stmt& body, const char* attr);

inline constexpr ThreadAxis kLaneAxis = ThreadAxis::kThreadIdxX;
inline constexpr int64_t kLanes = 32;
inline constexpr char kOpaqueAttr[] = "opaque";
inline bool IsFragment(const BufferNode& buffer) { return buffer.scope == Scope::kFragment; }
/// What a device function is of an asynchronous copy; loop/warpgroup.h has "init" and "bulk".
inline constexpr char kAsyncAttr[] = "async";
enum class AsyncPart : uint8_t { kNone, kCopy, kCommit, kWait, kInit, kBulk };
const char* Name(AsyncPart part);
AsyncPart AsyncPartOf(const PrimFunc& func);
/// Of a "wait": how many groups may stay under way.
int64_t AsyncGroups(const PrimFunc& func);

/// A device function with an operand in a fragment.
bool IsWarpFunction(const PrimFunc& func);

/// The loops over thread axes at the top of a function, outermost first, and what they enclose.
struct ThreadNest {
  std::vector<const For*> axes;
  Stmt body;
};
ThreadNest PeelThreads(const PrimFunc& func);

}  // namespace tenon

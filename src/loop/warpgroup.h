// What kernels in their bound form (loop/threads.h) may have where 128 threads work together and
// the machine copies by itself.
//
// The lanes of a fragment are the threads along threadIdx.x: the 32 of a warp or the 128 of a
// warpgroup. An operand of an operation may lie in shared memory in a layout of its own, a tile.
//
// A barrier is an element of a buffer of u64 in scope `barrier`. Threads of a block and copies meet
// at it, phase by phase: `arrive` and `expect` are arrivals, `expect` also announces so many bytes
// that copies bring; the phase ends when as many have arrived as the barrier was made for and all
// bytes have come. `wait b, n` goes on when the n-th phase has ended, n modulo 2 (the phase before
// the first counts as ended). What was done before an arrival is seen behind a wait for its phase.
//
// A device function with the attribute `async` is a part of this:
//   "init"   makes a barrier, its buffer, ready for as many arrivals as its scalar says; by one
//            thread, with a `sync cta` before its use.
//   "bulk"   a copy that one thread begins: its buffers are the source, the target, and a barrier,
//            which it brings the target's bytes to; its scalars end in the first row and column of
//            the source in its buffer. Nobody may touch the target before.
//
// `roles` divide the warps of a block, in the order of their threads (x fastest): the first role
// has the first of them.
//
// The attribute `tensor_maps` of a kernel names its parameters that bulk copies alone read, and
// which launches therefore pass as descriptions for the copy engine, made on the host (of a kernel
// in two forms, loop/aligned_form.h, the aligned one alone may have it);
// `tensor_sizes` are the rows and columns of each, a number or the name of a dim.
#pragma once

#include "loop/func.h"

namespace tenon {

inline constexpr int64_t kWarpgroup = 128;

inline constexpr char kTensorMapsAttr[] = "tensor_maps";
inline constexpr char kTensorSizesAttr[] = "tensor_sizes";

/// Of a loop whose bulk copies a role of their own makes ahead: how many steps there is room for.
inline constexpr char kProducerStagesAttr[] = "producer_stages";

/// How many threads do an operation together: the lanes of its fragments. 0 of other functions.
int64_t LanesOf(const PrimFunc& func);

inline bool IsTile(const BufferNode& buffer) {
  return buffer.scope == Scope::kShared && buffer.layout;
}

}  // namespace tenon

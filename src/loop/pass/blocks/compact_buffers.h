// compact_buffers: moves allocations to their uses and shrinks them to what is used there.
//
// Needs: scheduled blocks (it reads off them what is initialised where), allocations anywhere
// outside, usually at the root with the whole logical shape: schedules leave them there. Ensures:
// in kernels and device functions, an Alloc stands around the smallest statement with all of its
// uses, as far as that is sound: inside a serial loop only when each iteration reads nothing but
// what it wrote itself before (proved from boxes: a block, nest or called function that writes
// every element of a box, before all reads within that box), inside a parallel loop always, for
// its iterations are independent; `global` becomes `local` there. What a loop says that each of
// its iterations has for itself (its attribute `private`) gets an allocation inside it first, one
// for each such loop, and no proof. Each dimension shrinks to the box that is used within one
// execution of that statement, if its size is constant or does not depend on loops; indices and
// declared regions are relative to the box. A layout stays, over the smaller logical shape; padded
// rows are padded anew by the rule that they show (storage_align), else keep their length modulo
// 128 elements; buffers with other storage extents or strides move but keep their shape. A call
// whose operand's strides are dims of their own is told the new ones; buffers passed to other calls
// keep what their strides come from, and a remark says so. Why first: schedule primitives look for
// buffers at their old place; everything later profits from small ones.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module CompactBuffers(const Module& module, const PassContext& context);

}  // namespace tenon

// distribute: fragments get their layouts, and each lane of a warp its elements.
//
// Needs: blocks are lowered, loops over thread axes are those of the schedule. Ensures, for kernels
// of a GPU target: a buffer in `fragment` has a layout over the lanes (loop/threads.h), the one
// that the operations which it is passed to ask for, or that of a fragment of its shape which a
// statement touches at the same element, and a tile in `shared` has one where they do; memory in
// `shared` that a warp's operations are passed begins where they need it to; a nest of serial loops
// that touches elements of fragments otherwise (an initial value, what is made of a result) becomes
// one over threadIdx.x in which each lane runs over its own registers, innermost those that lie
// next to each other in memory. Errors: layouts that do not agree, boxes that do not begin where a
// tile does, or at the bytes that an operation needs, or rows that are not as far apart as it takes
// them, elements of one lane that another needs, elements that are not all treated alike where
// nobody knows which lies where. Why before bind_threads: it makes loops over an axis.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module Distribute(const Module& module, const PassContext& context);

}  // namespace tenon

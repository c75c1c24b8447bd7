// flatten_storage: logical accesses become one-dimensional accesses of storage.
//
// Needs: blocks are lowered (regions of blocks would lose their boxes); plan_storage and
// make_packed are done, for they look at logical shapes. Ensures: every buffer (parameters, allocs,
// binds) has one dimension: the elements of its storage, layout and strides applied; every index is
// simplified under the loop ranges around it. A region becomes the stretch of storage from its
// first to its last element. Vector accesses of neighbours are ramps of stride 1. A private buffer
// without a layout of its own is laid out with its vectorized dimension innermost. Buffers whose
// layout names thread axes stay for `distribute`. Why before vectorize: layouts are full of
// divisions and remainders, which the simplifier takes apart while the lane is still a loop
// variable with a range; afterwards an access is a ramp exactly when its index is affine in the
// lane.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module FlattenStorage(const Module& module, const PassContext& context);

}  // namespace tenon

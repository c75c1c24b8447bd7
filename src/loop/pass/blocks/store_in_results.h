// store_in_results: what a kernel keeps for the last time it makes a result lies in that result.
//
// Needs: blocks as schedules leave them, allocations of whole buffers at the root. Ensures: an
// allocation in memory (not in registers) of which every element is written once, and read for the
// last time where the same element of a result of the same type and shape is written, is gone: it
// is the result. Why first: whole buffers can be compared with results, before compact_buffers
// makes them as small as what is used of them.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module StoreInResults(const Module& module, const PassContext& context);

}  // namespace tenon

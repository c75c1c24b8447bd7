// narrow_f16, narrow_bf16: products multiply factors of 16 bits, and what one kernel hands to the
// next is kept in 16 bits where rounding it once does no harm. Everything else stays as it is:
// sums, norms, softmax and all that is computed between two kernels' borders is f32 inside of them,
// and inputs and outputs of the graph have the types that they had.
//
// Needs: groups (fuse), or single operators; no plans and no layouts. Ensures: the same groups,
// with conversions at their borders; weights that are factors pass through a `cast`, which depends
// on them alone. Why behind fuse: then it is known which values are stored, and a value that is not
// is never rounded. Why before plan_groups: types decide which algorithms there are.
#pragma once

#include <string>
#include <vector>

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph NarrowF16(const Graph& g, const GraphPassContext& context);
Graph NarrowBf16(const Graph& g, const GraphPassContext& context);

/// The names of values of f32 that one kernel hands to another, and how many are of fewer bits.
struct StoredFloats {
  std::vector<std::string> wide;
  int64_t narrow = 0;
};
StoredFloats StoredFloatsOf(const Graph& g);

}  // namespace tenon::graph

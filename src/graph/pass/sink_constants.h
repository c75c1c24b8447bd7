// sink_constants: what control flow captures and what depends on constants alone is computed
// inside.
//
// Needs: nothing. Ensures: no region of control flow captures a value that is computed ahead of a
// call. Nothing but plain values crosses a region's border, so a weight that was cut or turned
// around outside would be brought into the layout that a product inside asks for in every
// iteration; computed inside it is a weight, and lies as the product wants it once and for all.
// Costs nothing at run time; a value that several regions capture is computed ahead for each of
// them. Why here: before every pass that treats weights differently from other values.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph SinkConstants(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph

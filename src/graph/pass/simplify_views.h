// simplify_views: chains of reshape, transpose and slice become reshape, slice, transpose, reshape,
// with each of the four left out where it changes nothing, if that is shorter. gather of constant
// indices in steps is a slice; operators that change nothing (a cast to the same type, an expand to
// the same shape, …) go.
//
// Needs: layouts not assigned yet (views that change the layout are left alone). Ensures: a view
// reads the value furthest back that it can be read from, and slices come before transposes, so
// that what is not wanted is never moved. Where: early, so that raising sees few views, and again
// after raise_attention, which adds transposes.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph SimplifyViews(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph

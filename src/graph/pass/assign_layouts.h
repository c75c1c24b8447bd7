// assign_layouts: a layout for every value of a convolutional network.
//
// Needs: weights folded (fold_into_conv). Ensures: feature maps between convolutions lie in channel
// blocks as wide as a vector, with a halo where a convolution pads; weights and biases as the
// convolution algorithms want them (a reshape that changes only the layout, on a constant:
// `prepare`); graph inputs that a padded convolution reads are copied once into a layout with a
// halo. Graph inputs and outputs stay row-major: layouts change only at the ends. Everything
// remains correct in any layout, only the cost differs: operators speak logical axes. A value that
// has a layout keeps it.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph AssignLayouts(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph

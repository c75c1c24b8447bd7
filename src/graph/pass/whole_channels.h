// whole_channels: an image of few channels gets as many as one access of 16 bits each moves.
//
// Needs: a precision that makes factors 16 bits wide, so nothing but the two of them asks for it.
// Ensures: where the machine has units for matrices of 16 bits and threads run together, no
// convolution of one group whose weights are constant has fewer than eight channels, if
// computing its windows takes longer than a launch: image and weights have zeros behind those that
// they had. Why: windows are brought piece by piece then, and nobody waits for them, while three
// colours are computed element by element.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph WholeChannels(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph

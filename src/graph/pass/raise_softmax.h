// raise_softmax: exp(x - max) / Σ exp(x - max) along one axis becomes softmax; x - max - log Σ
// exp(x - max) log_softmax.
//
// Needs: common subexpressions merged (an exporter may write x - max twice). Ensures: no softmax
// with its maximum taken off is spelled out. exp(x) / Σ exp(x) stays: it overflows where softmax
// does not, and that is for the model to say. Why before raise_attention: which looks for softmax.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph RaiseSoftmax(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph

// integer_products: a product or a convolution of numbers that bytes stand for becomes one of the
// bytes:
//   (s (x - z)) · (t w) = s t (x · w - z Σ w)
// A maximum of such numbers becomes one of the bytes, what makes bytes of a concatenation that
// nobody else reads makes them of its parts, and what makes the byte again that a number was made
// of becomes that byte.
//
// Needs: nothing. Ensures: where the machine multiplies such bytes by an operation of its own, no
// product of f32 by a constant matrix, nor a convolution by constant weights, whose operands are
// bytes less a known zero point times a scale. Weights are around 0, or around 128, and have a
// scale for all of them or for each column (map); the other operand has one scale. What is outside
// of a convolution's input is its zero point. Why before fold_into_conv: that gives weights other
// factors.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph IntegerProducts(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph

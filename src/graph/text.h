// The text form of graphs. Parse(Print(g)) equals g.
//
//   graph @main<batch: 1..=64 step 2>(%0 "input": f32[batch, 3]) {
//     metadata "author" "x"
//     require [batch * 3 <= 96]
//     %1 "w": f32[4, 3] = const @"model.weights"+4096
//     %2: i64[2] = const [1, 2]
//     %3 "z": f32[batch, 4] = matmul(%0, %1) {trans_b: true} "fc1"
//     %4: f32[batch, 4] = fused(%3) region(%0: f32[batch, 4]) {
//       %1: f32[batch, 4] = relu(%0)
//       return %1 "r"
//     }
//     return %4 "y", %0 "same"
//   }
//
// `_` is an absent operand. Names are JSON strings. Constants in files are read from `Source` when
// parsed; where there is none, they are an error. Owned constants of floats print as shortest
// decimals that round-trip; nan, inf, -inf.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace tenon::graph {

std::string Print(const Graph& g);
/// The numbers that Print gives the values of the graph, without its regions; -1: none, where it is
/// no input, no constant and no node's result.
std::vector<int64_t> TextNumbers(const Graph& g);

/// Opens a weight file named in a text.
using WeightSource =
    std::function<Expected<std::shared_ptr<const WeightFile>>(const std::string& path)>;

/// Errors carry line and column in `file`. The result is verified.
Expected<Graph> Parse(std::string_view text, const std::string& file = "",
                      const WeightSource& source = {});

/// Same operators, structure, types, attributes and payload bytes, in the same order; names of
/// nodes and inner values and of symbolic dims do not matter. The first difference in `*where` if
/// not null.
bool StructuralEqual(const Graph& a, const Graph& b, std::string* where = nullptr);

}  // namespace tenon::graph

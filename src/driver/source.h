// The model as it lies in its files.
#pragma once

#include <vector>

#include "driver/compile.h"
#include "graph/graph.h"
#include "support/hash.h"

namespace tenon::driver {

/// Reads the model that the options name. Nothing is compiled; weights stay in their files.
/// `obstacles`, where given, becomes all that keeps it from being read (import.h).
Expected<graph::Graph> ImportModel(const CompileOptions& options,
                                   std::vector<onnx::Obstacle>* obstacles = nullptr);

/// A hash of the bytes of the model's file and of the files of weights that the graph, which came
/// from it, refers to. Releases the pages it reads.
Expected<Hash128> HashSource(const CompileOptions& options, const graph::Graph& g);

/// The files that constants of the graph lie in, in the order of the model.
std::vector<const graph::WeightFile*> WeightFilesOf(const graph::Graph& g);

}  // namespace tenon::driver

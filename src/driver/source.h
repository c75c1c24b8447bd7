// The model as it lies in its files.
#pragma once

#include <span>
#include <vector>

#include "driver/compile.h"
#include "graph/program.h"
#include "support/hash.h"

namespace tenon::driver {

/// Reads the model that the options name. Nothing is compiled; weights stay in their files.
/// `obstacles`, where given, becomes all that keeps it from being read (import.h).
Expected<graph::Program> ImportModel(const CompileOptions& options,
                                     std::vector<onnx::Obstacle>* obstacles = nullptr);

/// A hash of the bytes of the model's file and of the files of weights that the graphs, which came
/// from it, refer to. Releases the pages it reads.
Expected<Hash128> HashSource(const CompileOptions& options, std::span<const graph::Graph> graphs);

/// The files that constants of the graphs lie in, in the order of the model.
std::vector<const graph::WeightFile*> WeightFilesOf(std::span<const graph::Graph> graphs);

}  // namespace tenon::driver

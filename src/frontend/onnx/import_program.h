// From an ONNX file with strings, sequences, optionals or maps to a program.
#pragma once

#include "frontend/onnx/import.h"
#include "graph/program.h"

namespace tenon::onnx {

/// Whether a network has values that are no tensors of numbers, or operators on such.
bool NeedsProgram(const ModelProto& model);
/// Whether a node's result has a shape, and so a rank, that the call may decide.
bool HasRanksOfCalls(const GraphProto& g, const ImportOptions& options);

/// Imports such a network: the longest runs of nodes on tensors become parts, which are imported as
/// models of their own, with the sizes of their inputs open where they are not known. Errors name
/// the node.
/// `control`: whether branches and loops are steps even where all their values are tensors, which
/// lets them give and carry tensors whose shapes change.
Expected<graph::Program> ImportProgram(std::shared_ptr<const graph::WeightFile> file,
                                       const ModelProto& model, const ImportOptions& options,
                                       bool control = false);

}  // namespace tenon::onnx

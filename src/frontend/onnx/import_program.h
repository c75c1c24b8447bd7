// From an ONNX file with strings, sequences, optionals or maps to a program.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

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

/// A model's graph and, of its outputs, the model's element types, which tell what bytes mean
/// (narrow.h). The model is one that was read, its functions inlined.
struct ImportedPart {
  graph::Graph graph;
  std::vector<int32_t> output_types;
  bool assumes_rank = false;  // open sizes are taken to be none that decide ranks
};
/// What is said about errors besides.
struct PartFaults {
  /// FaultOf those that no other ranks and sizes of a node's inputs would spare, such as an
  /// attribute of the wrong type.
  std::set<std::string> lasting;
  /// The first node that has an error and an operand of which a call finds a size by computing.
  std::string of_found_sizes;
};
Expected<ImportedPart> ImportPart(std::shared_ptr<const graph::WeightFile> model,
                                  const ModelProto& proto, const ImportOptions& options,
                                  PartFaults* faults = nullptr);
/// What tells one error from another.
std::string FaultOf(const Diagnostic& error);

}  // namespace tenon::onnx

// Graphs in attributes as the file has them. Their nodes are looked at with the types of a call,
// and a branch that fails then may be one that is never taken; what is wrong at all sizes is said
// at once.
#pragma once

#include <memory>

#include "frontend/onnx/import.h"
#include "frontend/onnx/proto.h"
#include "support/expected.h"

namespace tenon::onnx {

/// That all tensors of the graphs in attributes can be read, and that their names and nodes are in
/// order. Errors: one for each tensor or graph that is not so.
Status CheckSubgraphs(const GraphProto& main, const std::shared_ptr<const graph::WeightFile>& file,
                      const ImportOptions& options);

}  // namespace tenon::onnx

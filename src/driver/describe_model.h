// What `inspect` says about a model, as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "driver/compile.h"
#include "support/expected.h"

namespace tenon::driver {

/// {"kind": "model", "ir_version", "opset": {domain: version}, "producer", "producer_name",
/// "domain", "model_version", "doc", "graph", "graph_doc", "inputs", "outputs", "overridable",
/// "operators": {type: count}, "weights", "metadata"}. A tensor is {"name", "dtype", "shape"}, with
/// sizes as the model has them: numbers, names, "?"; without "shape" where its rank is not known.
/// "overridable" are the initializers that the graph lists among its inputs. Nothing is imported.
/// Errors: it is no model.
Expected<nlohmann::ordered_json> DescribeDeclared(const CompileOptions& options);

/// The same, with "inputs" and "outputs" as they are inferred, "dims" and "weights_bytes", or
/// "unsupported", everything that keeps it from being compiled: [{"operator", "domain", "version"
/// (null: unknown), "reason", "nodes": […]}, …]. `problems` becomes why it cannot be compiled, as
/// messages.
Expected<nlohmann::ordered_json> DescribeModel(const CompileOptions& options,
                                               Diagnostics* problems);

}  // namespace tenon::driver

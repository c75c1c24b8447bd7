// What `inspect` says about a file, as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "driver/compile.h"
#include "support/expected.h"

namespace tenon::tools {

using Json = nlohmann::ordered_json;

/// Of a model: {"kind": "model", "ir_version", "opset", "producer", "inputs", "outputs",
/// "operators": {type: count}, "weights", "weights_bytes", "metadata"}. `problems` becomes what
/// keeps it from being compiled: unsupported operators all at once, or what else the importer
/// finds. Errors: it cannot be read at all.
Expected<Json> DescribeModel(const driver::CompileOptions& options, Diagnostics* problems);

/// Of a compiled library: its information (kernel_abi.h) with "kind": "artifact" and "file_bytes".
/// A library for another CPU is described too; `problems` becomes why it does not run here.
Expected<Json> DescribeArtifact(const std::string& path, Diagnostics* problems);

}  // namespace tenon::tools

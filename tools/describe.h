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

/// Of a compiled library, which is read and not loaded: its information (kernel_abi.h) with "kind":
/// "artifact" and "file_bytes". A library for another CPU is described too; `problems` becomes why
/// it does not run here. Errors: it is no library of ours, or its code is damaged.
Expected<Json> DescribeArtifact(const std::string& path, Diagnostics* problems);

/// Compares every byte of a library, and of the file of weights that its description names, with
/// the checksums that were written with them.
Status VerifyArtifact(const std::string& path, const Json& description);

}  // namespace tenon::tools

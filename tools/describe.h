// What `inspect` says about a library, as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "support/expected.h"

namespace tenon::tools {

using Json = nlohmann::ordered_json;

/// Of a library, which is read and not loaded: its information (kernel_abi.h) with "kind":
/// "artifact" and "file_bytes". A library for another CPU is described too; `problems` becomes why
/// it does not run here. Errors: it is no library of ours, or its code is damaged.
Expected<Json> DescribeArtifact(const std::string& path, Diagnostics* problems);

/// Compares every byte of a library, and of the file of weights that its description names, with
/// the checksums that were written with them.
Status VerifyArtifact(const std::string& path, const Json& description);

}  // namespace tenon::tools

// A network as C11 source: the file, its header, and the weights in the file or in one of their
// own.
#pragma once

#include <functional>
#include <string>

#include "driver/prepare.h"
#include "driver/write_artifact.h"

namespace tenon::driver {

struct SourceRequest {
  const graph::LoweredNetwork& network;
  const CompiledModule& code;  // with its functions, not objects
  const Target& target;
  const Target& build_host;  // that weights are computed on
  const CompileOptions& options;
  const Output& output;
  const std::string& info;  // the artifact's information text
  PrepareOptions prepare;
  std::function<void(int64_t done, int64_t total)> progress;
};

/// Writes output.path, the header beside it and, with --params separate, output.params.
Status WriteSource(const SourceRequest& request);

/// The name of the function that the source exports for C programs.
std::string PlainName(const CompileOptions& options);

}  // namespace tenon::driver

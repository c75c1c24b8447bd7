// Where the result of a compilation goes, and the file of the library or object itself.
#pragma once

#include <string>

#include "artifact/library_writer.h"
#include "driver/compile.h"
#include "driver/kernels.h"
#include "graph/lower/lower.h"

namespace tenon::driver {

/// What CompileOptions::output stands for.
struct Output {
  std::string path;        // of the library or object
  std::string params;      // of the file of weights; "": they are in the library
  std::string directory;   // that `path` is in, "." or with a '/' at the end
  bool is_bundle = false;  // metadata and an example are wanted beside it
};

/// Makes the folder where the options name one that is not there. Errors: the
/// output cannot be written.
Expected<Output> ResolveOutput(const CompileOptions& options, const Target& target);

/// What to link of a network's code; nothing about weights.
artifact::LinkRequest RequestLink(const CompiledModule& code, const Target& target,
                                  const CompileOptions& options);

/// Links the code; the weights are still zero and nothing is in its place until the writer commits.
Expected<artifact::LibraryWriter> CreateArtifact(const graph::LoweredNetwork& network,
                                                 const CompiledModule& code, const Target& target,
                                                 const CompileOptions& options,
                                                 const Output& output);

/// What a file of weights says about each of them.
std::vector<artifact::ParamEntry> WeightTable(const graph::LoweredNetwork& network);

/// Bytes of the finished artifact with its file of weights.
int64_t ArtifactBytes(const Output& output);

}  // namespace tenon::driver

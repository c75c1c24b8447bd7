// MODEL_OR_SO: what `run` and `bench` are given, ready to call.
#pragma once

#include <cstdint>
#include <string>

#include "call_arguments.h"
#include "compile_arguments.h"
#include "program.h"

namespace tenon::tools {

/// Whether a file is a compiled library (or any other ELF file) rather than a model. Errors: it
/// cannot be read.
Expected<bool> IsArtifact(const std::string& path);

struct LoadedModel {
  Program program;
  double compile_seconds = 0;  // 0: nothing had to be compiled
  double load_seconds = 0;
  int64_t artifact_bytes = 0;  // with its file of weights, where it has one
};

/// Loads a library, or compiles a model into the cache (TENON_CACHE_DIR, else ~/.cache/tenon)
/// unless it is there, and loads that. Where the model leaves an input's sizes open and --shape
/// does not say them, those of the array given for it are taken.
Expected<LoadedModel> LoadModel(const std::string& path, const CompileArguments& how,
                                const CallArguments& call, bool verbose);

}  // namespace tenon::tools

// Texts that go with an artifact: what it says about itself, how to call it, a header of its name.
#pragma once

#include <string>

#include "driver/write_artifact.h"

namespace tenon::driver {

/// Writes metadata.json and inference_example.cpp into a bundle, and name.h where the model has a
/// name. `info` is the artifact's information text.
Status WriteCompanions(const std::string& info, const CompileOptions& options,
                       const Output& output);

/// A C++ program that loads the library, calls its main on zeros and prints the first elements of
/// the results.
std::string ExampleText(const std::string& info, const std::string& library);

/// A C header that declares the exported function and a function over DLPack tensors, one per input
/// and output.
std::string HeaderText(const std::string& info, const std::string& name);

}  // namespace tenon::driver

// From functions of loop IR that somebody scheduled to a library, without a model around them.
#pragma once

#include <string>
#include <vector>

#include "driver/pipeline.h"
#include "support/expected.h"
#include "target/target.h"

namespace tenon::driver {

/// Code of one module. The exports are those of its functions and the query symbol's data.
struct BuiltCode {
  std::string object;                  // relocatable, for the target
  std::vector<std::string> exports;    // symbols
  std::vector<std::string> functions;  // that can be called, in name order
  Module lowered;                      // what the object was made of
};

struct BuildOptions {
  const Target* target = nullptr;
  PassHooks hooks;
};

/// Compiles a module of kernels, and of device functions that they call: kernels whose attribute
/// `exported` is true can be called in the packed convention, one alone also as "main". Errors: the
/// module does not verify, or exports nothing; the target has no code generator.
Expected<BuiltCode> BuildModule(const Module& module, const BuildOptions& options);

/// The image of a shared library, or of one relocatable object with the runtime core.
Expected<std::string> LinkBuilt(const BuiltCode& code, const Target& target, bool relocatable);

}  // namespace tenon::driver

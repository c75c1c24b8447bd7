// Functions of loop IR that somebody scheduled, without a model around them, as a build.
#pragma once

#include <string>
#include <vector>

#include "driver/build.h"
#include "support/expected.h"
#include "target/target.h"

namespace tenon::driver {

struct FunctionOptions {
  const Target* target = nullptr;
  PassHooks hooks;
  /// For C programs: besides, every exported function F as F itself, in the signature that the form
  /// "h" declares.
  bool plain = false;
};

/// The request for a module of kernels, and of device functions that they call: kernels whose
/// attribute `exported` is true can be called in the packed convention, one alone also as "main".
/// Errors: the module does not verify, or exports nothing; loops are bound to threads that the
/// target has not; it has no code generator.
Expected<BuildRequest> RequestOf(const Module& module, const FunctionOptions& options);

/// The same, built.
Expected<Built> BuildFunctions(const Module& module, const FunctionOptions& options);

/// Functions of a module that can be called, in name order.
std::vector<std::string> ExportedNames(const Module& module);

}  // namespace tenon::driver

// From functions of loop IR that somebody scheduled to a library, without a model around them.
#pragma once

#include <string>
#include <vector>

#include "codegen/gpu/device_code.h"
#include "driver/pipeline.h"
#include "support/expected.h"
#include "target/target.h"

namespace tenon::driver {

/// Code of one module. The exports are those of its functions and the query symbol's data.
struct BuiltCode {
  std::string object;                // relocatable, for the target; of C source, what goes with it
  std::string source;                // C11, for target c
  std::vector<std::string> exports;  // symbols
  std::vector<std::string> functions;  // that can be called, in name order
  Module lowered;                      // what the code was made of
  codegen::DeviceCode device;          // of a GPU target: its kernels; the object is the host's
  std::vector<std::string> remarks;    // what passes did by themselves, or could not do
};

struct BuildOptions {
  const Target* target = nullptr;
  PassHooks hooks;
  /// For C programs: besides, every exported function F as F itself, in the signature that
  /// HeaderOfBuilt declares.
  bool plain = false;
};

/// Compiles a module of kernels, and of device functions that they call: kernels whose attribute
/// `exported` is true can be called in the packed convention, one alone also as "main". For target
/// c source is made. For a GPU target the kernels are the device's, and the object is that of the
/// functions on its host that launch them. Errors: the module does not verify, or exports
/// nothing; loops are bound to threads that the target has not; it has no code generator.
Expected<BuiltCode> BuildModule(const Module& module, const BuildOptions& options);

/// The object of what a library says of itself, without code.
Expected<std::string> DescriptionObject(const std::string& info,
                                        const std::vector<std::string>& features,
                                        const Target& target);

/// The object of C source for this machine, made by $CC or a compiler on the path, to be linked
/// with the runtime core, which gets its errors; a shared library of an object.
Expected<std::string> CompileObject(const std::string& source);
Expected<std::string> SharedLibraryOf(const std::string& object);

/// The image of a shared library, or of one relocatable object with the runtime core. Such objects
/// can be linked together: what each brings (the query symbol, "main") is then the first one's.
Expected<std::string> LinkBuilt(const BuiltCode& code, const Target& target, bool relocatable);

/// The header for code that was built with `plain`; `name` is of the file.
std::string HeaderOfBuilt(const Module& source, const BuiltCode& code, const std::string& name);

}  // namespace tenon::driver

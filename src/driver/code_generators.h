// The code generators that targets name (target/kinds.def).
#pragma once

#include <string_view>

#include "codegen/gpu/device_code.h"
#include "target/target.h"

namespace tenon::driver {

/// What a code generator makes of functions.
enum class Makes {
  kObjects,     // relocatable, of everything
  kSource,      // a file of C, of everything
  kDeviceCode,  // of kernels; their host's functions are another target's
};

struct CodeGenerator {
  std::string_view name;
  Makes makes;
  /// Of kDeviceCode: from a module of lowered kernels in their bound form, and the device functions
  /// they call.
  Expected<codegen::DeviceCode> (*device_code)(const Module& kernels, const Target& target,
                                               const codegen::DeviceCodeOptions& options);
  /// Whether arguments of kernels are addresses, so that a launch can see what they are multiples
  /// of.
  bool has_addresses = false;
};

/// Null where there is none yet.
const CodeGenerator* CodeGeneratorOf(const Target& target);
/// Of a target with a code generator.
bool DoesMake(const Target& target, Makes what);

/// Whether BuildModule can make code for a target; the error says what it cannot do.
Status CheckBuildable(const Target& target);

}  // namespace tenon::driver

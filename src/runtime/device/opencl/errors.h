// What OpenCL's error codes are called.
#pragma once

#include "runtime/device/opencl/library.h"

namespace tenon::runtime::opencl {

/// "CL_OUT_OF_RESOURCES"; "unknown error" for a code that the standard does not have.
const char* ErrorName(Result result);

}  // namespace tenon::runtime::opencl

// CUDA C++ as a language of the C family, for NVRTC, which has no host headers, and nvcc.
#pragma once

#include "codegen/c_family/language.h"

namespace tenon::codegen {

const Language& CudaCpp();

}  // namespace tenon::codegen

// OpenCL C 1.2 as a language of the C family.
#pragma once

#include "codegen/c_family/language.h"

namespace tenon::codegen {

const Language& OpenClC();

}  // namespace tenon::codegen

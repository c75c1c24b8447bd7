// C11 as a language of the C family.
#pragma once

#include "codegen/c_family/language.h"

namespace tenon::codegen {

const Language& C11();

}  // namespace tenon::codegen

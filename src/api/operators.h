// Operators that users have registered, for whatever compiles models.
#pragma once

#include "api/bridge.h"

namespace tenon::inline v0 {

/// All that there are now.
onnx::CustomOperators RegisteredOperators();

}  // namespace tenon::inline v0

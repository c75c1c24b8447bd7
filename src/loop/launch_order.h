// What launches know of each other's order.
#pragma once

#include "loop/func.h"
#include "loop/stmt.h"

namespace tenon {

/// Whether the launch's kernel waits for the launches before (kAwaitsAttr) until it touches
/// anything but constants and parameters of the function `host` that launches it.
bool AwaitsAll(const PrimFunc& kernel, const Launch& launch, const PrimFunc& host);

}  // namespace tenon

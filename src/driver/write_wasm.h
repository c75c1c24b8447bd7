// A network as a module of WebAssembly, or as an object for one.
#pragma once

#include "driver/write_source.h"

namespace tenon::driver {

/// Writes output.path; the weights are data in it. The request's code has objects.
Status WriteWasm(const SourceRequest& request);

}  // namespace tenon::driver

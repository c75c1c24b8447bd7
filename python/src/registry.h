// Functions of Python that compiled code calls by name (tir.call_packed).
#pragma once

#include "bindings.h"

namespace tenon::python {

void BindRegistry(nb::module_& m);

/// Whether a function of Python that compiled code has called since the last question raised an
/// exception, which then is this thread's error. Python's lock is held.
bool RaiseFromCallback();

}  // namespace tenon::python

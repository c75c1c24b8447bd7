// Element types that Python's arrays have: those of NumPy, and those that ml_dtypes adds to it,
// whose scalar types are told apart by name.
#pragma once

#include <string>

#include "bindings.h"
#include "tenon/te.hpp"

namespace tenon::python {

/// As messages name a type: "list", "numpy.ndarray".
std::string NameOf(PyTypeObject* type);
/// Of ml_dtypes' scalar types (bfloat16, float8_e4m3fn, …); bits 0 where it is none of them.
tn_dl_data_type TypeOfScalar(PyTypeObject* scalar);
/// NumPy has no such type of its own: arrays of it are shared by their bits.
bool IsOfMlDtypes(DataType type);

}  // namespace tenon::python

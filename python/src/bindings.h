// Shared by the files of the extension module: each adds its part.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace tenon::python {

namespace nb = nanobind;

void BindExpressions(nb::module_& m);
void BindIr(nb::module_& m);
void BindSchedules(nb::module_& m);
void BindCompiler(nb::module_& m);
void BindRuntime(nb::module_& m);
void BindOperators(nb::module_& m);
void BindTuning(nb::module_& m);

}  // namespace tenon::python

// tenon._tenon: the public C++ headers, class by class. What is Python's own is in python/tenon.
#include "bindings.h"
#include "tenon/tenon.hpp"

namespace tenon::python {

namespace {

// tenon::Error carries the kind of exception that Python would raise.
void Translate(const std::exception_ptr& thrown, void* /*unused*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    PyObject* type = PyExc_RuntimeError;
    const std::string& kind = e.kind();
    if (kind == "ValueError") type = PyExc_ValueError;
    if (kind == "TypeError") type = PyExc_TypeError;
    if (kind == "IndexError") type = PyExc_IndexError;
    if (kind == "MemoryError") type = PyExc_MemoryError;
    if (kind == "OSError") type = PyExc_OSError;
    PyErr_SetString(type, e.what());
  }
}

}  // namespace

}  // namespace tenon::python

NB_MODULE(_tenon, m) {
  namespace py = tenon::python;
  nanobind::register_exception_translator(py::Translate);
  // Handles may outlive the module's teardown at exit, which is no leak worth a message.
  nanobind::set_leak_warnings(false);
  m.attr("__version__") = tn_version();
  py::BindExpressions(m);
  py::BindIr(m);
  py::BindSchedules(m);
  py::BindCompiler(m);
  py::BindRuntime(m);
  py::BindOperators(m);
  py::BindTuning(m);
}

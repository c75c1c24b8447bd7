// Functions of Python that compiled code calls by name.
//
// Compiled code has C functions alone, so a call by name is one of `tenon_call_registered` here,
// with the name and the arguments as words of 64 bits. Loop IR writes them into an array
// (tenon/statements.py); of f("scale", A, n, 0.5) with A: f32[n] they are
//
//   3 A's address, its type as DLPack has it, 1 dim, n      a tensor
//   0 n                                                     an integer
//   1 the bits of 0.5                                       a float
//
// The caller may be any thread, one of a team's workers too: it takes Python's lock, which the call
// of the compiled function has given back. A device function has no way to fail, so an exception
// waits here until that call returns.
#include "registry.h"

#include <cstring>

#include "tenon/tenon.hpp"

namespace tenon::python {

namespace {

enum Kind : int64_t { kInt, kFloat, kTensor = 3 };

// What finds the function and calls it, of tenon/registry.py; the exception that waits. Python's
// lock guards both. Never freed: compiled code may call while the process ends.
PyObject* g_caller = nullptr;
PyObject* g_raised = nullptr;

nb::object TensorOf(const int64_t** words) {
  const int64_t* w = *words;
  const DataType type{static_cast<uint8_t>(w[1] & 0xff), static_cast<uint8_t>(w[1] >> 8 & 0xff)};
  const std::vector<int64_t> shape(w + 3, w + 3 + w[2]);
  *words = w + 3 + w[2];
  return nb::cast(Tensor::Wrap(reinterpret_cast<void*>(w[0]), shape, type));
}

nb::list ValuesOf(const int64_t* words, int32_t count) {
  nb::list values;
  for (int32_t i = 0; i < count; ++i) {
    const int64_t kind = *words++;
    if (kind == kTensor) {
      values.append(TensorOf(&words));
    } else if (kind == kFloat) {
      double number = 0;
      std::memcpy(&number, words++, sizeof(number));
      values.append(number);
    } else {
      values.append(*words++);
    }
  }
  return values;
}

void KeepRaised() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  if (!g_raised) std::swap(g_raised, value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
}

void CallByName(const char* name, const int64_t* words, int32_t count) {
  const nb::gil_scoped_acquire lock;
  try {
    if (g_caller == nullptr) throw Error("RuntimeError", "no function is registered");
    const nb::handle caller = g_caller;
    caller(nb::str(name), ValuesOf(words, count));
    return;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  KeepRaised();
}

}  // namespace

bool RaiseFromCallback() {
  if (g_raised == nullptr) return false;
  PyObject* raised = std::exchange(g_raised, nullptr);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised)), raised);
  Py_DECREF(raised);
  return true;
}

void BindRegistry(nb::module_& m) {
  m.def("set_packed_caller", [](const nb::callable& caller) {
    Py_XDECREF(std::exchange(g_caller, nb::object(caller).release().ptr()));
  });
}

}  // namespace tenon::python

/// What compiled code calls. Found where this module's symbols are everybody's (tenon/registry.py
/// sees to that).
extern "C" __attribute__((visibility("default"))) int32_t
tenon_call_registered(const char* name, const int64_t* words, int32_t count) {
  tenon::python::CallByName(name, words, count);
  return 0;
}

// Py_buffer for the stable ABI of Python 3.10, which has the protocol's functions but only
// since 3.11 declares them there. The struct is that of PEP 3118 and has been the same throughout.
#pragma once

#include <Python.h>

#if defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030B0000

extern "C" {
struct Py_buffer {
  void* buf;
  PyObject* obj;
  Py_ssize_t len, itemsize;
  int readonly, ndim;
  char* format;
  Py_ssize_t *shape, *strides, *suboffsets;
  void* internal;
};

PyAPI_FUNC(int) PyObject_CheckBuffer(PyObject* object);
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject* object, Py_buffer* view, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer* view);
}

inline constexpr int PyBUF_FORMAT = 0x4;
inline constexpr int PyBUF_STRIDES = 0x10 | 0x8;

#endif

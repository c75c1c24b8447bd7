// The arguments of a call of a compiled function, from what Python's callers have: NumPy's arrays,
// anything with a buffer, tensors of frameworks by DLPack, numbers. Nothing is copied.
#pragma once

#include <nanobind/ndarray.h>

#include <vector>

#include "bindings.h"
#include "py_buffer.h"
#include "tenon/c_api.h"
#include "tenon/ffi_values.hpp"
#include "tenon/tenon.hpp"

namespace tenon::python {

inline constexpr int kMaxArgs = 512;
inline constexpr int kMaxNumbers = 32;  // of a function's inputs, those from the first on
inline constexpr int kMaxDims = 16;

struct ExchangeApi;

/// Arguments of one call: the values, and what must be given back after it.
class Arguments {
 public:
  Arguments() = default;
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
  ~Arguments() {
    for (int i = 0; i < num_views_; ++i) {
      if (views_[i].holds_buffer) PyBuffer_Release(&views_[i].buffer);
    }
  }

  /// False with a Python error set.
  bool Add(PyObject* value, bool is_output);
  /// A number that Python's own types are not: NumPy's, or an array of one.
  bool AddNumber(PyObject* value);
  /// What a network of other values than tensors takes (docs/calling.md): None, a str, a sequence
  /// of such, or what Add takes. False with a Python error set.
  bool AddValue(PyObject* value);
  /// Calls the function, without Python's lock, within `limits`, on the stream that the tensors'
  /// framework works on. Not 0: with an error set, Python's or that of
  /// tn_last_error.
  int32_t Call(tn_packed_fn function, const CallOptions& limits, tn_ffi_any* result);

 private:
  struct View {
    bool holds_buffer;
    Py_buffer buffer;
    tn_dl_tensor tensor;
    int64_t shape[kMaxDims], strides[kMaxDims];
  };
  bool AddArray(PyObject* value, bool is_output);
  bool AddBuffer(PyObject* value, bool is_output);
  bool AddExchanged(PyObject* value, const ExchangeApi& api);
  bool AddDLPack(PyObject* value);
  void AddView(View* view);
  /// False, with the error set.
  bool ReadOnly() const;
  bool AddItems(PyObject* sequence);

  tn_ffi_any values_[kMaxArgs];
  int32_t count_ = 0;
  View views_[kMaxArgs];
  int num_views_ = 0;
  const ExchangeApi* on_device_ = nullptr;  // of the framework that has the first tensor elsewhere
  tn_dl_device device_ = {TN_DL_CPU, 0};    // where that is
  std::vector<nb::ndarray<>> arrays_;       // what came by DLPack's capsules
  std::vector<tn_dl_tensor> tensors_;
  FfiArguments values_of_;  // arrays and strings
};

}  // namespace tenon::python

// tenon.hpp: tensors and compiled functions. The way of a call is written against the C API of
// Python: nothing is allocated between the caller's arrays and the kernel.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "arguments.h"
#include "bindings.h"
#include "dtypes.h"
#include "registry.h"
#include "tenon/devices.h"
#include "tenon/tenon.hpp"

namespace tenon::python {

namespace {

/// What ends calls that another thread makes.
struct StopFlag {
  std::shared_ptr<int32_t> value = std::make_shared<int32_t>(0);

  void Set(bool on) const { __atomic_store_n(value.get(), on ? 1 : 0, __ATOMIC_RELAXED); }
};

/// An exported function, with how many of its arguments are inputs (-1: not known), which of them
/// are numbers, by bits, whether it takes and gives more than tensors and numbers, and what bounds
/// its calls; `stop` keeps what the limits point to.
struct PyFunction {
  Function function;
  std::string name;
  int num_inputs;
  uint32_t numbers;
  bool values = false;
  CallOptions limits = {};
  std::shared_ptr<int32_t> stop = nullptr;
};

// What a network of other values than tensors gives: sequences are lists.
nb::object FromValue(const tn_ffi_any& value) {
  std::string_view text;
  if (GetText(value, &text)) return nb::str(text.data(), text.size());
  if (const tn_ffi_array* array = GetArray(value)) {
    nb::list items;
    for (int64_t i = 0; i < array->size; ++i) items.append(FromValue(array->data[i]));
    return items;
  }
  if (value.type_index == TN_FFI_INT) return nb::int_(value.u.v_int64);
  if (value.type_index != TN_FFI_TENSOR) return nb::none();
  auto* tensor = reinterpret_cast<tn_tensor_t*>(value.u.v_obj);
  tn_tensor_retain(tensor);
  return nb::cast(Tensor::Adopt(tensor));
}

PyObject* FromResult(const Result& result) {
  if (result.size() == 1 && result.IsTensor()) return nb::cast(result[0]).release().ptr();
  if (result.size() == 0) Py_RETURN_NONE;
  nb::list items;
  for (size_t i = 0; i < result.size(); ++i) items.append(nb::cast(result[i]));
  return nb::tuple(items).release().ptr();
}

PyObject* RaiseLast() {
  const char* kind = "";
  const char* message = tn_last_error(&kind);
  PyObject* type = PyExc_RuntimeError;
  if (strcmp(kind, "ValueError") == 0) type = PyExc_ValueError;
  if (strcmp(kind, "TypeError") == 0) type = PyExc_TypeError;
  if (strcmp(kind, "IndexError") == 0) type = PyExc_IndexError;
  if (strcmp(kind, "MemoryError") == 0) type = PyExc_MemoryError;
  PyErr_SetString(type, message);
  return nullptr;
}

// f(*args). A slot of the type: no overload resolution stands before it.
PyObject* CallFunction(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (kwargs && PyDict_Size(kwargs) != 0) {
    PyErr_SetString(PyExc_TypeError, "compiled functions take no keyword arguments");
    return nullptr;
  }
  const PyFunction& f = *nb::inst_ptr<PyFunction>(nb::handle(self));
  Arguments arguments;
  Py_ssize_t count = PyTuple_Size(args);
  try {
    for (Py_ssize_t i = 0; i < count; ++i) {
      bool is_output = f.num_inputs >= 0 && i >= f.num_inputs;
      PyObject* value = PyTuple_GetItem(args, i);
      if (f.values) {
        if (!arguments.AddValue(value)) return nullptr;
        continue;
      }
      const bool is_number = !is_output && i < kMaxNumbers && (f.numbers >> i & 1U) != 0;
      const bool is_plain = PyFloat_Check(value) || PyLong_Check(value);
      if (!(is_number && !is_plain ? arguments.AddNumber(value) : arguments.Add(value, is_output)))
        return nullptr;
    }
    Result result;
    const int32_t status = arguments.Call(f.function.raw(), f.limits, result.raw());
    if (RaiseFromCallback()) return nullptr;
    if (status == 0)
      return f.values ? FromValue(*result.raw()).release().ptr() : FromResult(result);
    return PyErr_Occurred() ? nullptr : RaiseLast();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
    return nullptr;
  }
}

PyType_Slot kFunctionSlots[] = {{Py_tp_call, reinterpret_cast<void*>(CallFunction)}, {0, nullptr}};

// A type that NumPy lacks goes to it as bits.
template <class... Framework>
nb::dlpack::dtype ToDlpack(DataType t) {
  if constexpr (sizeof...(Framework) > 0) {
    if (IsOfMlDtypes(t)) return {TN_DL_UINT, t.bits, t.lanes};
  }
  return {t.code, t.bits, t.lanes};
}

// The tensor's memory as an array of another library, which keeps the tensor.
template <class... Framework>
nb::object Share(nb::handle self) {
  auto& t = *nb::inst_ptr<Tensor>(self);
  std::vector<size_t> shape;
  for (int64_t d : t.shape()) shape.push_back(static_cast<size_t>(d));
  std::vector<int64_t> strides;
  if (t.view().strides) strides.assign(t.view().strides, t.view().strides + t.ndim());
  nb::ndarray<Framework...> array(
      t.data(), shape.size(), shape.data(), self, strides.empty() ? nullptr : strides.data(),
      ToDlpack<Framework...>(t.dtype()), t.device().device_type, t.device().device_id);
  return nb::cast(array, nb::rv_policy::reference);
}

const char* NameOf(const Device& device) {
  switch (device.device_type) {
#define TN_DEVICE_NAME(id, name, number, handles) \
  case number: return name;
    TN_DEVICES(TN_DEVICE_NAME)
#undef TN_DEVICE_NAME
    default: return "device";
  }
}

void BindDevices(nb::module_& m) {
  nb::dict types;
#define TN_DEVICE_TYPE(id, name, number, handles) types[name] = int{number};
  TN_DEVICES(TN_DEVICE_TYPE)
#undef TN_DEVICE_TYPE
  m.attr("DEVICE_TYPES") = types;
  nb::class_<Device>(m, "Device")
      .def_prop_ro("device_type", [](const Device& d) { return d.device_type; })
      .def_prop_ro("device_id", [](const Device& d) { return d.device_id; })
      .def_prop_ro("exist", &Device::exists)
      .def(
          "sync",
          [](const Device& d) {
            void* stream = nullptr;
            if (d.device_type == TN_DL_CPU) return;
            const bool done = tn_stream_get(d, &stream) == 0 && tn_stream_wait(d, stream) == 0;
            if (!done) detail::Check(-1);
          },
          nb::call_guard<nb::gil_scoped_release>())
      .def(
          "__eq__",
          [](const Device& a, const Device& b) {
            return a.device_type == b.device_type && a.device_id == b.device_id;
          },
          nb::is_operator())
      .def("__hash__", [](const Device& d) { return d.device_type * 31 + d.device_id; })
      .def("__repr__", [](const Device& d) {
        return std::string(NameOf(d)) + "(" + std::to_string(d.device_id) + ")";
      });
  m.def(
      "device", [](int32_t type, int32_t id) { return Device(type, id); }, nb::arg("type"),
      nb::arg("id"));
}

void BindTensors(nb::module_& m) {
  nb::class_<Tensor>(m, "NDArray")
      .def_prop_ro("shape",
                   [](const Tensor& t) {
                     nb::list dims;
                     for (int64_t d : t.shape()) dims.append(d);
                     return nb::tuple(dims);
                   })
      .def_prop_ro("ndim", &Tensor::ndim)
      .def_prop_ro("dtype", [](const Tensor& t) { return ToString(t.dtype()); })
      .def_prop_ro("device", &Tensor::device)
      .def_prop_ro("nbytes", &Tensor::bytes)
      .def("_bits", [](nb::handle self) { return Share<nb::numpy>(self); })
      .def("_copy", [](Tensor& t, const Tensor& from) { t.CopyFrom(from); })
      .def("_read",
           [](const Tensor& t, const nb::ndarray<nb::numpy, nb::c_contig>& to) {
             nb::gil_scoped_release others;
             t.CopyToBytes(to.data(), static_cast<int64_t>(to.nbytes()));
           })
      .def("_write",
           [](Tensor& t, const nb::ndarray<nb::numpy, nb::ro, nb::c_contig>& from) {
             nb::gil_scoped_release others;
             t.CopyFromBytes(from.data(), static_cast<int64_t>(from.nbytes()));
           })
      // A capsule of DLPack's first form, which every consumer reads.
      .def("__dlpack__",
           [](nb::handle self, const nb::kwargs& /*options*/) { return Share<>(self); })
      .def("__dlpack_device__", [](const Tensor& t) {
        return nb::make_tuple(t.device().device_type, t.device().device_id);
      });
  m.def(
      "empty",
      [](const std::vector<int64_t>& shape, const std::string& dtype, const Device& device) {
        return Tensor::Empty(shape, ParseDataType(dtype), device);
      },
      nb::arg("shape"), nb::arg("dtype"), nb::arg("device"));
  m.def("from_dlpack", [](nb::ndarray<> array) {
    // The memory stays with the array, which the tensor's DLPack form keeps alive.
    struct Holder {
      tn_dl_managed_tensor managed;
      nb::ndarray<> array;
    };
    auto* holder = new Holder{{}, std::move(array)};
    nb::ndarray<>& a = holder->array;
    tn_dl_data_type type{a.dtype().code, a.dtype().bits, a.dtype().lanes};
    holder->managed.version_major = 1;
    holder->managed.manager_ctx = holder;
    holder->managed.dl_tensor = {
        a.data(), {a.device_type(), a.device_id()},    static_cast<int32_t>(a.ndim()),
        type,     const_cast<int64_t*>(a.shape_ptr()), const_cast<int64_t*>(a.stride_ptr()),
        0};
    holder->managed.deleter = [](tn_dl_managed_tensor* m) {
      nb::gil_scoped_acquire gil;
      delete static_cast<Holder*>(m->manager_ctx);
    };
    try {
      return Tensor::FromDLPack(&holder->managed);
    } catch (...) {
      delete holder;
      throw;
    }
  });
}

}  // namespace

void BindRuntime(nb::module_& m) {
  BindDevices(m);
  BindTensors(m);
  nb::class_<StopFlag>(m, "StopFlag", "Ends, once it is set, the calls that are limited by it.")
      .def("__init__",
           [](StopFlag* self, const nb::args& args) {
             if (args.size() != 0) throw nb::type_error("StopFlag() takes no arguments");
             new (self) StopFlag();
           })
      .def("set", [](const StopFlag& f) { f.Set(true); })
      .def("clear", [](const StopFlag& f) { f.Set(false); })
      .def("is_set", [](const StopFlag& f) { return *f.value != 0; });
  nb::class_<PyFunction>(m, "Function", nb::type_slots(kFunctionSlots))
      .def(
          "limited",
          [](const PyFunction& f, int32_t max_team, double max_seconds, int64_t max_bytes,
             const StopFlag* stop) {
            PyFunction limited = f;
            limited.limits.max_team = max_team;
            limited.limits.max_seconds = max_seconds;
            limited.limits.max_bytes = max_bytes;
            limited.stop = stop ? stop->value : nullptr;
            limited.limits.stop = limited.stop.get();
            return limited;
          },
          nb::arg("max_team") = 0, nb::arg("max_seconds") = 0.0, nb::arg("max_bytes") = 0,
          nb::arg("stop").none() = nb::none(),
          "The function, called with at most that many threads, ended with a RuntimeError after "
          "that "
          "time or once `stop`, a StopFlag, is set, and with a MemoryError where it asks for more "
          "host memory; 0: no bound. Calls end between two kernels or inside of one.")
      .def("__repr__", [](const PyFunction& f) { return "<tenon.Function " + f.name + ">"; });
  nb::class_<Parameter>(m, "Parameter")
      .def_ro("name", &Parameter::name)
      .def_ro("is_number", &Parameter::is_number)
      .def_ro("shape", &Parameter::shape)
      .def_ro("dims", &Parameter::dims)
      .def_prop_ro("dtype", [](const Parameter& p) { return ToString(p.dtype); })
      .def("__repr__", [](const Parameter& p) {
        std::string text = "Parameter(" + p.name + ": " + ToString(p.dtype);
        for (size_t i = 0; i < p.shape.size(); ++i) {
          text +=
              (i == 0 ? " [" : ", ") + (p.shape[i] >= 0 ? std::to_string(p.shape[i]) : p.dims[i]);
        }
        return text + (p.shape.empty() ? ")" : "])");
      });
  nb::class_<Module>(m, "RuntimeModule")
      .def(
          "get_function",
          [](const Module& module, const std::string& name,
             const std::optional<std::vector<bool>>& inputs, bool values) {
            PyFunction f{module.GetFunction(name), name, -1, 0, values};
            if (!inputs) return f;
            f.num_inputs = static_cast<int>(inputs->size());
            for (size_t i = 0; i < std::min<size_t>(inputs->size(), kMaxNumbers); ++i) {
              if ((*inputs)[i]) f.numbers |= 1U << i;
            }
            return f;
          },
          nb::arg("name"), nb::arg("inputs").none(), nb::arg("values") = false)
      .def("info", &Module::GetInfo)
      .def("metadata", &Module::GetMetadata)
      .def("inputs", &Module::Inputs)
      .def("outputs", &Module::Outputs)
      .def("reserve", &Module::Reserve)
      .def("__repr__", [](const Module& module) {
        return "<tenon.RuntimeModule with " + std::to_string(module.Inputs().size()) +
               " inputs and " + std::to_string(module.Outputs().size()) + " outputs>";
      });
  m.def("load", &Module::LoadFromFile, nb::arg("path"));
  BindRegistry(m);
}

}  // namespace tenon::python

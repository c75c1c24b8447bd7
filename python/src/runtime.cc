// tenon.hpp: tensors and compiled functions. The way of a call is written against the C API of
// Python: nothing is allocated between the caller's arrays and the kernel.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

#include "bindings.h"
#include "tenon/te.hpp"
#include "tenon/tenon.hpp"

namespace tenon::python {

namespace {

constexpr int kMaxArgs = 32;
constexpr int kMaxDims = 16;

/// An exported function, with how many of its arguments are inputs (-1: not known) and which of
/// them are numbers, by bits.
struct PyFunction {
  Function function;
  int num_inputs;
  uint32_t numbers;
};

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
  const tn_ffi_any* values() const { return values_; }
  int32_t count() const { return count_; }

 private:
  struct View {
    bool holds_buffer;
    Py_buffer buffer;
    tn_dl_tensor tensor;
    int64_t shape[kMaxDims], strides[kMaxDims];
  };
  bool AddArray(PyObject* value, bool is_output);
  bool AddBuffer(PyObject* value, bool is_output);
  bool AddDLPack(PyObject* value);
  void AddView(View* view);

  tn_ffi_any values_[kMaxArgs];
  int32_t count_ = 0;
  View views_[kMaxArgs];
  int num_views_ = 0;
  std::vector<nb::ndarray<>> arrays_;  // what came by DLPack
  std::vector<tn_dl_tensor> tensors_;
};

// The element type that a format of the struct module means; bits 0 where it means none of ours.
tn_dl_data_type TypeOfFormat(const char* format, Py_ssize_t itemsize) {
  auto bits = static_cast<uint8_t>(8 * itemsize);
  if (!format) return {TN_DL_UINT, bits, 1};
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (format[0] == 0 || format[1] != 0) return {0, 0, 1};
  switch (*format) {
    case 'e':
    case 'f':
    case 'd': return {TN_DL_FLOAT, bits, 1};
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n': return {TN_DL_INT, bits, 1};
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N': return {TN_DL_UINT, bits, 1};
    case '?': return {TN_DL_BOOL, bits, 1};
    default: return {0, 0, 1};
  }
}

/// The beginnings of NumPy's arrays and of their types, which its binary interface fixes: asking
/// for an array's buffer costs as much as all else of a call together.
struct NumpyType {
  PyObject base;
  PyTypeObject* scalar;
  char kind, character, byte_order, flags;
  int number;
};
struct NumpyArray {
  PyObject base;
  void* data;
  int ndim;
  Py_ssize_t* shape;
  Py_ssize_t* strides;  // in bytes
  PyObject* owner;
  NumpyType* type;
  int flags;
};

// bits 0 where it is none of ours.
tn_dl_data_type TypeOfNumpy(const NumpyType& type) {
  static constexpr int kHalf = 23;
  static constexpr tn_dl_data_type kTypes[] = {{TN_DL_BOOL, 8, 1},
                                               {TN_DL_INT, 8, 1},
                                               {TN_DL_UINT, 8, 1},
                                               {TN_DL_INT, 16, 1},
                                               {TN_DL_UINT, 16, 1},
                                               {TN_DL_INT, 8 * sizeof(int), 1},
                                               {TN_DL_UINT, 8 * sizeof(int), 1},
                                               {TN_DL_INT, 8 * sizeof(long), 1},
                                               {TN_DL_UINT, 8 * sizeof(long), 1},
                                               {TN_DL_INT, 64, 1},
                                               {TN_DL_UINT, 64, 1},
                                               {TN_DL_FLOAT, 32, 1},
                                               {TN_DL_FLOAT, 64, 1}};
  if (type.byte_order != '=' && type.byte_order != '|') return {0, 0, 1};
  if (type.number == kHalf) return {TN_DL_FLOAT, 16, 1};
  const auto number = static_cast<size_t>(type.number);
  return number < std::size(kTypes) ? kTypes[number] : tn_dl_data_type{0, 0, 1};
}

// numpy.ndarray; null while nobody has imported it.
PyTypeObject* NumpyArrayType() {
  static PyTypeObject* type = nullptr;
  if (type) return type;
  PyObject* name = PyUnicode_InternFromString("numpy");
  PyObject* module = PyImport_GetModule(name);
  Py_XDECREF(name);
  if (module) type = reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module, "ndarray"));
  Py_XDECREF(module);
  PyErr_Clear();
  return type;  // held for good
}

void Arguments::AddView(View* view) {
  ++num_views_;
  tn_ffi_any& any = values_[count_++];
  any = {TN_FFI_DL_TENSOR_PTR, 0, {0}};
  any.u.v_ptr = &view->tensor;
}

// False, without an error, where it is no plain array of numbers; the general ways then say what is
// wrong.
bool Arguments::AddArray(PyObject* value, bool is_output) {
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  constexpr int kContiguous = 0x1, kWriteable = 0x400;
  if (Py_TYPE(value) != NumpyArrayType()) return false;
  const auto& array = *reinterpret_cast<const NumpyArray*>(value);
  const tn_dl_data_type type = TypeOfNumpy(*array.type);
  if (type.bits == 0 || array.ndim > kMaxDims) return false;
  if (is_output && (array.flags & kWriteable) == 0) return false;
  View& view = views_[num_views_];
  view.holds_buffer = false;
  int64_t* strides = nullptr;  // contiguous
  if ((array.flags & kContiguous) == 0) {
    strides = view.strides;
    const Py_ssize_t size = type.bits / 8;
    for (int d = 0; d < array.ndim; ++d) {
      if (array.strides[d] % size != 0) return false;
      strides[d] = array.strides[d] / size;
    }
  }
  for (int d = 0; d < array.ndim; ++d) view.shape[d] = array.shape[d];
  view.tensor = {array.data, {TN_DL_CPU, 0}, array.ndim, type, view.shape, strides, 0};
  AddView(&view);
  return true;
}

bool Arguments::AddBuffer(PyObject* value, bool is_output) {
  View& view = views_[num_views_];
  view.holds_buffer = false;
  int flags = PyBUF_FORMAT | PyBUF_STRIDES | (is_output ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(value, &view.buffer, flags) != 0) {
    if (!is_output) return false;
    PyErr_Clear();
    PyErr_SetString(PyExc_ValueError, "an output is read-only");
    return false;
  }
  const Py_buffer& b = view.buffer;
  tn_dl_data_type type = TypeOfFormat(b.format, b.itemsize);
  if (type.bits == 0 || b.ndim > kMaxDims) {
    PyErr_Format(PyExc_TypeError, "arrays of format '%s' with %d dims cannot be passed",
                 b.format ? b.format : "", b.ndim);
    PyBuffer_Release(&view.buffer);
    return false;
  }
  for (int d = 0; d < b.ndim; ++d) {
    view.shape[d] = b.shape[d];
    view.strides[d] = b.strides[d] / b.itemsize;
    if (b.strides[d] % b.itemsize != 0) {
      PyBuffer_Release(&view.buffer);
      PyErr_SetString(PyExc_ValueError, "an array's strides are no multiple of its elements' size");
      return false;
    }
  }
  view.tensor = {b.buf, {TN_DL_CPU, 0}, b.ndim, type, view.shape, view.strides, 0};
  view.holds_buffer = true;
  AddView(&view);
  return true;
}

// PyTorch, JAX, CuPy, … and NumPy's types that buffers do not have.
bool Arguments::AddDLPack(PyObject* value) {
  if (arrays_.empty()) {
    arrays_.reserve(kMaxArgs);
    tensors_.reserve(kMaxArgs);
  }
  nb::ndarray<> array;
  if (!nb::try_cast(nb::handle(value), array)) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "expected a tensor or a number but got %s",
                 Py_TYPE(value)->tp_name);
    return false;
  }
  tn_dl_data_type type{array.dtype().code, array.dtype().bits, array.dtype().lanes};
  tensors_.push_back({array.data(),
                      {array.device_type(), array.device_id()},
                      static_cast<int32_t>(array.ndim()),
                      type,
                      const_cast<int64_t*>(array.shape_ptr()),
                      const_cast<int64_t*>(array.stride_ptr()),
                      0});
  arrays_.push_back(std::move(array));
  tn_ffi_any& any = values_[count_++];
  any = {TN_FFI_DL_TENSOR_PTR, 0, {0}};
  any.u.v_ptr = &tensors_.back();
  return true;
}

bool Arguments::AddNumber(PyObject* value) {
  Py_buffer buffer;
  if (!PyObject_CheckBuffer(value) ||
      PyObject_GetBuffer(value, &buffer, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
    PyErr_Clear();
    return Add(value, false);
  }
  const uint8_t code = TypeOfFormat(buffer.format, buffer.itemsize).code;
  const bool is_one = buffer.ndim == 0;
  PyBuffer_Release(&buffer);
  if (!is_one) return Add(value, false);  // whose argument check says what is wrong
  PyObject* number = code == TN_DL_BOOL    ? PyBool_FromLong(PyObject_IsTrue(value))
                     : code == TN_DL_FLOAT ? PyNumber_Float(value)
                                           : PyNumber_Index(value);
  const bool added = number != nullptr && Add(number, false);
  Py_XDECREF(number);
  return added;
}

bool Arguments::Add(PyObject* value, bool is_output) {
  if (count_ == kMaxArgs) {
    PyErr_Format(PyExc_TypeError, "more than %d arguments", kMaxArgs);
    return false;
  }
  if (AddArray(value, is_output)) return true;
  nb::handle h(value);
  if (nb::inst_check(h) && h.type().is(nb::type<Tensor>())) {
    values_[count_++] = detail::ToAny(*nb::inst_ptr<Tensor>(h));
    return true;
  }
  if (PyFloat_Check(value)) {
    values_[count_++] = detail::ToAny(PyFloat_AS_DOUBLE(value));
    return true;
  }
  if (PyLong_Check(value)) {
    long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred()) return false;
    values_[count_++] = PyBool_Check(value) ? detail::ToAny(number != 0) : detail::ToAny(number);
    return true;
  }
  if (PyObject_CheckBuffer(value)) {
    if (AddBuffer(value, is_output)) return true;
    if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_BufferError)) {
      return false;
    }
    PyErr_Clear();  // a type that buffers lack, bfloat16 for one
  }
  return AddDLPack(value);
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
  PyErr_SetString(type, message);
  return nullptr;
}

// f(*args). A slot of the type: no overload resolution stands before it.
PyObject* CallFunction(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (kwargs && PyDict_GET_SIZE(kwargs) != 0) {
    PyErr_SetString(PyExc_TypeError, "compiled functions take no keyword arguments");
    return nullptr;
  }
  const PyFunction& f = *nb::inst_ptr<PyFunction>(nb::handle(self));
  Arguments arguments;
  Py_ssize_t count = PyTuple_GET_SIZE(args);
  try {
    for (Py_ssize_t i = 0; i < count; ++i) {
      bool is_output = f.num_inputs >= 0 && i >= f.num_inputs;
      PyObject* value = PyTuple_GET_ITEM(args, i);
      const bool is_number = !is_output && (f.numbers >> i & 1U) != 0;
      const bool is_plain = PyFloat_Check(value) || PyLong_Check(value);
      if (!(is_number && !is_plain ? arguments.AddNumber(value) : arguments.Add(value, is_output)))
        return nullptr;
    }
    Result result;
    int32_t status = 0;
    PyThreadState* thread = PyEval_SaveThread();
    status =
        tn_call(f.function.raw(), nullptr, arguments.values(), arguments.count(), result.raw());
    PyEval_RestoreThread(thread);
    return status == 0 ? FromResult(result) : RaiseLast();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
    return nullptr;
  }
}

PyType_Slot kFunctionSlots[] = {{Py_tp_call, reinterpret_cast<void*>(CallFunction)}, {0, nullptr}};

nb::dlpack::dtype ToDlpack(DataType t) { return {t.code, t.bits, t.lanes}; }

// The tensor's memory as an array of another library, which keeps the tensor.
template <class... Framework>
nb::object Share(nb::handle self) {
  auto& t = *nb::inst_ptr<Tensor>(self);
  std::vector<size_t> shape;
  for (int64_t d : t.shape()) shape.push_back(static_cast<size_t>(d));
  std::vector<int64_t> strides;
  if (t.view().strides) strides.assign(t.view().strides, t.view().strides + t.ndim());
  nb::ndarray<Framework...> array(t.data(), shape.size(), shape.data(), self,
                                  strides.empty() ? nullptr : strides.data(), ToDlpack(t.dtype()),
                                  t.device().device_type, t.device().device_id);
  return nb::cast(array, nb::rv_policy::reference);
}

const char* NameOf(const Device& device) {
  switch (device.device_type) {
    case TN_DL_CPU: return "cpu";
    case TN_DL_CUDA: return "cuda";
    case TN_DL_OPENCL: return "opencl";
    case TN_DL_NULL: return "null";
    default: return "device";
  }
}

void BindDevices(nb::module_& m) {
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
  m.def("device", [](int32_t type, int32_t id) { return Device(type, id); });
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
      .def("_array", [](nb::handle self) { return Share<nb::numpy>(self); })
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
  m.def("empty",
        [](const std::vector<int64_t>& shape, const std::string& dtype, const Device& device) {
          return Tensor::Empty(shape, ParseDataType(dtype), device);
        });
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
  [[maybe_unused]] nb::class_<PyFunction> function(m, "Function", nb::type_slots(kFunctionSlots));
  nb::class_<Parameter>(m, "Parameter")
      .def_ro("name", &Parameter::name)
      .def_ro("is_number", &Parameter::is_number)
      .def_ro("shape", &Parameter::shape)
      .def_ro("dims", &Parameter::dims)
      .def_prop_ro("dtype", [](const Parameter& p) { return ToString(p.dtype); });
  nb::class_<Module>(m, "RuntimeModule")
      .def(
          "get_function",
          [](const Module& module, const std::string& name,
             const std::optional<std::vector<bool>>& inputs) {
            PyFunction f{module.GetFunction(name), -1, 0};
            if (!inputs) return f;
            f.num_inputs = static_cast<int>(inputs->size());
            for (size_t i = 0; i < std::min<size_t>(inputs->size(), kMaxArgs); ++i) {
              if ((*inputs)[i]) f.numbers |= 1U << i;
            }
            return f;
          },
          nb::arg("name"), nb::arg("inputs").none())
      .def("info", &Module::GetInfo)
      .def("metadata", &Module::GetMetadata)
      .def("inputs", &Module::Inputs)
      .def("outputs", &Module::Outputs)
      .def("reserve", &Module::Reserve);
  m.def("load", &Module::LoadFromFile, nb::arg("path"));
}

}  // namespace tenon::python

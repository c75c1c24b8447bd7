#include "arguments.h"

#include <iterator>
#include <unordered_map>

#include "dtypes.h"
#include "tenon/tenon.hpp"

namespace tenon::python {

namespace {

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
  static constexpr int kHalf = 23, kFirstOfUsers = 256;
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
  if (type.number >= kFirstOfUsers) return TypeOfScalar(type.scalar);
  const auto number = static_cast<size_t>(type.number);
  return number < std::size(kTypes) ? kTypes[number] : tn_dl_data_type{0, 0, 1};
}

}  // namespace

/// What DLPack 1.2 has a tensor type tell about itself, under __dlpack_c_exchange_api__, so that
/// views of its tensors are had without an object of Python's in between.
struct ExchangeApi {
  uint32_t major, minor;
  const ExchangeApi* older;
  int (*allocate)(tn_dl_tensor*, void**, void*, void (*)(void*, const char*, const char*));
  int (*to_managed)(void* object, void** out);
  int (*from_managed)(void* managed, void** out_object);
  int (*view)(void* object, tn_dl_tensor* out);  // may be null
  int (*stream)(int32_t device_type, int32_t device_id, void** out_stream);
};

namespace {

constexpr const char* kExchangeName = "dlpack_exchange_api";

// Null, without an error, where the type has none that we read.
const ExchangeApi* ExchangeApiOf(PyTypeObject* type) {
  static std::unordered_map<PyTypeObject*, const ExchangeApi*> known;  // types that are held
  const auto found = known.find(type);
  if (found != known.end()) return found->second;
  static PyObject* name = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  PyObject* capsule = PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name);
  const ExchangeApi* api = nullptr;
  if (capsule) api = static_cast<ExchangeApi*>(PyCapsule_GetPointer(capsule, kExchangeName));
  PyErr_Clear();
  Py_XDECREF(capsule);
  while (api && api->major > 1) api = api->older;
  if (!api || api->major != 1 || !api->view) return nullptr;
  Py_INCREF(type);
  known.emplace(type, api);
  return api;
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

}  // namespace

void Arguments::AddView(View* view) {
  ++num_views_;
  tn_ffi_any& any = values_[count_++];
  any = {TN_FFI_DL_TENSOR_PTR, 0, {0}};
  any.u.v_ptr = &view->tensor;
}

bool Arguments::ReadOnly() const {
  PyErr_Format(PyExc_ValueError, "argument %d, an output, is read-only", count_ + 1);
  return false;
}

// False, without an error, where it is no plain array of numbers; the general ways then say what is
// wrong.
bool Arguments::AddArray(PyObject* value, bool is_output) {
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  constexpr int kContiguous = 0x1, kWriteable = 0x400;
  PyTypeObject* numpy = NumpyArrayType();
  if (!numpy || !PyObject_TypeCheck(value, numpy)) return false;
  const auto& array = *reinterpret_cast<const NumpyArray*>(value);
  const tn_dl_data_type type = TypeOfNumpy(*array.type);
  if (type.bits == 0 || array.ndim > kMaxDims) return false;
  if (is_output && (array.flags & kWriteable) == 0) return ReadOnly();
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

// False, without an error, where it has no buffer of its type.
bool Arguments::AddBuffer(PyObject* value, bool is_output) {
  View& view = views_[num_views_];
  view.holds_buffer = false;
  if (PyObject_GetBuffer(value, &view.buffer, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
    PyErr_Clear();  // a type that buffers lack
    return false;
  }
  if (is_output && view.buffer.readonly != 0) {
    PyBuffer_Release(&view.buffer);
    return ReadOnly();
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

bool Arguments::AddExchanged(PyObject* value, const ExchangeApi& api) {
  tn_dl_tensor& tensor = views_[num_views_].tensor;
  if (api.view(value, &tensor) != 0) {
    if (!PyErr_Occurred()) {
      PyErr_Format(PyExc_TypeError, "this %s has no view", NameOf(Py_TYPE(value)).c_str());
    }
    return false;
  }
  if (!on_device_ && tensor.device.device_type != TN_DL_CPU) {
    on_device_ = &api;
    device_ = tensor.device;
  }
  views_[num_views_].holds_buffer = false;
  AddView(&views_[num_views_]);
  return true;
}

// JAX, CuPy, … and NumPy's types that buffers do not have.
bool Arguments::AddDLPack(PyObject* value) {
  if (arrays_.empty()) {
    arrays_.reserve(kMaxArgs);
    tensors_.reserve(kMaxArgs);
  }
  nb::ndarray<> array;
  if (!nb::try_cast(nb::handle(value), array)) {
    PyErr_Clear();
    // An array may be one of a type that no tensor has: of big-endian numbers, of texts.
    const nb::object dtype = nb::getattr(nb::handle(value), "dtype", nb::none());
    const std::string of = dtype.is_none() ? "" : std::string(" of ") + nb::str(dtype).c_str();
    PyErr_Format(PyExc_TypeError, "argument %d: expected a tensor or a number but got %s%s",
                 count_ + 1, NameOf(Py_TYPE(value)).c_str(), of.c_str());
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
    if (TypeOfScalar(Py_TYPE(value)).bits == 0) return Add(value, false);
    PyObject* number = PyNumber_Float(value);
    const bool added = number != nullptr && Add(number, false);
    Py_XDECREF(number);
    return added;
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
  if (PyErr_Occurred()) return false;
  nb::handle h(value);
  if (nb::inst_check(h) && h.type().is(nb::type<Tensor>())) {
    values_[count_++] = detail::ToAny(*nb::inst_ptr<Tensor>(h));
    return true;
  }
  if (PyFloat_Check(value)) {
    values_[count_++] = detail::ToAny(PyFloat_AsDouble(value));
    return true;
  }
  if (PyLong_Check(value)) {
    long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred()) return false;
    values_[count_++] = PyBool_Check(value) ? detail::ToAny(number != 0) : detail::ToAny(number);
    return true;
  }
  if (const ExchangeApi* api = ExchangeApiOf(Py_TYPE(value))) return AddExchanged(value, *api);
  if (PyObject_CheckBuffer(value)) {
    if (AddBuffer(value, is_output)) return true;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    PyErr_Clear();  // a type that DLPack may have
  }
  return AddDLPack(value);
}

// The items of a list or tuple are put behind the values that there are, and taken from there.
bool Arguments::AddItems(PyObject* sequence) {
  const int32_t begin = count_;
  const Py_ssize_t size = PySequence_Size(sequence);
  const auto item = PyList_Check(sequence) ? PyList_GetItem : PyTuple_GetItem;
  std::vector<tn_ffi_any> items;
  items.reserve(static_cast<size_t>(size));
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (!AddValue(item(sequence, i))) return false;
    items.push_back(values_[--count_]);
  }
  count_ = begin;
  const tn_ffi_any array = values_of_.Array(std::move(items));
  values_[count_++] = array;
  return true;
}

bool Arguments::AddValue(PyObject* value) {
  if (count_ == kMaxArgs || num_views_ == kMaxArgs) {
    PyErr_Format(PyExc_TypeError, "more than %d arguments or arrays", kMaxArgs);
    return false;
  }
  if (value == Py_None) {
    values_[count_++] = {TN_FFI_NONE, 0, {0}};
    return true;
  }
  if (PyUnicode_Check(value)) {
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(value, &size);
    if (!bytes) return false;
    values_[count_++] = values_of_.String({bytes, static_cast<size_t>(size)});
    return true;
  }
  if (PyList_Check(value) || PyTuple_Check(value)) return AddItems(value);
  return Add(value, false);
}

int32_t Arguments::Call(tn_packed_fn function, const CallOptions& limits, tn_ffi_any* result) {
  void *stream = nullptr, *before = nullptr;
  if (on_device_ && on_device_->stream(device_.device_type, device_.device_id, &stream) != 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "the device's stream is not known");
    return -1;
  }
  PyThreadState* thread = PyEval_SaveThread();
  int32_t status = stream ? tn_stream_set(device_, stream, &before) : 0;
  if (status == 0) {
    const tn_call_options options = limits.raw();
    status = tn_call(function, limits.any() ? &options : nullptr, values_, count_, result);
    if (stream) tn_stream_set(device_, before, nullptr);
  }
  PyEval_RestoreThread(thread);
  return status;
}

}  // namespace tenon::python

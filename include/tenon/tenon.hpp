// Tenon's C++ API: modules, functions, tensors, sessions. Header-only over c_api.h; C++17.
//
//   auto module = tenon::Module::LoadFromFile("model.so");
//   auto f = module.GetFunction("main");
//   tenon::Tensor y = f(x);  // or f(x, y), which writes into y
//
// Errors are thrown as tenon::Error. Module, Function and Tensor are handles: copies refer to the
// same thing. Threads may use one module, function or session at once, but not write one tensor.
#ifndef TENON_TENON_HPP_
#define TENON_TENON_HPP_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tenon/c_api.h"

namespace tenon {
// The public names are those of tenon::v0, so that they never meet the compiler's own of the same
// name in one program (docs/decisions/005).
inline namespace v0 {

/// What went wrong, with the kind that Python would raise: "ValueError", "TypeError",
/// "RuntimeError", …
class TN_API Error : public std::runtime_error {
 public:
  Error(std::string kind, const std::string& message)
      : std::runtime_error(message), kind_(std::move(kind)) {}
  const std::string& kind() const noexcept { return kind_; }

 private:
  std::string kind_;
};

namespace detail {

/// Throws the thread's error where a call has failed.
inline void Check(int32_t status) {
  if (status == 0) return;
  const char* kind = "";
  const char* message = tn_last_error(&kind);
  throw Error(kind, message);
}

}  // namespace detail

/// The type of an element.
struct DataType : tn_dl_data_type {
  constexpr DataType(uint8_t type_code, uint8_t type_bits, uint16_t type_lanes = 1)
      : tn_dl_data_type{type_code, type_bits, type_lanes} {}
  constexpr DataType(tn_dl_data_type type)
      : tn_dl_data_type(type) {}  // NOLINT(google-explicit-constructor)

  static const DataType kFloat32, kFloat64, kFloat16, kBFloat16, kBool;
  static const DataType kInt8, kInt16, kInt32, kInt64, kUInt8, kUInt16, kUInt32, kUInt64;

  friend constexpr bool operator==(DataType a, DataType b) {
    return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
  }
  friend constexpr bool operator!=(DataType a, DataType b) { return !(a == b); }
};

inline constexpr DataType DataType::kFloat32{TN_DL_FLOAT, 32};
inline constexpr DataType DataType::kFloat64{TN_DL_FLOAT, 64};
inline constexpr DataType DataType::kFloat16{TN_DL_FLOAT, 16};
inline constexpr DataType DataType::kBFloat16{TN_DL_BFLOAT, 16};
inline constexpr DataType DataType::kBool{TN_DL_BOOL, 8};
inline constexpr DataType DataType::kInt8{TN_DL_INT, 8};
inline constexpr DataType DataType::kInt16{TN_DL_INT, 16};
inline constexpr DataType DataType::kInt32{TN_DL_INT, 32};
inline constexpr DataType DataType::kInt64{TN_DL_INT, 64};
inline constexpr DataType DataType::kUInt8{TN_DL_UINT, 8};
inline constexpr DataType DataType::kUInt16{TN_DL_UINT, 16};
inline constexpr DataType DataType::kUInt32{TN_DL_UINT, 32};
inline constexpr DataType DataType::kUInt64{TN_DL_UINT, 64};

/// Where a tensor's memory is.
struct Device : tn_dl_device {
  constexpr Device(int32_t type, int32_t id) : tn_dl_device{type, id} {}
  constexpr Device(tn_dl_device device)
      : tn_dl_device(device) {}  // NOLINT(google-explicit-constructor)

  static constexpr Device Cpu(int32_t id = 0) { return {TN_DL_CPU, id}; }
  static constexpr Device Cuda(int32_t id = 0) { return {TN_DL_CUDA, id}; }
  static constexpr Device OpenCl(int32_t id = 0) { return {TN_DL_OPENCL, id}; }
  static constexpr Device Null(int32_t id = 0) { return {TN_DL_NULL, id}; }
  /// Whether this runtime can use it here.
  bool exists() const { return device_id >= 0 && device_id < tn_device_count(device_type); }
};

/// A stream of a GPU that this object owns.
class Stream {
 public:
  explicit Stream(Device device) : device_(device) {
    detail::Check(tn_stream_make(device, &stream_));
  }
  Stream(Stream&& other) noexcept
      : device_(other.device_), stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  /// Does not wait: what is queued will still be done, on memory that must live until then.
  ~Stream() { tn_stream_free(device_, stream_); }

  Device device() const { return device_; }
  /// The vendor's handle: on CUDA a CUstream, which a cudaStream_t is.
  void* handle() const { return stream_; }
  /// Returns when all that is queued is done.
  void Wait() const { detail::Check(tn_stream_wait(device_, stream_)); }

 private:
  Device device_;
  void* stream_ = nullptr;
};

/// While it lives, this thread's work on the device is queued on the stream; then again where it
/// was before. The stream may be the caller's own.
class StreamScope {
 public:
  explicit StreamScope(const Stream& stream) : StreamScope(stream.device(), stream.handle()) {}
  StreamScope(Device device, void* stream) : device_(device) {
    detail::Check(tn_stream_set(device, stream, &before_));
  }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;
  ~StreamScope() { tn_stream_set(device_, before_, nullptr); }

 private:
  Device device_;
  void* before_ = nullptr;
};

/// A counted reference to a tensor; empty by default, and then asking it for anything is an error.
/// Copying shares.
class Tensor {
 public:
  Tensor() = default;
  /// Takes over one reference.
  static Tensor Adopt(tn_tensor_t* tensor) {
    Tensor result;
    result.tensor_ = tensor;
    return result;
  }
  /// A new compact tensor, contents unspecified.
  static Tensor Empty(const std::vector<int64_t>& shape, DataType dtype,
                      Device device = Device::Cpu()) {
    Tensor result;
    detail::Check(tn_tensor_make(dtype, Dims(shape), shape.data(), device, &result.tensor_));
    return result;
  }
  /// A compact tensor over memory that the caller owns and keeps. No copy. `data` is an address, of
  /// the GPU's on CUDA; on OpenCL a cl_mem. What is const may be an input only.
  static Tensor Wrap(const void* data, const std::vector<int64_t>& shape, DataType dtype,
                     Device device = Device::Cpu()) {
    Tensor result;
    detail::Check(tn_tensor_wrap(const_cast<void*>(data), dtype, Dims(shape), shape.data(), device,
                                 &result.tensor_));
    return result;
  }
  /// A tensor over a DLPack tensor (tn_dl_managed_tensor* or DLManagedTensorVersioned*), taken over
  /// unless this throws. No copy.
  template <class Managed>
  static Tensor FromDLPack(Managed* managed) {
    static_assert(sizeof(Managed) == sizeof(tn_dl_managed_tensor),
                  "expected a DLManagedTensorVersioned");
    Tensor result;
    detail::Check(
        tn_tensor_from_dlpack(reinterpret_cast<tn_dl_managed_tensor*>(managed), &result.tensor_));
    return result;
  }

  Tensor(const Tensor& other) : tensor_(other.tensor_) {
    if (tensor_) tn_tensor_retain(tensor_);
  }
  Tensor(Tensor&& other) noexcept : tensor_(std::exchange(other.tensor_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~Tensor() { tn_tensor_free(tensor_); }

  explicit operator bool() const { return tensor_ != nullptr; }
  tn_tensor_t* handle() const { return tensor_; }
  const tn_dl_tensor& view() const { return Checked()->dl_tensor; }
  std::vector<int64_t> shape() const { return {view().shape, view().shape + view().ndim}; }
  int32_t ndim() const { return view().ndim; }
  DataType dtype() const { return view().dtype; }
  Device device() const { return view().device; }
  int64_t num_elements() const {
    int64_t count = 1;
    for (int32_t i = 0; i < ndim(); ++i) count *= view().shape[i];
    return count;
  }
  int64_t bytes() const { return tn_tensor_bytes(Checked()); }
  /// The first element's address on its device.
  void* data() const { return static_cast<char*>(view().data) + view().byte_offset; }
  template <class T>
  T* data_as() const {
    return static_cast<T*>(data());
  }

  /// Copies exactly bytes() bytes between host memory and this compact tensor; done on return. The
  /// copy is queued on this thread's stream (StreamScope, else the default) and waits for what that
  /// one has before it, not for other streams: Wait() on those first.
  void CopyFromBytes(const void* source, int64_t size) {
    detail::Check(tn_tensor_copy_from_bytes(Checked(), source, size));
  }
  void CopyToBytes(void* target, int64_t size) const {
    detail::Check(tn_tensor_copy_to_bytes(Checked(), target, size));
  }
  /// Copies from a compact tensor of as many bytes; between GPUs it is queued on the thread's
  /// stream of this tensor's device.
  void CopyFrom(const Tensor& source) {
    detail::Check(tn_tensor_copy(Checked(), source.Checked()));
  }

 private:
  tn_tensor_t* Checked() const {
    if (!tensor_) throw Error("ValueError", "the tensor is empty: nothing was put into it");
    return tensor_;
  }
  static int32_t Dims(const std::vector<int64_t>& shape) {
    return static_cast<int32_t>(shape.size());
  }
  tn_tensor_t* tensor_ = nullptr;
};

/// A call's result: nothing, one tensor or several; or a number, for functions that return one.
/// While it lives the library that made it does.
class Result {
 public:
  Result() = default;
  explicit Result(std::shared_ptr<tn_module_t> module) : module_(std::move(module)) {}
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  Result(Result&& other) noexcept
      : module_(std::move(other.module_)), value_(std::exchange(other.value_, tn_ffi_any{})) {}
  Result& operator=(Result&& other) noexcept {
    std::swap(module_, other.module_);
    std::swap(value_, other.value_);
    return *this;
  }
  ~Result() { tn_value_release(&value_); }

  bool IsTensor() const { return value_.type_index == TN_FFI_TENSOR; }
  /// How many tensors there are.
  size_t size() const {
    if (IsTensor()) return 1;
    return value_.type_index == TN_FFI_ARRAY ? static_cast<size_t>(array().size) : 0;
  }
  Tensor operator[](size_t index) const {
    if (index >= size()) {
      throw Error("IndexError", "result " + std::to_string(index) +
                                    " was asked for but there are " + std::to_string(size()));
    }
    const tn_ffi_any& item = IsTensor() ? value_ : array().data[index];
    if (item.type_index != TN_FFI_TENSOR) throw Error("TypeError", "the result is not a tensor");
    auto* tensor = reinterpret_cast<tn_tensor_t*>(item.u.v_obj);
    tn_tensor_retain(tensor);
    return Tensor::Adopt(tensor);
  }
  /// The only tensor.
  operator Tensor() const {  // NOLINT(google-explicit-constructor)
    if (size() != 1) {
      throw Error("TypeError",
                  "expected one result but the function gave " + std::to_string(size()));
    }
    return (*this)[0];
  }
  int64_t AsInt() const {
    if (value_.type_index != TN_FFI_INT && value_.type_index != TN_FFI_BOOL) {
      throw Error("TypeError", "the result is not an integer");
    }
    return value_.u.v_int64;
  }
  tn_ffi_any* raw() { return &value_; }

 private:
  const tn_ffi_array& array() const {
    return *reinterpret_cast<const tn_ffi_array*>(value_.u.v_obj);
  }
  std::shared_ptr<tn_module_t> module_;
  tn_ffi_any value_{};
};

namespace detail {

/// Whether T looks like DLPack's DLTensor (which cannot be named without its header).
template <class T, class = void>
struct IsDLTensor : std::false_type {};
template <class T>
struct IsDLTensor<
    T, std::void_t<decltype(T::data), decltype(T::device), decltype(T::ndim), decltype(T::dtype),
                   decltype(T::shape), decltype(T::strides), decltype(T::byte_offset)>>
    : std::bool_constant<sizeof(T) == sizeof(tn_dl_tensor)> {};

inline tn_ffi_any ToAny(const Tensor& tensor) {
  tn_ffi_any value{};
  value.type_index = tensor ? TN_FFI_TENSOR : TN_FFI_NONE;
  value.u.v_obj = reinterpret_cast<tn_ffi_object*>(tensor.handle());
  return value;
}

template <class T, std::enable_if_t<IsDLTensor<T>::value, int> = 0>
tn_ffi_any ToAny(T* tensor) {
  tn_ffi_any value{};
  value.type_index = TN_FFI_DL_TENSOR_PTR;
  value.u.v_ptr = const_cast<std::remove_const_t<T>*>(tensor);
  return value;
}

template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
tn_ffi_any ToAny(T number) {
  tn_ffi_any value{};
  value.type_index = std::is_same_v<T, bool> ? TN_FFI_BOOL : TN_FFI_INT;
  value.u.v_int64 = static_cast<int64_t>(number);
  return value;
}

template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
tn_ffi_any ToAny(T number) {
  tn_ffi_any value{};
  value.type_index = TN_FFI_FLOAT;
  value.u.v_float64 = static_cast<double>(number);
  return value;
}

}  // namespace detail

/// How one call is done.
struct CallOptions {
  CallOptions(int32_t most = 0) : max_team(most) {}  // NOLINT(google-explicit-constructor)
  /// f(CallOptions::Team(1), x) runs on the caller's thread alone.
  static CallOptions Team(int32_t most) { return {most}; }

  int32_t max_team;        // at most so many threads; 0: as many as there are
  double max_seconds = 0;  // a call that is over it ends with an Error; 0: no bound
  int64_t max_bytes = 0;   // of host memory that the call may ask for; 0: no bound
  /// The call ends with an Error once this is not 0, which another thread sets, best atomically.
  const int32_t* stop = nullptr;
  /// Memory of the device that a call there works in, aligned to 64 bytes; null: the module's.
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
  /// Not null: the call only says here how many bytes that would be.
  int64_t* out_workspace_bytes = nullptr;

  bool any() const {
    return max_team > 0 || max_seconds > 0 || max_bytes > 0 || stop || workspace ||
           out_workspace_bytes;
  }
  /// For the C API.
  tn_call_options_t raw() const {
    const double nanoseconds = max_seconds * 1e9;
    tn_call_options_t out{};
    out.struct_bytes = sizeof out;
    out.max_team = max_team;
    out.max_nanoseconds = nanoseconds < 9e18 ? static_cast<int64_t>(nanoseconds) : 0;
    if (max_seconds > 0 && nanoseconds < 1) out.max_nanoseconds = 1;
    out.max_bytes = max_bytes;
    out.stop = stop;
    out.workspace = workspace;
    out.workspace_bytes = workspace_bytes;
    out.out_workspace_bytes = out_workspace_bytes;
    return out;
  }
};

/// An exported function; empty by default, and then calling it is an error. One that came from a
/// Module keeps its library loaded.
class Function {
 public:
  Function() = default;
  explicit Function(tn_packed_fn function, std::shared_ptr<tn_module_t> module = nullptr)
      : module_(std::move(module)), function_(function) {}

  /// Calls with tensors (Tensor or DLTensor*) or numbers: the inputs, then nothing or all outputs.
  template <class... Args>
  Result operator()(const Args&... args) const {
    return (*this)(CallOptions(), args...);
  }
  template <class... Args>
  Result operator()(const CallOptions& options, const Args&... args) const {
    const tn_ffi_any values[sizeof...(Args) + 1] = {detail::ToAny(args)..., tn_ffi_any{}};
    return Call(values, static_cast<int32_t>(sizeof...(Args)), options);
  }

  /// The same with arguments counted at run time.
  Result operator()(const std::vector<Tensor>& args, const CallOptions& options = {}) const {
    std::vector<tn_ffi_any> values;
    values.reserve(args.size());
    for (const Tensor& tensor : args) values.push_back(detail::ToAny(tensor));
    return Call(values.data(), static_cast<int32_t>(values.size()), options);
  }
  Result Call(const tn_ffi_any* args, int32_t num_args, const CallOptions& options = {}) const {
    if (!function_) throw Error("RuntimeError", "the function that is called is empty");
    const tn_call_options_t raw = options.raw();
    Result result(module_);
    detail::Check(tn_call(function_, options.any() ? &raw : nullptr, args, num_args, result.raw()));
    return result;
  }

  explicit operator bool() const { return function_ != nullptr; }
  /// Valid while this function, or its module, lives.
  tn_packed_fn raw() const { return function_; }

 private:
  std::shared_ptr<tn_module_t> module_;
  tn_packed_fn function_ = nullptr;
};

/// An input or output: name, element type and shape; a symbolic dim is -1 and has a name.
struct Parameter {
  std::string name;
  bool is_number = false;  // passed by value: a number of the type, not a tensor
  DataType dtype = DataType::kFloat32;
  std::vector<int64_t> shape;
  std::vector<std::string> dims;  // "" where the dim is a number
};

/// A loaded library; empty by default, and then asking it for anything is an error. It is unloaded
/// with the last of its modules, functions and results; tensors may live on.
class Module {
 public:
  Module() = default;
  static Module LoadFromFile(const std::string& path) {
    tn_module_t* module = nullptr;
    detail::Check(tn_module_load(path.c_str(), &module));
    Module result;
    result.module_.reset(module, tn_module_unload);
    return result;
  }

  /// Of the first function: "main", or what the library was compiled as.
  std::string Name() const {
    const char* name = nullptr;
    detail::Check(tn_module_get_name(handle(), &name));
    return name;
  }
  /// Usable without the module, too.
  Function GetFunction(const std::string& name) const {
    tn_packed_fn function = nullptr;
    detail::Check(tn_module_get_function(handle(), name.c_str(), &function));
    return Function(function, module_);
  }
  /// What the library says about itself, as JSON.
  std::string GetInfo() const {
    const char* text = nullptr;
    uint64_t bytes = 0;
    detail::Check(tn_module_get_info(handle(), &text, &bytes));
    return {text, static_cast<size_t>(bytes)};
  }
  std::string GetMetadata(const std::string& key) const {
    const char* value = nullptr;
    detail::Check(tn_module_get_metadata(handle(), key.c_str(), &value));
    return value;
  }
  std::vector<Parameter> Inputs() const {
    return Parameters(tn_module_num_inputs(handle()), tn_module_get_input);
  }
  std::vector<Parameter> Outputs() const {
    return Parameters(tn_module_num_outputs(handle()), tn_module_get_output);
  }
  /// See tn_module_reserve.
  void Reserve(int32_t instances, int64_t arena_bytes = 0) const {
    detail::Check(tn_module_reserve(handle(), instances, arena_bytes));
  }
  /// See tn_module_limit_memory and tn_module_trim.
  void LimitMemory(int64_t bytes) const { detail::Check(tn_module_limit_memory(handle(), bytes)); }
  void Trim() const { detail::Check(tn_module_trim(handle())); }
  explicit operator bool() const { return module_ != nullptr; }
  tn_module_t* handle() const {
    if (!module_) throw Error("RuntimeError", "the module is empty: nothing was loaded into it");
    return module_.get();
  }

 private:
  std::vector<Parameter> Parameters(int32_t count, int32_t (*get)(const tn_module_t*, int32_t,
                                                                  tn_parameter_t*)) const {
    if (count < 0) detail::Check(-1);
    std::vector<Parameter> result;
    for (int32_t i = 0; i < count; ++i) {
      tn_parameter_t raw;
      detail::Check(get(module_.get(), i, &raw));
      Parameter parameter;
      parameter.name = raw.name;
      parameter.dtype = raw.dtype;
      parameter.is_number = raw.ndim < 0 && get == tn_module_get_input;
      if (raw.ndim > 0) parameter.shape.assign(raw.shape, raw.shape + raw.ndim);
      for (int32_t d = 0; d < raw.ndim; ++d)
        parameter.dims.emplace_back(raw.dims[d] ? raw.dims[d] : "");
      result.push_back(std::move(parameter));
    }
    return result;
  }

  std::shared_ptr<tn_module_t> module_;
};

/// A module's first function with its inputs and outputs by name.
class Session {
 public:
  explicit Session(Module module)
      : module_(std::move(module)),
        main_(module_.GetFunction(module_.Name())),
        inputs_(module_.Inputs()),
        outputs_(module_.Outputs()) {}
  explicit Session(const std::string& path) : Session(Module::LoadFromFile(path)) {}

  const Module& module() const { return module_; }
  const std::vector<Parameter>& inputs() const { return inputs_; }
  const std::vector<Parameter>& outputs() const { return outputs_; }

  /// Every input must be given, by its name; all outputs come back.
  std::map<std::string, Tensor> Run(const std::map<std::string, Tensor>& feeds,
                                    const CallOptions& options = {}) const {
    std::vector<tn_ffi_any> args = Bind(feeds, inputs_, "input");
    Result result = main_.Call(args.data(), static_cast<int32_t>(args.size()), options);
    std::map<std::string, Tensor> results;
    for (size_t i = 0; i < outputs_.size(); ++i) results.emplace(outputs_[i].name, result[i]);
    return results;
  }
  /// The same, written into the given outputs, of which there must be all.
  void Run(const std::map<std::string, Tensor>& feeds, const std::map<std::string, Tensor>& results,
           const CallOptions& options = {}) const {
    std::vector<tn_ffi_any> args = Bind(feeds, inputs_, "input");
    std::vector<tn_ffi_any> targets = Bind(results, outputs_, "output");
    args.insert(args.end(), targets.begin(), targets.end());
    main_.Call(args.data(), static_cast<int32_t>(args.size()), options);
  }

 private:
  static std::vector<tn_ffi_any> Bind(const std::map<std::string, Tensor>& given,
                                      const std::vector<Parameter>& parameters, const char* what) {
    std::vector<tn_ffi_any> args;
    for (const Parameter& parameter : parameters) {
      auto found = given.find(parameter.name);
      if (found == given.end()) {
        // A wrong name is why this one lacks, more often than not.
        RefuseUnknown(given, parameters, what);
        throw Error("ValueError", std::string(what) + " '" + parameter.name + "' was not given");
      }
      if (!found->second && !parameter.is_number)
        throw Error("ValueError",
                    std::string(what) + " '" + parameter.name + "' is an empty tensor");
      args.push_back(detail::ToAny(found->second));
    }
    if (given.size() != parameters.size()) RefuseUnknown(given, parameters, what);
    return args;
  }

  // Throws where a name is given that no parameter has.
  static void RefuseUnknown(const std::map<std::string, Tensor>& given,
                            const std::vector<Parameter>& parameters, const char* what) {
    std::string known;
    for (const Parameter& parameter : parameters) known += " '" + parameter.name + "'";
    for (const auto& [name, tensor] : given) {
      bool is_known = false;
      for (const Parameter& parameter : parameters) is_known |= parameter.name == name;
      if (is_known) continue;
      std::string message = "there is no ";
      message += what;
      message.append(" '").append(name).append("'; there are").append(known);
      throw Error("ValueError", message);
    }
  }

  Module module_;
  Function main_;
  std::vector<Parameter> inputs_, outputs_;
};

}  // namespace v0
}  // namespace tenon

#endif  // TENON_TENON_HPP_

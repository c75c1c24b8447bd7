#include "program.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "support/strings.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

using Getter = int32_t (*)(const tn_module_t*, int32_t, tn_parameter_t*);

// `types`: what the library's information says of them. One without a shape has a rank that the
// call decides; an input of a function that is no network's is then no tensor.
Expected<std::vector<Parameter>> Parameters(const tn_module_t* module, int32_t count, Getter get,
                                            const nlohmann::json& types, bool is_network) {
  if (count < 0) return ApiError();
  std::vector<Parameter> list;
  for (int32_t i = 0; i < count; ++i) {
    tn_parameter_t raw;
    if (get(module, i, &raw) != 0) return ApiError();
    Parameter p{raw.name, types.at(static_cast<size_t>(i)).at("dtype"), raw.dtype, {}, {}};
    p.has_rank = raw.ndim >= 0;
    if (!p.has_rank && !p.IsValue() && get == tn_module_get_input && !is_network) {
      return MakeError(
          fmt::format("the input '{}' is a number passed by value; such a function is "
                      "called from a program, docs/calling.md",
                      raw.name));
    }
    for (int32_t d = 0; d < raw.ndim; ++d) {
      p.shape.push_back(raw.shape[d]);
      p.dims.emplace_back(raw.dims[d] ? raw.dims[d] : "");
    }
    list.push_back(std::move(p));
  }
  return list;
}

tn_ffi_any Argument(const Tensor& tensor) {
  tn_ffi_any value{};
  value.type_index = TN_FFI_TENSOR;
  value.u.v_obj = &tensor.handle()->header;
  return value;
}

// One more reference to a tensor inside a result.
Tensor Share(const tn_ffi_any& value) {
  auto* tensor = reinterpret_cast<tn_tensor_t*>(value.u.v_obj);
  tn_tensor_retain(tensor);
  return Tensor(tensor);
}

}  // namespace

std::string Parameter::ToString() const {
  std::vector<std::string> words;
  for (size_t d = 0; d < shape.size(); ++d) {
    words.push_back(shape[d] >= 0 ? std::to_string(shape[d]) : dims[d]);
  }
  if (type.find('(') != std::string::npos) return type;
  if (!has_rank && !IsValue()) return tools::ToString(dtype) + " of a rank that the call decides";
  return (IsValue() ? type : tools::ToString(dtype)) +
         (words.empty() ? " scalar" : " " + Join(words, "x"));
}

Diagnostic DamagedDescription() {
  return MakeError("the library's description of itself is damaged");
}

Expected<Program> Program::Load(const std::string& path) {
  tn_module_t* module = nullptr;
  if (tn_module_load(path.c_str(), &module) != 0) return InFile({ApiError()}, path);
  Program program;
  program.module_.reset(module, tn_module_free);
  TN_RETURN_IF_ERROR(program.ReadParameters());
  TN_RETURN_IF_ERROR(program.FindMain());
  return program;
}

Status Program::ReadParameters() {
  tn_module_t* module = module_.get();
  nlohmann::json main;
  try {
    main = nlohmann::json::parse(Info()).at("functions").at(0);
    const bool is_network = main.value("makes_outputs", false);
    TN_ASSIGN_OR_RETURN(inputs_, Parameters(module, tn_module_num_inputs(module),
                                            tn_module_get_input, main.at("inputs"), is_network));
    TN_ASSIGN_OR_RETURN(outputs_, Parameters(module, tn_module_num_outputs(module),
                                             tn_module_get_output, main.at("outputs"), is_network));
  } catch (const nlohmann::json::exception&) {
    return DamagedDescription();
  }
  for (const std::vector<Parameter>* list : {&inputs_, &outputs_}) {
    for (const Parameter& p : *list) has_values_ |= p.IsValue();
  }
  return Ok();
}

Status Program::FindMain() {
  const char* name = nullptr;
  if (tn_module_get_name(module_.get(), &name) != 0) return ApiError();
  if (tn_module_get_function(module_.get(), name, &main_) != 0) return ApiError();
  return Ok();
}

std::string Program::Info() const {
  const char* text = nullptr;
  uint64_t bytes = 0;
  tn_module_get_info(module_.get(), &text, &bytes);
  return {text, static_cast<size_t>(bytes)};
}

std::string Program::Target() const {
  const auto info = nlohmann::json::parse(Info(), nullptr, false);
  return info.is_object() ? info.value("target", "") : "";
}

bool Program::MakesOutputs() const {
  const auto info = nlohmann::json::parse(Info(), nullptr, false);
  return info.is_object() && info["functions"][0].value("makes_outputs", false);
}

Status Program::CallRaw(const std::vector<tn_ffi_any>& args, tn_ffi_any* result) const {
  if (tn_call(main_, nullptr, args.data(), static_cast<int32_t>(args.size()), result) != 0)
    return ApiError();
  return Ok();
}

Expected<NamedTensors> Program::Call(const NamedTensors& inputs) const {
  std::vector<tn_ffi_any> args;
  for (const auto& [name, tensor] : inputs) args.push_back(Argument(tensor));
  tn_ffi_any result{};
  TN_RETURN_IF_ERROR(CallRaw(args, &result));
  NamedTensors outputs;
  if (result.type_index == TN_FFI_TENSOR) {
    outputs.emplace_back(outputs_[0].name, Share(result));
  } else if (result.type_index == TN_FFI_ARRAY) {
    const auto& array = *reinterpret_cast<const tn_ffi_array*>(result.u.v_obj);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      outputs.emplace_back(outputs_[i].name, Share(array.data[i]));
    }
  }
  tn_value_release(&result);
  return outputs;
}

Expected<Tensor> Program::Result(const std::string& name) const {
  tn_packed_fn function = nullptr;
  tn_ffi_any result{};
  if (tn_module_get_function(module_.get(), name.c_str(), &function) != 0 ||
      tn_call(function, nullptr, nullptr, 0, &result) != 0)
    return ApiError();
  if (result.type_index != TN_FFI_TENSOR) return MakeError("its result is no tensor");
  Tensor tensor = Share(result);
  tn_value_release(&result);
  return tensor;
}

Program::Repeated Program::Prepare(std::vector<tn_ffi_any> args) const {
  Repeated call;
  call.function_ = main_;
  call.args_ = std::move(args);
  return call;
}

Program::Repeated Program::Prepare(const NamedTensors& inputs, const NamedTensors& outputs) const {
  Repeated call;
  call.function_ = main_;
  call.tensors_ = inputs;
  call.tensors_.insert(call.tensors_.end(), outputs.begin(), outputs.end());
  for (const auto& [name, tensor] : call.tensors_) call.args_.push_back(Argument(tensor));
  return call;
}

bool Program::Repeated::Run() {
  tn_ffi_any result{};
  const auto count = static_cast<int32_t>(args_.size());
  if (tn_call(function_, nullptr, args_.data(), count, &result) != 0) return false;
  if (result.type_index != TN_FFI_NONE) tn_value_release(&result);
  return true;
}

}  // namespace tenon::tools

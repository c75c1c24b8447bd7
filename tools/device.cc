#include "device.h"

#include <fmt/format.h>

#include <charconv>

#include "target/kinds.h"

namespace tenon::tools {

namespace {

bool IsOnHost(const Tensor& tensor) {
  return tensor.handle()->dl_tensor.device.device_type == TN_DL_CPU;
}

std::vector<int64_t> ShapeOf(const Tensor& tensor) {
  return {tensor.shape().begin(), tensor.shape().end()};
}

}  // namespace

Expected<tn_dl_device> DeviceFor(const Program& program, const std::string& text) {
  const std::string target = program.Target();
  const TargetKind* kind = FindKind(target.substr(0, target.find(' ')));
  const std::string_view own = kind ? kind->device : "cpu";
  const size_t colon = text.find(':');
  const std::string name = text.empty() ? std::string(own) : text.substr(0, colon);
  int32_t index = 0;
  if (colon != std::string::npos) {
    const char *first = text.data() + colon + 1, *last = text.data() + text.size();
    const auto [end, error] = std::from_chars(first, last, index);
    if (error != std::errc() || end != last || index < 0) {
      return MakeError(
          fmt::format("--device '{}': expected a name or name:0, such as {}:0", text, own));
    }
  }
  if (name != own) {
    Diagnostic error =
        MakeError(fmt::format("--device '{}': the model is compiled for {}", text, own));
    error.notes.push_back("--target says what a model is compiled for");
    return error;
  }
  const auto type = static_cast<int32_t>(tenon::FindDevice(own)->type);
  const int32_t count = tn_device_count(type);
  if (index > 0 && index >= count) {
    return MakeError(fmt::format("--device '{}': there {} {} {} device{} here", text,
                                 count == 1 ? "is" : "are", count, own, count == 1 ? "" : "s"));
  }
  return tn_dl_device{type, index};
}

std::string ToString(tn_dl_device device) {
  return fmt::format("{}:{}", tenon::FindDevice(device.device_type)->name, device.device_id);
}

Expected<NamedTensors> OnDevice(const NamedTensors& tensors, tn_dl_device device) {
  if (device.device_type == TN_DL_CPU) return tensors;
  NamedTensors out;
  for (const auto& [name, tensor] : tensors) {
    TN_ASSIGN_OR_RETURN(Tensor copy, Tensor::Make(tensor.dtype(), ShapeOf(tensor), device));
    if (tn_tensor_copy(copy.handle(), tensor.handle()) != 0) return ApiError();
    out.emplace_back(name, std::move(copy));
  }
  return out;
}

Expected<NamedTensors> OnHost(const NamedTensors& tensors) {
  NamedTensors out;
  for (const auto& [name, tensor] : tensors) {
    if (IsOnHost(tensor)) {
      out.emplace_back(name, tensor);
      continue;
    }
    TN_ASSIGN_OR_RETURN(Tensor copy, Tensor::Make(tensor.dtype(), ShapeOf(tensor)));
    const auto bytes = static_cast<int64_t>(copy.bytes().size());
    if (tn_tensor_copy_to_bytes(tensor.handle(), copy.bytes().data(), bytes) != 0) {
      return ApiError();
    }
    out.emplace_back(name, std::move(copy));
  }
  return out;
}

}  // namespace tenon::tools

#include "measure/operand_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tenon/devices.h"

namespace tenon::measure {

namespace {

constexpr size_t kGuard = 4096;
constexpr auto kCanary = static_cast<unsigned char>(0xA5);

Diagnostic CallError() { return MakeError(tn_last_error(nullptr)); }

// Operands of no bytes have no memory, which memcpy must not be given.
void CopyBytes(const void* from, size_t bytes, void* to) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

// Whether pointers to the device's memory are addresses.
bool HasAddresses(int32_t device_type) {
#define TN_ROW(id, name, type, handles) \
  if (device_type == (type)) return (handles) == 0;
  TN_DEVICES(TN_ROW)
#undef TN_ROW
  return false;
}

// Whether so many bytes on the device are as they were written. What lies between two guards may be
// large, and is not read.
Expected<bool> AreCanaries(unsigned char* data, size_t bytes, tn_dl_device device) {
  const auto count = static_cast<int64_t>(bytes);
  tn_tensor_t* view = nullptr;
  if (tn_tensor_wrap(data, {TN_DL_UINT, 8, 1}, 1, &count, device, &view) != 0) return CallError();
  std::vector<unsigned char> now(bytes);
  const int32_t status = tn_tensor_copy_to_bytes(view, now.data(), count);
  tn_tensor_free(view);
  if (status != 0) return CallError();
  return std::all_of(now.begin(), now.end(), [](unsigned char c) { return c == kCanary; });
}

}  // namespace

Expected<tn_dl_device> DeviceOf(const std::string& name) {
  if (name.empty() || name == "cpu") return tn_dl_device{TN_DL_CPU, 0};
#define TN_ROW(id, device_name, type, handles)                         \
  if (name == (device_name)) {                                         \
    if (tn_device_count(type) > 0) return tn_dl_device{(type), 0};     \
    return MakeError(fmt::format("there is no {} device here", name)); \
  }
  TN_DEVICES(TN_ROW)
#undef TN_ROW
  return MakeError(fmt::format("there is no kind of device '{}'", name));
}

Expected<OperandMemory> OperandMemory::Make(tn_dl_device device, size_t bytes) {
  OperandMemory out(device, bytes);
  if (out.OnHost()) {
    TN_ASSIGN_OR_RETURN(GuardedMemory memory, GuardedMemory::Make(bytes));
    out.host_.emplace(std::move(memory));
    return out;
  }
  out.guard_ = HasAddresses(device.device_type) ? kGuard : 0;
  const auto all = static_cast<int64_t>(std::max<size_t>(1, bytes) + 2 * out.guard_);
  tn_tensor_t* made = nullptr;
  if (tn_tensor_make({TN_DL_UINT, 8, 1}, 1, &all, device, &made) != 0) return CallError();
  out.on_device_.reset(made);
  return out;
}

void* OperandMemory::data() const {
  if (OnHost()) return host_->data();
  return static_cast<std::byte*>(on_device_->dl_tensor.data) + guard_;
}

Status OperandMemory::Write(const std::byte* from) {
  if (OnHost()) {
    CopyBytes(from, bytes_, host_->data());
    return Ok();
  }
  std::vector<unsigned char> all(std::max<size_t>(1, bytes_) + 2 * guard_, kCanary);
  CopyBytes(from, bytes_, all.data() + guard_);
  if (tn_tensor_copy_from_bytes(on_device_.get(), all.data(), static_cast<int64_t>(all.size())) !=
      0)
    return CallError();
  return Ok();
}

Status OperandMemory::Read(std::byte* to) const {
  if (OnHost()) {
    CopyBytes(host_->data(), bytes_, to);
    return Ok();
  }
  std::vector<unsigned char> all(std::max<size_t>(1, bytes_) + 2 * guard_);
  if (tn_tensor_copy_to_bytes(on_device_.get(), all.data(), static_cast<int64_t>(all.size())) != 0)
    return CallError();
  CopyBytes(all.data() + guard_, bytes_, to);
  return Ok();
}

Expected<bool> OperandMemory::IsWhole() const {
  if (OnHost()) return host_->IsWhole();
  if (guard_ == 0) return true;
  auto* first = static_cast<unsigned char*>(on_device_->dl_tensor.data);
  for (unsigned char* guard : {first, first + guard_ + bytes_}) {
    TN_ASSIGN_OR_RETURN(const bool whole, AreCanaries(guard, guard_, device_));
    if (!whole) return false;
  }
  return true;
}

}  // namespace tenon::measure

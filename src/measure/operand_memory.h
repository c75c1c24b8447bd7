// The memory of an operand, wherever kernels run: between guards on a CPU, between canaries on a
// device whose memory can be added to (guarded_memory.h is the former alone).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "measure/guarded_memory.h"
#include "support/expected.h"
#include "tenon/c_api.h"

namespace tenon::measure {

class OperandMemory {
 public:
  /// What it holds is not specified before it is written.
  static Expected<OperandMemory> Make(tn_dl_device device, size_t bytes);

  /// What a tensor over it is given.
  void* data() const;
  tn_dl_device device() const { return device_; }
  size_t bytes() const { return bytes_; }
  Status Write(const std::byte* from);
  Status Read(std::byte* to) const;
  /// Whether what lies beside it is as it was.
  Expected<bool> IsWhole() const;

 private:
  struct Free {
    void operator()(tn_tensor_t* t) const { tn_tensor_free(t); }
  };
  OperandMemory(tn_dl_device device, size_t bytes) : device_(device), bytes_(bytes) {}
  bool OnHost() const { return device_.device_type == TN_DL_CPU; }

  tn_dl_device device_;
  size_t bytes_;
  size_t guard_ = 0;                              // bytes before and behind
  std::optional<GuardedMemory> host_;             // on a CPU
  std::unique_ptr<tn_tensor_t, Free> on_device_;  // bytes, guards included
};

/// The device that a request names: "" and "cpu", "cuda", "opencl". Errors: there is none here.
Expected<tn_dl_device> DeviceOf(const std::string& name);

}  // namespace tenon::measure

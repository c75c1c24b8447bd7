// Launches in the driver's words.
#pragma once

#include "runtime/device/cuda/context.h"
#include "tenon/kernel_abi.h"

namespace tenon::runtime::cuda {

/// The descriptions of memory that a launch passes in the place of addresses: as long as this
/// object lives the launch's arguments are the descriptions, and afterwards the addresses again.
/// Made in the device's context.
class TensorMaps {
 public:
  explicit TensorMaps(const DeviceLaunch& launch) : launch_(launch) {}
  ~TensorMaps() {
    for (uint32_t n = 0; n < count_; ++n) launch_.args[places_[n]] = addresses_[n];
  }
  TensorMaps(const TensorMaps&) = delete;
  TensorMaps& operator=(const TensorMaps&) = delete;

  /// 0, or -1 + error.
  int32_t Make(int32_t id);

 private:
  int64_t ValueOf(int64_t value, int32_t param) const {
    return param < 0 ? value : *static_cast<const int64_t*>(launch_.args[param]);
  }
  int32_t Encode(int32_t id, const tn_device_map& row, uint32_t place);

  const DeviceLaunch& launch_;
  alignas(kTensorMapAlign) uint8_t maps_[TN_MAX_TENSOR_MAPS][kTensorMapBytes];
  uint32_t places_[TN_MAX_TENSOR_MAPS];
  void* addresses_[TN_MAX_TENSOR_MAPS];
  uint32_t count_ = 0;
};

/// Those of a launch that it has; how many.
uint32_t AttributesOf(const DeviceLaunch& launch, LaunchAttribute* out);
constexpr uint32_t kMostAttributes = 3;

}  // namespace tenon::runtime::cuda

// Tensor objects over memory of any device.
#pragma once

#include "runtime/device/device.h"
#include "tenon/ffi_types.h"

namespace tenon::runtime {

/// A tensor whose memory is a device's, the caller's or a DLPack producer's; shape and strides
/// follow it.
struct OwnedTensor {
  tn_ffi_tensor tensor;
  const DeviceDriver* driver;     // frees `data` where not null
  tn_dl_managed_tensor* managed;  // deleted where not null
};

/// A tensor object with its dims, compact strides and nothing else; null + error when memory is
/// out. The shape must have passed CheckTensorShape.
OwnedTensor* MakeOwned(tn_dl_data_type dtype, int32_t ndim, const int64_t* shape,
                       tn_dl_device device);

/// 0, or -1 + error where a tensor cannot have this shape.
int32_t CheckTensorShape(tn_dl_data_type dtype, int32_t ndim, const int64_t* shape);

/// A new compact tensor with memory of its own, contents unspecified; -1 + error otherwise.
int32_t MakeDeviceTensor(tn_dl_data_type dtype, int32_t ndim, const int64_t* shape,
                         tn_dl_device device, tn_ffi_tensor** out_tensor);

}  // namespace tenon::runtime

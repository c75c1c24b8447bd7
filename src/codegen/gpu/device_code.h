// Device code as data of a library: the tn_device_code of tenon/kernel_abi.h.
#pragma once

#include <string>
#include <vector>

#include "codegen/codegen.h"

namespace tenon::codegen {

/// Some kernels in a form that a driver loads.
struct DeviceImage {
  std::string form;  // for errors: "cubin for sm_90a"
  std::string bytes;
};

/// The data tn_blob_device_code and tn_blob_device_state: `kernels`, which are in their bound form
/// and are launched by their numbers, and their code in the forms to try, in order. `device_type`
/// is a DLDeviceType. Errors: a launch beyond the limits of the target.
Expected<std::vector<DataBlob>> PackDeviceCode(const std::vector<Func>& kernels,
                                               const Target& target, int64_t device_type,
                                               const std::vector<DeviceImage>& images);

}  // namespace tenon::codegen

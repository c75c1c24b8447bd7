// Device code as data of a library: the tn_device_code of tenon/kernel_abi.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/codegen.h"

namespace tenon::codegen {

/// Some kernels in a form that a driver loads.
struct DeviceImage {
  std::string form;  // for errors: "cubin for sm_90a"
  std::string bytes;
  bool overlaps = false;  // its kernels wait by themselves where they are launched early
};

/// Code of a module's kernels.
struct DeviceCode {
  std::string source;
  std::map<std::string, std::string> files;  // the forms it has, source among them: by suffix
  std::vector<DeviceImage> images;           // what drivers load, what suits fewest devices first
  std::string log;                           // what made them had to say
  /// Why there are no images though the source is right: what makes them is not on this machine.
  Diagnostics missing;
};

/// The data tn_blob_device_code and tn_blob_device_state: `kernels`, which are in their bound form
/// and are launched by their numbers, and their code in the forms to try, in order.
/// Errors: a launch beyond the limits of the target.
Expected<std::vector<DataBlob>> PackDeviceCode(const std::vector<Func>& kernels,
                                               const Target& target,
                                               const std::vector<DeviceImage>& images);

}  // namespace tenon::codegen

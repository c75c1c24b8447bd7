// The device's part of a module for a GPU target.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/gpu/device_code.h"
#include "driver/pipeline.h"

namespace tenon::driver {

/// Code of a module's kernels.
struct DeviceCode {
  std::string source;
  std::map<std::string, std::string> files;  // the forms it has, source among them: by "cu", "ptx"
  std::vector<codegen::DeviceImage> images;  // what drivers load
  /// Why there are no images though the source is right: what makes them is not on this machine.
  Diagnostics missing;
};

/// Whether BuildModule can make code for a target; the error says what it cannot do.
Status CheckBuildable(const Target& target);

/// From a module of lowered kernels in their bound form, and the device functions they call.
Expected<DeviceCode> MakeDeviceCode(const Module& kernels, const Target& target);

/// What the library carries of it. Errors: there are no images.
Expected<std::vector<codegen::DataBlob>> DeviceBlobs(const Module& kernels, const DeviceCode& code,
                                                     const Target& target);

}  // namespace tenon::driver

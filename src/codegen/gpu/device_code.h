// Device code as data of a library: the tn_device_code of tenon/kernel_abi.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "support/file_cache.h"

namespace tenon::codegen {

/// Names of kernels that are compiled together.
using KernelPart = std::vector<std::string>;

/// How device code is made.
struct DeviceCodeOptions {
  /// All kernels, where each part is to be a module of the driver, made beside the others; empty:
  /// they are one. Parts mean nothing to drivers that compile source.
  std::vector<KernelPart> parts;
  int jobs = 1;
  const FileCache* cache = nullptr;  // of what is slow to make; null: all is made now
};

/// Kernels in a form that a driver loads.
struct DeviceImage {
  std::string form;                // for errors: "cubin for sm_90a"
  std::vector<std::string> parts;  // the bytes of each
  bool overlaps = false;           // its kernels wait by themselves where they are launched early
};

/// Code of a module's kernels.
struct DeviceCode {
  std::string source;                        // of all of them
  std::map<std::string, std::string> files;  // the forms it has, source among them: by suffix
  std::vector<KernelPart> parts;             // of each image; empty: there is one, with all kernels
  std::vector<DeviceImage> images;           // what drivers load, what suits fewest devices first
  std::string log;                           // what made them had to say
  /// Why there are no images though the source is right: what makes them is not on this machine.
  Diagnostics missing;
};

/// The data tn_blob_device_code and tn_blob_device_state: `kernels`, which are in their bound form
/// and, but for the aligned forms among them, are launched by their numbers, and their code in the
/// forms to try, in order.
/// Errors: a launch beyond the limits of the target.
Expected<std::vector<DataBlob>> PackDeviceCode(const std::vector<Func>& kernels,
                                               const Target& target, const DeviceCode& code);

}  // namespace tenon::codegen

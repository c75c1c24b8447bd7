// Launches of kernels. What a kernel takes as a tensor map is described for each launch, in the
// place of the address that it describes, since both the address and the sizes are the call's.
#include "runtime/device/cuda/launch.h"

#include <stdio.h>

#include "runtime/core/error.h"
#include "runtime/device/cuda/context.h"
#include "tenon/kernel_abi.h"

namespace tenon::runtime::cuda {

int32_t TensorMaps::Make(int32_t id) {
  // Behind the bytes of the parameters, aligned as data of the library.
  const uint8_t* end = launch_.params + launch_.num_params;
  end += (8 - reinterpret_cast<uintptr_t>(end) % 8) % 8;
  const auto* rows = reinterpret_cast<const tn_device_map*>(end);
  const bool aligned = launch_.function == launch_.forms[1];
  for (uint32_t i = 0; i < launch_.num_params; ++i) {
    const uint8_t param = launch_.params[i];
    if (param != TN_PARAM_TENSOR_MAP && !(param == TN_PARAM_ALIGNED_MAP && aligned)) continue;
    if (count_ == TN_MAX_TENSOR_MAPS) return Fail("RuntimeError", "too many tensor maps");
    if (Encode(id, rows[count_], i) != 0) return -1;
  }
  return 0;
}

int32_t TensorMaps::Encode(int32_t id, const tn_device_map& row, uint32_t place) {
  const Library* library = Find(nullptr);
  if (!library->encode_map) {
    return Fail("RuntimeError",
                "the CUDA driver has no cuTensorMapEncodeTiled: it is too old for the kernel");
  }
  const auto columns = static_cast<uint64_t>(ValueOf(row.columns, row.columns_param));
  const uint64_t sizes[] = {columns, static_cast<uint64_t>(ValueOf(row.rows, row.rows_param))};
  const uint64_t strides[] = {columns * (row.type_bits / 8)};
  const uint32_t box[] = {row.box_columns, row.box_rows}, steps[] = {1, 1};
  const int32_t type = row.type_code == TN_DL_BFLOAT ? kMapBFloat16 : kMapFloat16;
  void* memory = *static_cast<void**>(launch_.args[place]);
  const Result result = library->encode_map(maps_[count_], type, 2, memory, sizes, strides, box,
                                            steps, 0, kMapSwizzle128, kMapPromote128, 0);
  if (result != 0) return Raise(id, "cuTensorMapEncodeTiled", launch_.name, result);
  places_[count_] = place;
  addresses_[count_] = launch_.args[place];
  launch_.args[place] = maps_[count_++];
  return 0;
}

uint32_t AttributesOf(const DeviceLaunch& launch, LaunchAttribute* out) {
  uint32_t count = 0;
  auto add = [&](int32_t id) -> LaunchAttribute& {
    out[count] = {};
    out[count].id = id;
    out[count].value.on = 1;
    return out[count++];
  };
  if ((launch.attributes & TN_LAUNCH_COOPERATIVE) != 0) add(kLaunchCooperative);
  if ((launch.attributes & TN_LAUNCH_DEPENDENT) != 0) add(kLaunchDependent);
  const uint32_t* n = launch.cluster;
  if (n[0] > 1 || n[1] > 1 || n[2] > 1) {
    LaunchAttribute& cluster = add(kLaunchCluster);
    for (int i = 0; i < 3; ++i) cluster.value.cluster[i] = n[i] > 1 ? n[i] : 1;
  }
  return count;
}

namespace {

int32_t LaunchPlain(int32_t id, const DeviceLaunch& launch) {
  const Use use(id);
  if (!use.library) return -1;
  const Result result = use.library->launch(
      launch.function, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
      launch.block[1], launch.block[2], launch.shared_bytes, launch.stream, launch.args, nullptr);
  return result == 0 ? 0 : Raise(id, "cuLaunchKernel", launch.name, result);
}

/// Says how many blocks there would have been room for.
int32_t RaiseTooLarge(int32_t id, const Library& library, const DeviceLaunch& launch) {
  int32_t each = 0, device = 0, multiprocessors = 0;
  const auto threads = static_cast<int32_t>(launch.block[0] * launch.block[1] * launch.block[2]);
  const bool known =
      library.blocks_that_fit &&
      library.blocks_that_fit(&each, launch.function, threads, launch.shared_bytes) == 0 &&
      library.device_get(&device, id) == 0 &&
      library.device_attribute(&multiprocessors, kMultiprocessors, device) == 0;
  if (!known) return Raise(id, "cuLaunchKernelEx", launch.name, kCooperativeTooLarge);
  const unsigned long long blocks = 1ULL * launch.grid[0] * launch.grid[1] * launch.grid[2];
  char message[512];
  snprintf(message, sizeof message,
           "kernel '%s' on cuda:%d: a cooperative launch of %llu blocks, but at most %lld fit at "
           "once: %d on each of %d multiprocessors",
           launch.name, id, blocks, 1LL * each * multiprocessors, each, multiprocessors);
  return Fail("ValueError", message);
}

int32_t LaunchWith(int32_t id, const DeviceLaunch& launch, LaunchAttribute* attributes,
                   uint32_t count) {
  Use use(id);
  if (!use.library) return -1;
  if (!use.library->launch_ex) {
    return Fail("RuntimeError",
                "the CUDA driver has no cuLaunchKernelEx: it is too old for clusters, cooperative "
                "and dependent launches");
  }
  LaunchConfig config = {};
  for (int i = 0; i < 3; ++i) {
    config.grid[i] = launch.grid[i];
    config.block[i] = launch.block[i];
  }
  config.shared_bytes = launch.shared_bytes;
  config.stream = launch.stream;
  config.attributes = attributes;
  config.num_attributes = count;
  const Result result = use.library->launch_ex(&config, launch.function, launch.args, nullptr);
  if (result == 0) return 0;
  if (result == kCooperativeTooLarge) return RaiseTooLarge(id, *use.library, launch);
  return Raise(id, "cuLaunchKernelEx", launch.name, result);
}

int32_t LaunchAs(int32_t id, const DeviceLaunch& launch) {
  LaunchAttribute attributes[kMostAttributes];
  const uint32_t count = AttributesOf(launch, attributes);
  return count == 0 ? LaunchPlain(id, launch) : LaunchWith(id, launch, attributes, count);
}

}  // namespace

int32_t Launch(int32_t id, const DeviceLaunch& launch) {
  const Use use(id);  // descriptions, too, are made in the device's context
  if (!use.library) return -1;
  TensorMaps maps(launch);
  return maps.Make(id) == 0 ? LaunchAs(id, launch) : -1;
}

}  // namespace tenon::runtime::cuda

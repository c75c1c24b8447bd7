/* Kinds of devices that memory lies on: the one list of their names and numbers, which the
 * compiler, the runtime, the C++ header and the Python package expand. Plain C11 and C++. */
#ifndef TENON_DEVICES_H_
#define TENON_DEVICES_H_

#include "ffi_types.h"

/* X(id, name, DLDeviceType, handles): `handles` is 1 where a pointer to the device's memory is a
 * handle of the vendor's (OpenCL: a cl_mem) that nothing can be added to: such tensors have no
 * byte_offset, and every value has memory of its own. */
#define TN_DEVICES(X)                           \
  X(cpu, "cpu", TN_DL_CPU, 0)                   \
  X(cuda, "cuda", TN_DL_CUDA, 0)                \
  X(cuda_host, "cuda_host", TN_DL_CUDA_HOST, 0) \
  X(opencl, "opencl", TN_DL_OPENCL, 1)          \
  X(vulkan, "vulkan", TN_DL_VULKAN, 0)          \
  X(metal, "metal", TN_DL_METAL, 0)             \
  X(rocm, "rocm", TN_DL_ROCM, 0)                \
  X(null, "null", TN_DL_NULL, 0)

/* TN_DEVICE_cpu, TN_DEVICE_cuda, …: their DLDeviceTypes by id. */
enum {
#define TN_DEVICE_TYPE(id, name, type, handles) TN_DEVICE_##id = (type),
  TN_DEVICES(TN_DEVICE_TYPE)
#undef TN_DEVICE_TYPE
};

#endif /* TENON_DEVICES_H_ */

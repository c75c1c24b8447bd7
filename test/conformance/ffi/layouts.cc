// Our declarations of TVM-FFI's and DLPack's layouts, held against the originals. Compiling this
// file is the test.
#include <dlpack/dlpack.h>
#include <tvm/ffi/c_api.h>

#include <cstddef>

#include "tenon/ffi_types.h"

#define SAME_SIZE(ours, theirs) \
  static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs))
#define SAME_FIELD(ours, field, theirs, their_field)                      \
  static_assert(offsetof(ours, field) == offsetof(theirs, their_field) && \
                sizeof(ours::field) == sizeof(theirs::their_field))

SAME_SIZE(tn_dl_data_type, DLDataType);
SAME_FIELD(tn_dl_data_type, code, DLDataType, code);
SAME_FIELD(tn_dl_data_type, bits, DLDataType, bits);
SAME_FIELD(tn_dl_data_type, lanes, DLDataType, lanes);

SAME_SIZE(tn_dl_device, DLDevice);
SAME_FIELD(tn_dl_device, device_type, DLDevice, device_type);
SAME_FIELD(tn_dl_device, device_id, DLDevice, device_id);

SAME_SIZE(tn_dl_tensor, DLTensor);
SAME_FIELD(tn_dl_tensor, data, DLTensor, data);
SAME_FIELD(tn_dl_tensor, device, DLTensor, device);
SAME_FIELD(tn_dl_tensor, ndim, DLTensor, ndim);
SAME_FIELD(tn_dl_tensor, dtype, DLTensor, dtype);
SAME_FIELD(tn_dl_tensor, shape, DLTensor, shape);
SAME_FIELD(tn_dl_tensor, strides, DLTensor, strides);
SAME_FIELD(tn_dl_tensor, byte_offset, DLTensor, byte_offset);

SAME_SIZE(tn_dl_managed_tensor, DLManagedTensorVersioned);
SAME_FIELD(tn_dl_managed_tensor, version_major, DLManagedTensorVersioned, version.major);
SAME_FIELD(tn_dl_managed_tensor, version_minor, DLManagedTensorVersioned, version.minor);
SAME_FIELD(tn_dl_managed_tensor, manager_ctx, DLManagedTensorVersioned, manager_ctx);
SAME_FIELD(tn_dl_managed_tensor, deleter, DLManagedTensorVersioned, deleter);
SAME_FIELD(tn_dl_managed_tensor, flags, DLManagedTensorVersioned, flags);
SAME_FIELD(tn_dl_managed_tensor, dl_tensor, DLManagedTensorVersioned, dl_tensor);

SAME_SIZE(tn_ffi_object, TVMFFIObject);
SAME_FIELD(tn_ffi_object, combined_ref_count, TVMFFIObject, combined_ref_count);
SAME_FIELD(tn_ffi_object, type_index, TVMFFIObject, type_index);
SAME_FIELD(tn_ffi_object, deleter, TVMFFIObject, deleter);

SAME_SIZE(tn_ffi_any, TVMFFIAny);
SAME_FIELD(tn_ffi_any, type_index, TVMFFIAny, type_index);
SAME_FIELD(tn_ffi_any, padding, TVMFFIAny, zero_padding);
SAME_FIELD(tn_ffi_any, u.v_int64, TVMFFIAny, v_int64);

SAME_SIZE(tn_ffi_byte_array, TVMFFIByteArray);
SAME_FIELD(tn_ffi_byte_array, data, TVMFFIByteArray, data);
SAME_FIELD(tn_ffi_byte_array, size, TVMFFIByteArray, size);

struct TheirFunction {
  TVMFFIObject header;
  TVMFFIFunctionCell cell;
};
SAME_SIZE(tn_ffi_function, TheirFunction);
SAME_FIELD(tn_ffi_function, safe_call, TheirFunction, cell.safe_call);

struct TheirTensor {
  TVMFFIObject header;
  DLTensor tensor;
};
SAME_SIZE(tn_ffi_tensor, TheirTensor);
SAME_FIELD(tn_ffi_tensor, dl_tensor, TheirTensor, tensor);

struct TheirArray {
  TVMFFIObject header;
  TVMFFISeqCell cell;
};
SAME_SIZE(tn_ffi_array, TheirArray);
SAME_FIELD(tn_ffi_array, data, TheirArray, cell.data);
SAME_FIELD(tn_ffi_array, size, TheirArray, cell.size);
SAME_FIELD(tn_ffi_array, capacity, TheirArray, cell.capacity);
SAME_FIELD(tn_ffi_array, data_deleter, TheirArray, cell.data_deleter);

#define SAME_VALUE(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
SAME_VALUE(TN_FFI_NONE, kTVMFFINone);
SAME_VALUE(TN_FFI_INT, kTVMFFIInt);
SAME_VALUE(TN_FFI_BOOL, kTVMFFIBool);
SAME_VALUE(TN_FFI_FLOAT, kTVMFFIFloat);
SAME_VALUE(TN_FFI_OPAQUE_PTR, kTVMFFIOpaquePtr);
SAME_VALUE(TN_FFI_DATA_TYPE, kTVMFFIDataType);
SAME_VALUE(TN_FFI_DEVICE, kTVMFFIDevice);
SAME_VALUE(TN_FFI_DL_TENSOR_PTR, kTVMFFIDLTensorPtr);
SAME_VALUE(TN_FFI_RAW_STR, kTVMFFIRawStr);
SAME_VALUE(TN_FFI_SMALL_STR, kTVMFFISmallStr);
SAME_VALUE(TN_FFI_OBJECT, kTVMFFIStaticObjectBegin);
SAME_VALUE(TN_FFI_STR, kTVMFFIStr);
SAME_VALUE(TN_FFI_ERROR, kTVMFFIError);
SAME_VALUE(TN_FFI_FUNCTION, kTVMFFIFunction);
SAME_VALUE(TN_FFI_SHAPE, kTVMFFIShape);
SAME_VALUE(TN_FFI_TENSOR, kTVMFFITensor);
SAME_VALUE(TN_FFI_ARRAY, kTVMFFIArray);
SAME_VALUE(TN_FFI_MODULE, kTVMFFIModule);
SAME_VALUE(TN_DL_INT, kDLInt);
SAME_VALUE(TN_DL_UINT, kDLUInt);
SAME_VALUE(TN_DL_FLOAT, kDLFloat);
SAME_VALUE(TN_DL_HANDLE, kDLOpaqueHandle);
SAME_VALUE(TN_DL_BFLOAT, kDLBfloat);
SAME_VALUE(TN_DL_COMPLEX, kDLComplex);
SAME_VALUE(TN_DL_BOOL, kDLBool);
SAME_VALUE(TN_DL_FLOAT8_E4M3FN, kDLFloat8_e4m3fn);
SAME_VALUE(TN_DL_FLOAT8_E5M2, kDLFloat8_e5m2);
SAME_VALUE(TN_DL_FLOAT4_E2M1FN, kDLFloat4_e2m1fn);
SAME_VALUE(TN_DL_CPU, kDLCPU);
SAME_VALUE(TN_DL_CUDA, kDLCUDA);
SAME_VALUE(TN_DL_CUDA_HOST, kDLCUDAHost);
SAME_VALUE(TN_DL_OPENCL, kDLOpenCL);
SAME_VALUE(TN_DL_VULKAN, kDLVulkan);
SAME_VALUE(TN_DL_METAL, kDLMetal);
SAME_VALUE(TN_DL_ROCM, kDLROCM);
SAME_VALUE(TN_DL_NULL, kDLExtDev);

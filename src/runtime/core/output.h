// Output tensors of a call.
#pragma once

#include "tenon/ffi_types.h"

namespace tenon::runtime {

/// A new compact tensor of our own make; 0, or -1 + error.
using MakeTensorFn = int32_t (*)(tn_dl_data_type dtype, int32_t ndim, const int64_t* shape,
                                 tn_dl_device device, tn_ffi_tensor** out);

/// As tn_core_tensor_alloc, on a device; `make` where no framework has set an allocator.
int32_t AllocateOutput(int32_t dtype_packed, int32_t ndim, const int64_t* shape,
                       tn_dl_device device, MakeTensorFn make, tn_ffi_any* out, void** out_data);

}  // namespace tenon::runtime

// Code with a DLPack of its own on the path: that one counts, wherever it stands there.
#include <dlpack/dlpack.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/ndarray.h>

#ifndef DLPACK_MAJOR_VERSION  // the stand-in has none
#error "the DLPack of the path was passed over"
#endif

int main() {
  DLTensor tensor = {};
  tensor.device = DLDevice{kDLCPU, 0};
  tensor.dtype = DLDataType{kDLFloat, 32, 1};
  const DLManagedTensorVersioned* versioned = nullptr;
  return versioned == nullptr && tensor.ndim == 0 ? 0 : 1;
}

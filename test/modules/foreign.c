/* Libraries that the loader must refuse. */
#include "tenon/kernel_abi.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int32_t __tvm_ffi_main(void) { return 0; }

#ifdef TEST_NEXT_VERSION
EXPORT const void* __tenon_query_v6(void) { return 0; }
#endif
#ifdef TEST_OTHER_ABI
EXPORT const tn_module_info* __tenon_query_v5(void) {
  static const tn_module_info info = {7, sizeof info};
  return &info;
}
#endif

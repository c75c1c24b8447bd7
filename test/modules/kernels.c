/* Kernels y = 2 x of one tensor into another, of which all but the first misbehave: what those who
 * measure kernels must survive. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "tenon/kernel_abi.h"

#define UNUSED __attribute__((unused))
#define KERNEL(name)                                                             \
  __attribute__((visibility("default"))) int32_t __tvm_ffi_##name(               \
      UNUSED void* self, UNUSED const tn_ffi_any* args, UNUSED int32_t num_args, \
      UNUSED tn_ffi_any* result)

const char tn_blob_info[] = "{\"abi\": 1, \"name\": \"good\", \"functions\": []}";
const uint64_t tn_blob_info_size = sizeof tn_blob_info - 1;
tn_instances tn_main_instances;

static const tn_dl_tensor* tensor_of(const tn_ffi_any* value) {
  return &((tn_ffi_tensor*)value->u.v_obj)->dl_tensor;
}

/* Elements from `from` to n + `beyond`, times `factor`. */
static int32_t run(const tn_ffi_any* args, int64_t from, int64_t beyond, float factor) {
  const tn_dl_tensor* x = tensor_of(&args[0]);
  const tn_dl_tensor* y = tensor_of(&args[1]);
  const float* in = x->data;
  float* out = y->data;
  const int64_t n = x->shape[0];
  for (int64_t i = from; i < n + beyond; ++i) out[i] = factor * in[i < 0 || i >= n ? 0 : i];
  return 0;
}

KERNEL(good) { return run(args, 0, 0, 2); }
KERNEL(slow) {
  for (int i = 0; i < 50; ++i) run(args, 0, 0, 2);
  return 0;
}
KERNEL(wrong) { return run(args, 0, 0, 2.01f); }
KERNEL(beside) { return run(args, 0, 1, 2); }    /* in what aligns the operand */
KERNEL(beyond) { return run(args, 0, 1000, 2); } /* on the page behind it */
KERNEL(before) { return run(args, -100, 0, 2); } /* and on the one in front */
KERNEL(crash) {
  *(volatile int*)8 = 1;
  return 0;
}
KERNEL(leave) { _exit(0); }
KERNEL(ponder) {
  usleep(1500000);
  return run(args, 0, 0, 2);
}
KERNEL(hang) {
  for (volatile int i = 0;; ++i) {
  }
}
KERNEL(greedy) {
  const size_t bytes = (size_t)1 << 30;
  for (int i = 0; i < 64; ++i) {
    char* memory = malloc(bytes);
    if (!memory) abort();
    for (size_t k = 0; k < bytes; k += 4096) ((volatile char*)memory)[k] = 1;
  }
  return 0;
}

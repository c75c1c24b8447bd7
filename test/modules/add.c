/* A module as code generation would make it, by hand: main(a: Tensor([n], float32), b: Tensor([n],
 * float32)) -> c = a + b
 * + w, where w[i % 4] are the first four weights. It borrows an arena, runs a team with a barrier
 * in it, returns or fills its output, and raises errors; further exports poke at single functions
 * of the core. */
#include "tenon/kernel_abi.h"

#define EXPORT __attribute__((visibility("default")))

#ifndef TEST_NAME
#define TEST_NAME "main"
#endif

const char tn_blob_info[] =
    "{\"abi\": 1, \"name\": \"" TEST_NAME "\", \"functions\": [{\"name\": \"" TEST_NAME
    "\", \"inputs\": ["
    "{\"name\": \"a\", \"dtype\": \"float32\", \"shape\": [\"n\"]}, "
    "{\"name\": \"b\", \"dtype\": \"float32\", \"shape\": [\"n\"]}], \"outputs\": ["
    "{\"name\": \"c\", \"dtype\": \"float32\", \"shape\": [\"n\"]}]}], \"arena_bytes\": 4096, "
    "\"metadata\": {\"character\": \"a\\nb\\u00e9\\ud83d\\ude00\\\"\\\\\", \"empty\": \"\", "
    "\"number\": 7}}";
const uint64_t tn_blob_info_size = sizeof tn_blob_info - 1;
tn_instances tn_main_instances;

#ifdef TEST_CPU_REQUIRED
const char tn_cpu_required[] = TEST_CPU_REQUIRED;
#endif

#define WEIGHT(i) (tn_weights_size >= 16 ? ((const float*)tn_weights_base)[(i) % 4] : 0.0f)

static const char signature[] =
    "\nwhen calling: `main(a: Tensor([n], float32), b: Tensor([n], float32))`";

typedef struct {
  const float *a, *b;
  float *c, *scratch;
  int64_t n;
} closure_t;

/* First a + b into scratch, then, behind a barrier, from the other end: every worker reads what
 * others wrote. */
static int32_t body(void* data, int32_t rank, int32_t size, tn_team* team) {
  closure_t* x = data;
  for (int64_t i = x->n * rank / size; i < x->n * (rank + 1) / size; ++i) {
    x->scratch[i] = x->a[i] + x->b[i];
  }
  tn_core_barrier(team);
  rank = size - 1 - rank;
  for (int64_t i = x->n * rank / size; i < x->n * (rank + 1) / size; ++i) {
    x->c[i] = x->scratch[i] + WEIGHT(i);
  }
  return 0;
}

static tn_dl_tensor* tensor_of(const tn_ffi_any* value) {
  if (value->type_index == TN_FFI_TENSOR) return &((tn_ffi_tensor*)value->u.v_obj)->dl_tensor;
  if (value->type_index == TN_FFI_DL_TENSOR_PTR) return value->u.v_ptr;
  return 0;
}

static const float* data_of(const tn_dl_tensor* tensor) {
  return (const float*)((uintptr_t)tensor->data + tensor->byte_offset); /* data may be NULL */
}

static int32_t check(const char* name, const tn_dl_tensor* tensor, int32_t type_index, int64_t n) {
  tn_msg_part parts[6] = {{0, 0, {"Parameter `"}}, {0, 0, {name}}};
  if (!tensor) {
    parts[2] = (tn_msg_part){0, 0, {"` expects tensor but got type_index="}};
    parts[3] = (tn_msg_part){TN_MSG_INT, 0, {.i = type_index}};
    parts[4] = (tn_msg_part){0, 0, {signature}};
    return tn_core_raise("TypeError", parts, 5);
  }
  if (tensor->ndim != 1) {
    parts[2] = (tn_msg_part){0, 0, {"` expects ndim=1 but got ndim="}};
    parts[3] = (tn_msg_part){TN_MSG_INT, 0, {.i = tensor->ndim}};
    parts[4] = (tn_msg_part){0, 0, {signature}};
    return tn_core_raise("ValueError", parts, 5);
  }
  if (tensor->shape[0] != n) {
    tn_msg_part mismatch[] = {{0, 0, {"Shape mismatch: n="}},
                              {TN_MSG_INT, 0, {.i = n}},
                              {0, 0, {" (from a.shape[0]) but b.shape[0]="}},
                              {TN_MSG_INT, 0, {.i = tensor->shape[0]}},
                              {0, 0, {signature}}};
    return tn_core_raise("ValueError", mismatch, 5);
  }
  return 0;
}

static int32_t run(closure_t* closure) {
  closure->scratch = tn_core_arena_acquire(&tn_main_instances, closure->n * 4);
  if (!closure->scratch) return -1;
  int32_t status = tn_core_run_team(body, closure, 0);
  tn_core_arena_release(&tn_main_instances, closure->scratch);
  return status;
}

EXPORT int32_t __tvm_ffi_main(void* self, const tn_ffi_any* args, int32_t num_args,
                              tn_ffi_any* result) {
  (void)self;
  if (tn_core_check_cpu() != 0) return -1;
  if (num_args != 2 && num_args != 3) {
    tn_msg_part parts[] = {{0, 0, {"Expects 2 or 3 arguments but got "}},
                           {TN_MSG_INT, 0, {.i = num_args}},
                           {0, 0, {signature}}};
    return tn_core_raise("TypeError", parts, 3);
  }
  const tn_dl_tensor *a = tensor_of(&args[0]), *b = tensor_of(&args[1]);
  if (check("a", a, args[0].type_index, a && a->ndim == 1 ? a->shape[0] : 0) != 0) return -1;
  if (check("b", b, args[1].type_index, a->shape[0]) != 0) return -1;
  closure_t closure = {data_of(a), data_of(b), 0, 0, a->shape[0]};
  if (num_args == 3) {
    closure.c = (float*)data_of(tensor_of(&args[2]));
    return run(&closure);
  }
  tn_ffi_any output;
  void* data;
  if (tn_core_tensor_alloc(TN_DL_FLOAT | 32 << 8 | 1 << 16, 1, a->shape, &output, &data) != 0) {
    return -1;
  }
  closure.c = data;
  if (run(&closure) != 0) {
    tn_core_release(&output);
    return -1;
  }
  return tn_core_return(&output, 1, result);
}

/* outputs(n: int) -> n tensors of n elements each. */
EXPORT int32_t __tvm_ffi_outputs(void* self, const tn_ffi_any* args, int32_t num_args,
                                 tn_ffi_any* result) {
  (void)self, (void)num_args;
  tn_ffi_any outputs[8];
  int32_t n = (int32_t)args[0].u.v_int64;
  for (int32_t i = 0; i < n; ++i) {
    int64_t shape[2] = {n, i};
    void* data;
    if (tn_core_tensor_alloc(TN_DL_INT | 64 << 8 | 1 << 16, 2, shape, &outputs[i], &data) != 0)
      return -1;
    for (int32_t j = 0; j < n * i; ++j) ((int64_t*)data)[j] = j;
  }
  return tn_core_return(outputs, n, result);
}

static int32_t failing_body(void* data, int32_t rank, int32_t size, tn_team* team) {
  (void)size, (void)team;
  if (rank < *(int64_t*)data) return 0;
  tn_msg_part parts[] = {{0, 0, {"index out of range in worker "}}, {TN_MSG_INT, 0, {.i = rank}}};
  return tn_core_raise("IndexError", parts, 2);
}

/* fail(from: int): the workers of rank >= from fail. */
EXPORT int32_t __tvm_ffi_fail(void* self, const tn_ffi_any* args, int32_t num_args,
                              tn_ffi_any* result) {
  (void)self, (void)num_args, (void)result;
  int64_t from = args[0].u.v_int64;
  return tn_core_run_team(failing_body, &from, 0);
}

static int32_t size_body(void* data, int32_t rank, int32_t size, tn_team* team) {
  (void)team;
  if (rank == 0) *(int64_t*)data = size;
  return 0;
}

/* team() -> the size of the team it got. */
EXPORT int32_t __tvm_ffi_team(void* self, const tn_ffi_any* args, int32_t num_args,
                              tn_ffi_any* result) {
  (void)self, (void)args, (void)num_args;
  result->type_index = TN_FFI_INT;
  result->padding = 0;
  return tn_core_run_team(size_body, &result->u.v_int64, 0);
}

/* arena(bytes: int) -> the arena's address; it is given back at once. */
EXPORT int32_t __tvm_ffi_arena(void* self, const tn_ffi_any* args, int32_t num_args,
                               tn_ffi_any* result) {
  (void)self, (void)num_args;
  void* arena = tn_core_arena_acquire(&tn_main_instances, args[0].u.v_int64);
  if (!arena) return -1;
  tn_core_arena_release(&tn_main_instances, arena);
  result->type_index = TN_FFI_INT;
  result->padding = 0;
  result->u.v_int64 = (int64_t)(uintptr_t)arena;
  return 0;
}

/* weight(offset: int) -> the byte of the weights there. */
EXPORT int32_t __tvm_ffi_weight(void* self, const tn_ffi_any* args, int32_t num_args,
                                tn_ffi_any* result) {
  (void)self, (void)num_args;
  result->type_index = TN_FFI_INT;
  result->padding = 0;
  result->u.v_int64 = tn_weights_base[args[0].u.v_int64];
  return 0;
}

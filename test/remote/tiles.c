/* tiles FOLDER: products in the tiles of AMX, on a machine that has them (make_tiles.py makes the
 * folder). Each function of amx.so must give the very bytes that plain.so gives, which computes
 * what the intrinsics mean without them; then the products of matrices are timed. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tenon/kernel_abi.h"

enum { kTensors = 4, kTurns = 300, kSize = 1024 };

static uint64_t state = 88172645463325252u;
static uint32_t Random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 32);
}

typedef struct Shape {
  uint8_t code, bits;
  int64_t dims[4];
  int32_t ndim;
} Shape;

static tn_dl_tensor Tensor(const Shape* shape) {
  int64_t count = 1;
  for (int i = 0; i < shape->ndim; ++i) count *= shape->dims[i];
  void* data = aligned_alloc(64, (size_t)(count * shape->bits / 8 + 63) / 64 * 64);
  return (tn_dl_tensor){
      data, {TN_DL_CPU, 0}, shape->ndim, {shape->code, shape->bits, 1}, (int64_t*)shape->dims, NULL,
      0};
}

static size_t BytesOf(const tn_dl_tensor* t) {
  size_t bytes = t->dtype.bits / 8;
  for (int i = 0; i < t->ndim; ++i) bytes *= (size_t)t->shape[i];
  return bytes;
}

/* Bytes of any value; floats among which are denormals, infinities and NaNs where `special`. */
static void Fill(tn_dl_tensor* t, int special) {
  static const uint16_t kSpecial[] = {0,      0x8000, 0x7f80, 0xff80, 0x7fc0, 1,      0x8001,
                                      0x7f,   0x80,   0x8080, 0x3f80, 0xbf80, 0x7f7f, 0xff7f,
                                      0x2000, 0x2040, 0x1f80, 0x9f81, 0x6000};
  const size_t size = t->dtype.bits / 8, bytes = BytesOf(t);
  for (size_t at = 0; at < bytes; at += size) {
    uint32_t bits = Random();
    if (t->dtype.code == TN_DL_FLOAT || t->dtype.code == TN_DL_BFLOAT) {
      uint32_t high = 0x3f00 + Random() % 0x200 + (Random() % 2 << 15);
      if (special && Random() % 4 == 0) high = Random() & 0xffff;
      if (special && Random() % 8 == 0) high = kSpecial[Random() % (sizeof kSpecial / 2)];
      if (special && Random() % 8 == 0) high = 0x1f00 + Random() % 0x200 + (Random() % 2 << 15);
      bits = size == 2 ? high : high << 16 | (Random() & 0xffff);
    }
    memcpy((char*)t->data + at, &bits, size);
  }
}

static void* Open(const char* folder, const char* name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) printf("%s\n", dlerror()), exit(1);
  return library;
}

static const char* ErrorOf(void* library) {
  const char* kind = "";
  tn_query_fn query = (tn_query_fn)(intptr_t)dlsym(library, TN_QUERY_SYMBOL);
  return query ? query()->last_error(&kind) : "no query symbol";
}

static void Call(void* library, const char* name, tn_dl_tensor* tensors, int count) {
  char symbol[64];
  snprintf(symbol, sizeof symbol, "__tvm_ffi_%s", name);
  tn_packed_fn f = (tn_packed_fn)(intptr_t)dlsym(library, symbol);
  if (!f) printf("%s\n", dlerror()), exit(1);
  tn_ffi_any args[kTensors], result = {TN_FFI_NONE, 0, {0}};
  for (int i = 0; i < count; ++i) {
    args[i] = (tn_ffi_any){TN_FFI_DL_TENSOR_PTR, 0, {0}};
    args[i].u.v_ptr = &tensors[i];
  }
  if (f(NULL, args, count, &result) != 0) printf("%s: %s\n", name, ErrorOf(library)), exit(1);
}

/* NaNs differ in nothing that the meaning says. */
static int Same(const tn_dl_tensor* a, const tn_dl_tensor* b) {
  if (a->dtype.code != TN_DL_FLOAT) return memcmp(a->data, b->data, BytesOf(a)) == 0;
  const float *x = a->data, *y = b->data;
  for (size_t i = 0; i < BytesOf(a) / 4; ++i) {
    if (memcmp(&x[i], &y[i], 4) != 0 && !(x[i] != x[i] && y[i] != y[i])) {
      return printf("element %zu: %a in tiles, %a by the meaning\n", i, x[i], y[i]), 0;
    }
  }
  return 1;
}

static int CheckProduct(void* amx, void* plain, const char* name, const Shape* shapes) {
  tn_dl_tensor tensors[kTensors], other;
  for (int i = 0; i < kTensors; ++i) tensors[i] = Tensor(&shapes[i]);
  other = Tensor(&shapes[kTensors - 1]);
  int wrong = 0;
  for (int turn = 0; turn < kTurns && wrong == 0; ++turn) {
    for (int i = 0; i < kTensors; ++i) Fill(&tensors[i], turn % 2);
    Call(amx, name, tensors, kTensors);
    tn_dl_tensor again[kTensors];
    memcpy(again, tensors, sizeof again);
    again[kTensors - 1] = other;
    Call(plain, name, again, kTensors);
    wrong = !Same(&tensors[kTensors - 1], &other);
  }
  printf("%-10s%s\n", name, wrong ? "WRONG" : "the results agree, to the bit");
  return wrong;
}

static double Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void Time(void* library, const char* name, const Shape* shapes) {
  enum { kInputs = 2 };
  tn_dl_tensor tensors[kInputs + 1];
  for (int i = 0; i <= kInputs; ++i) tensors[i] = Tensor(&shapes[i]);
  for (int i = 0; i < kInputs; ++i) Fill(&tensors[i], 0);
  double best = 1e9;
  for (int turn = 0; turn < 50; ++turn) {
    const double start = Now();
    Call(library, name, tensors, kInputs + 1);
    const double seconds = Now() - start;
    if (seconds < best) best = seconds;
  }
  printf("%-12s%8.3f ms %10.0f GOP/s\n", name, best * 1e3,
         2.0 * kSize * kSize * kSize / best / 1e9);
}

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : ".";
  void *amx = Open(folder, "amx.so"), *plain = Open(folder, "plain.so");
  enum { I = TN_DL_INT, U = TN_DL_UINT, F = TN_DL_FLOAT, B = TN_DL_BFLOAT };
  const Shape words[] = {{I, 32, {16, 20}, 2}, {I, 32, {16, 24}, 2}};
  const Shape floats[] = {{F, 32, {16, 20}, 2}, {F, 32, {16, 24}, 2}};
  const Shape u8[] = {{U, 8, {16, 72}, 2}, {I, 8, {16, 16, 4}, 3}, words[0], words[1]};
  const Shape i8[] = {{I, 8, {16, 72}, 2}, {I, 8, {16, 16, 4}, 3}, words[0], words[1]};
  const Shape bf16[] = {{B, 16, {16, 40}, 2}, {B, 16, {16, 16, 2}, 3}, floats[0], floats[1]};
  int wrong = CheckProduct(amx, plain, "tdpbusd", u8);
  wrong += CheckProduct(amx, plain, "tdpbssd", i8);
  wrong += CheckProduct(amx, plain, "tdpbf16ps", bf16);

  const Shape bytes[] = {{U, 8, {kSize, kSize}, 2},
                         {I, 8, {kSize / 16, kSize / 4, 16, 4}, 4},
                         {I, 32, {kSize, kSize}, 2}};
  const Shape halves[] = {{F, 32, {kSize, kSize}, 2},
                          {B, 16, {kSize / 16, kSize / 2, 16, 2}, 4},
                          {F, 32, {kSize, kSize}, 2}};
  printf("\n%d x %d x %d, B packed; TENON_NUM_THREADS=%s\n", kSize, kSize, kSize,
         getenv("TENON_NUM_THREADS") ? getenv("TENON_NUM_THREADS") : "all");
  Time(amx, "int8_tiles", bytes);
  Time(amx, "int8_vnni", bytes);
  Time(amx, "bf16_tiles", halves);
  Time(amx, "bf16_dot", halves);
  return wrong != 0;
}

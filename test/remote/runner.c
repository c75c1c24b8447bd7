/* runner LIBRARY: calls functions of a compiled library on the machine that this program was made
 * for, an emulated one as a rule, for tests that run elsewhere. Requests come on standard input,
 * answers go to standard output; integers are little-endian, as all machines here are.
 *
 *   request: u32 packed, u32 length of the name, the name, u32 number of tensors, u32 of integers,
 *            the tensors, the integers as i64
 *   tensor:  u32 dtype (code | bits << 8 | lanes << 16), u32 ndim, i64 dims…, u64 bytes, the bytes
 *   answer:  i32 status, then 0: the bytes of all tensors after the call; else u32 length, text
 *
 * With packed 0 the function is a plain one of addresses and integers, with 1 it has the packed
 * signature and gets the tensors as DLTensor. A tensor ends where memory ends that may be touched;
 * what lies before its start is looked at after the call. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tenon/kernel_abi.h"

enum { kMostTensors = 16, kMostInts = 8, kMostDims = 16 };

typedef struct Memory {
  unsigned char *start, *data;
  size_t bytes;
} Memory;

static void Die(const char* what) {
  fprintf(stderr, "runner: %s\n", what);
  exit(2);
}

static void Read(void* out, size_t bytes) {
  if (fread(out, 1, bytes, stdin) != bytes) Die("the request is cut short");
}

static uint32_t ReadU32(void) {
  uint32_t value;
  Read(&value, 4);
  return value;
}

static Memory Guarded(size_t bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t inner = (bytes + page - 1) / page * page;
  unsigned char* map = mmap(NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) Die("no memory");
  if (inner > 0 && mprotect(map + page, inner, PROT_READ | PROT_WRITE) != 0) Die("mprotect");
  memset(map + page, 0xFF, inner);
  Memory memory = {map + page, map + page + inner - bytes, bytes};
  return memory;
}

static void Free(Memory memory) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  munmap(memory.start - page, (size_t)(memory.data - memory.start) + memory.bytes + 2 * page);
}

static void Answer(int32_t status, const char* text) {
  const uint32_t length = (uint32_t)strlen(text);
  fwrite(&status, 4, 1, stdout);
  fwrite(&length, 4, 1, stdout);
  fwrite(text, 1, length, stdout);
}

/* All machines here pass eight integers and addresses in registers. */
static void CallPlain(void* f, const Memory* memory, uint32_t count, const int64_t* ints,
                      uint32_t num_ints) {
  int64_t a[kMostTensors + kMostInts] = {0};
  for (uint32_t i = 0; i < count; ++i) a[i] = (int64_t)(intptr_t)memory[i].data;
  for (uint32_t i = 0; i < num_ints; ++i) a[count + i] = ints[i];
  if (count + num_ints > 8) Die("too many arguments");
  typedef void (*Plain)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
  ((Plain)(intptr_t)f)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
}

static void Serve(void* library, uint32_t packed) {
  static char name[256];
  static tn_dl_tensor tensors[kMostTensors];
  static tn_ffi_any args[kMostTensors], result;
  static int64_t dims[kMostTensors][kMostDims], ints[kMostInts];
  Memory memory[kMostTensors];
  const uint32_t length = ReadU32();
  if (length >= sizeof name) Die("the name is too long");
  Read(name, length);
  name[length] = '\0';
  const uint32_t count = ReadU32(), num_ints = ReadU32();
  if (count > kMostTensors || num_ints > kMostInts) Die("too many arguments");
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t dtype = ReadU32(), ndim = ReadU32();
    uint64_t bytes;
    if (ndim > kMostDims) Die("too many dims");
    Read(dims[i], 8 * ndim);
    Read(&bytes, 8);
    memory[i] = Guarded((size_t)bytes);
    Read(memory[i].data, (size_t)bytes);
    tensors[i] =
        (tn_dl_tensor){memory[i].data, {TN_DL_CPU, 0}, (int32_t)ndim, {0, 0, 0}, dims[i], NULL, 0};
    memcpy(&tensors[i].dtype, &dtype, 4);
    args[i] = (tn_ffi_any){TN_FFI_DL_TENSOR_PTR, 0, {0}};
    args[i].u.v_ptr = &tensors[i];
  }
  Read(ints, 8 * num_ints);

  void* f = dlsym(library, name);
  if (!f) Die(dlerror());
  int32_t status = 0;
  if (packed) {
    status = ((tn_packed_fn)(intptr_t)f)(NULL, args, (int32_t)count, &result);
  } else {
    CallPlain(f, memory, count, ints, num_ints);
  }
  const char* fault = NULL;
  for (uint32_t i = 0; i < count; ++i) {
    for (unsigned char* p = memory[i].start; p < memory[i].data; ++p) {
      if (*p != 0xFF) fault = "written before the start of a tensor";
    }
  }
  if (status != 0) {
    tn_query_fn query = (tn_query_fn)(intptr_t)dlsym(library, TN_QUERY_SYMBOL);
    const char* kind;
    fault = query ? query()->last_error(&kind) : "failed";
  }
  if (fault) {
    Answer(status ? status : -2, fault);
  } else {
    fwrite(&status, 4, 1, stdout);
    for (uint32_t i = 0; i < count; ++i) fwrite(memory[i].data, 1, memory[i].bytes, stdout);
  }
  fflush(stdout);
  for (uint32_t i = 0; i < count; ++i) Free(memory[i]);
}

int main(int argc, char** argv) {
  if (argc != 2) Die("usage: runner LIBRARY");
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) Die(dlerror());
  uint32_t packed;
  while (fread(&packed, 4, 1, stdin) == 1) Serve(library, packed);
  return 0;
}

// Of C's library, what the core uses; src/runtime/wasm/libc.cc has it.
#pragma once
#include <stddef.h>

extern "C" {
/// Aligned to 64 bytes.
void* malloc(size_t size);
void free(void* memory);
}

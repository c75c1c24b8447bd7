// Of C's library, what the core uses; src/runtime/wasm/libc.cc has it.
#pragma once
#include <stddef.h>

extern "C" {
void* memcpy(void* to, const void* from, size_t size);
void* memmove(void* to, const void* from, size_t size);
void* memset(void* to, int byte, size_t size);
size_t strlen(const char* text);
size_t strnlen(const char* text, size_t most);
}

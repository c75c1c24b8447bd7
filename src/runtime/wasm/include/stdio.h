// Of C's library, what the core uses; src/runtime/wasm/libc.cc has it.
#pragma once
#include <stdarg.h>
#include <stddef.h>

extern "C" {
/// %s, %d, %u, %lld and %g (six digits), without widths.
int snprintf(char* out, size_t size, const char* format, ...);
int vsnprintf(char* out, size_t size, const char* format, va_list args);
}

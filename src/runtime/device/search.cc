#include "runtime/device/search.h"

#include <dlfcn.h>
#include <string.h>

namespace tenon::runtime {

const char* BindSymbols(void* handle, const char* symbols, void* functions) {
  auto* at = static_cast<char*>(functions);
  for (; *symbols; symbols += strlen(symbols) + 1, at += sizeof(void*)) {
    void* const found = dlsym(handle, symbols);
    if (!found) return symbols;
    memcpy(at, &found, sizeof found);
  }
  return nullptr;
}

}  // namespace tenon::runtime

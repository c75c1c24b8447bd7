// The copies of the runtime and of the core that are in this process: of a library that was loaded,
// of an object that the program or a plugin is linked with, of a runtime that is shared or static.
// Each bears an ELF note that leads to its services (TN_NOTE in kernel_abi.h), so that they are
// found whatever symbols are visible, in static programs too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tenon/kernel_abi.h"

namespace tenon::runtime {

struct Copy {
  static constexpr size_t kPathBytes = 4096;
  const tn_host_services* services;
  bool stays;             // its code is this copy's own library's, or the program's
  bool beside;            // it is in the same program or library as this copy
  char path[kPathBytes];  // of its library
};

/// The copy with this number among those of a kind (TN_NOTE_…) and of this ABI version, in the
/// order in which they were loaded; false behind the last.
bool FindCopy(uint32_t kind, int32_t number, Copy* out);

/// Keeps a copy's code mapped until Release(*out_hold), which null may be; false where it is gone.
bool Hold(const Copy& copy, void** out_hold);
void Release(void* hold);

}  // namespace tenon::runtime

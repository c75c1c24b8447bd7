// Weights in a file of their own (--params separate).
#pragma once

#include <cstdint>

namespace tenon::runtime {

/// Maps the library's file of weights over its weight segment, where it has one and that has not
/// been done. 0, or -1 with the error set.
int32_t MapParams();

}  // namespace tenon::runtime

// Arrays that a function has on its stack, in registers or in shared memory: how large they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "loop/stmt.h"

namespace tenon::codegen {

inline constexpr int64_t kMaxArrayBytes = 256 * 1024;

/// The elements of an allocation that becomes an array; nothing where it has no constant size or
/// more than kMaxArrayBytes.
std::optional<int64_t> ArrayElements(const Buffer& buffer);
/// Why there are none, and what a schedule does about it.
std::string WhyNoArray(const Buffer& buffer);

}  // namespace tenon::codegen

// Memory that a device reaches besides its own.
#pragma once

#include <cstdint>
#include <span>

namespace tenon {

/// The DLDeviceTypes of memory, pinned or managed, that every device of this type reaches at the
/// address that the host has.
std::span<const int64_t> ReachedBy(int64_t device_type);

}  // namespace tenon

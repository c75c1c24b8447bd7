// Where a call of a program whose parts run on a device waits for that device.
#pragma once

#include <vector>

#include "graph/program.h"

namespace tenon::graph {

struct Waits {
  int64_t places = 0;
  int64_t in_loops = 0;  // of those
};

/// Places where a value is brought from the device to the host or back, which the runtime waits for
/// (runtime/values/places.h), for arguments on the device; and what each call of a part waits for
/// in itself, which `of_parts` says. What may be on either side counts as on the wrong one.
Waits DeviceWaits(const Program& program, const std::vector<Waits>& of_parts);

}  // namespace tenon::graph

// One description of what several objects of Library::Save hold, for a library that is linked of
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/expected.h"

namespace tenon::driver {

/// An object whose query symbol, which is not weak as theirs are, names the functions of all and
/// the features that their code needs. Files that are no objects of ours are passed over; "" where
/// fewer than two are. Errors: objects for different machines.
Expected<std::string> DescribeObjects(const std::vector<std::string_view>& images);

}  // namespace tenon::driver

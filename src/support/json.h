// Reading JSON that somebody else wrote. Writing uses nlohmann::json directly.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "support/expected.h"

namespace tenon {

/// Parses one JSON value. Errors carry line and column in `file` (only named, not read). Nesting
/// deeper than `max_depth` is a limit error, because copying and printing a value recurse.
Expected<nlohmann::json> ParseJson(std::string_view text, const std::string& file = "",
                                   int max_depth = 64);

}  // namespace tenon

// What messages about the same fault have in common.
#pragma once

#include <string>

namespace tenon::tools {

/// The message without quoted names, numbers and paths, cut to a length: equal for a fault of a
/// model and of a smaller one.
std::string GistOf(const std::string& message);

}  // namespace tenon::tools

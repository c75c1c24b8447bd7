// Numbers among the words of the command line.
#pragma once

#include "cli.h"

namespace tenon::tools {

/// Takes finite numbers from `least` on.
CLI::Validator AtLeast(double least);

}  // namespace tenon::tools

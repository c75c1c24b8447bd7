// lld, in this process.
#pragma once

#include <string>
#include <vector>

#include "support/expected.h"

namespace tenon::artifact {

/// Runs ld.lld or wasm-ld, as `linker` says, with these arguments. One at a time per process: lld
/// keeps global state, so this waits for its turn. A malformed ELF input may end the process: pass
/// only objects that we made. Errors carry lld's text.
Status RunLld(const char* linker, const std::vector<std::string>& arguments);

}  // namespace tenon::artifact

// Reading statements, functions and modules back from their text; loop/print.h describes the
// language. What is read is well-typed and defined before use; what else must hold is the
// verifier's business (loop/verify.h).
//
// Errors carry line and column in `file` (only named, not read); up to 20 are reported in one run.
// No text makes these functions crash, recurse without bound or use more than a small multiple of
// its size.
#pragma once

#include <string>
#include <string_view>

#include "ir/parse.h"
#include "loop/func.h"

namespace tenon {

Expected<Module> ParseModule(std::string_view text, const std::string& file = "");
/// A text of one function.
Expected<Func> ParseFunc(std::string_view text, const std::string& file = "");

}  // namespace tenon

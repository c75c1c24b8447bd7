// Reading expressions back from their text (ir/print.h describes it). Functions and modules:
// loop/parse.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/buffer.h"
#include "support/expected.h"

namespace tenon {

/// The expression that `text` is. Variables and buffers are looked up by name in `scope`; an
/// untyped literal takes the type of the other operand, index failing that. Errors carry line and
/// column in `file` (only named, not read).
Expected<Expr> ParseExpr(std::string_view text, const std::vector<NodeRef>& scope = {},
                         const std::string& file = "");

}  // namespace tenon

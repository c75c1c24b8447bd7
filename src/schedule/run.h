// The table of primitives: how a step of a trace, arguments as plain values, becomes a call.
#pragma once

#include <string_view>

#include "schedule/analysis/state.h"

namespace tenon::primitive {

using Args = std::vector<AttrValue>;
using RunFn = Result (*)(State&, const Args&);

struct PrimitiveRow {
  const char* name;
  RunFn run;
  bool places_blocks;
};
/// The primitive of this name, or null.
const PrimitiveRow* FindPrimitive(std::string_view name);
Names PrimitiveNames();

/// The scope that a text names, of those that a schedule may ask for; the error is the rest of a
/// message, ": expected …".
Expected<Scope> ScopeArg(const std::string& word);

/// Arguments that are not plain values travel as their text.
AttrValue ToArg(const Expr& condition);
AttrValue ToArg(const Layout& layout);

}  // namespace tenon::primitive

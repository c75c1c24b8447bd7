// Values that are met again, by name.
#pragma once

#include "loop/func.h"

namespace tenon {

/// The function, its values computed as before. Expressions are graphs, whose parts may have
/// several parents: polynomials of polynomials, written out, have millions of nodes, and so has
/// their text, which keys of caches are made of. Where a store's value would be that long, parts
/// that are met again become variables in front of it (`let`), but for what is only computed where
/// a select asks for it and may not be computed otherwise: loads, and integer arithmetic that can
/// fail.
Func NameShared(const Func& func);

}  // namespace tenon

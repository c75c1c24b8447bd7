// What the author of a schedule promises, where it cannot be shown.
#pragma once

namespace tenon {

/// Of a loop: no iteration touches an element that another one writes, but for memory that each
/// has for itself. Primitives take it for granted; the interpreter fails where it is not so. Parts
/// of the loop (split, partition) keep the promise; a fused one has it where all of its loops do.
inline constexpr char kIndependentAttr[] = "assume_independent";

}  // namespace tenon

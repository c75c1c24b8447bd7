// expand_float8: arithmetic of 8-bit floats becomes that of f32, rounded once, and conversions from
// and to them become arithmetic on bits.
//
// Needs: nothing. Ensures: values of these types are loaded, stored, chosen, constant, and
// reinterpreted as bytes; nothing else is done with them. Why at the end: a conversion shares its
// parts by pointer (a DAG, some 20 nodes), as those of expand_math do, which follows, since the
// functions of such floats are f32's afterwards.
//
// How: a number is its digits, an integer, times a power of two, whose exponent field is that of
// the bytes moved; it is exact. Rounding adds what carries into the last bit that stays, and below
// the smallest normal number it is that of the number in steps of the smallest; from f64 there is
// no f32 in between, so that nothing is rounded twice.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module ExpandFloat8(const Module& module, const PassContext& context);

}  // namespace tenon

// What tells the languages of the C family apart, as data: one table per language. The emitters of
// source (source_expr.h, source_function.h) are shared; a language is a Language and a file layout.
#pragma once

#include <span>

#include "ir/expr.h"

namespace tenon::codegen {

/// The name of a scalar type. f16 and bf16 are their bits; bool in memory is u8.
struct TypeSpelling {
  DType type;
  const char* name;
};

/// A function of the language's library that computes an intrinsic of floats.
struct MathSpelling {
  Intrinsic intrinsic;
  const char* f32;
  const char* f64;
};

struct Language {
  const char* name;            // for messages
  const char* helper;          // qualifiers of a helper function
  const char* hidden;          // of a function that this source alone calls
  const char* visible;         // of an exported one
  const char* restrict_word;   // of a pointer that nothing else aliases
  const char* copy;            // copies bytes: (to, from, count)
  const char* reserved_words;  // besides those of C, separated by blanks
  std::span<const TypeSpelling> types;
  std::span<const MathSpelling> math;

  /// The element type's name; null where the language has none. `index` is a signed integer of 64
  /// bits, a handle a pointer to void.
  const char* TypeName(DType type) const;
  /// The library function for an intrinsic on f32 or f64; null where there is none.
  const char* MathName(Intrinsic intrinsic, DType type) const;
};

}  // namespace tenon::codegen

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
  const char* approximate_f32 = nullptr;  // where `fp: reassoc` allows it; null: f32 does
};

/// A type that moves so many bytes at once, from and to addresses that are a multiple of them.
struct WideSpelling {
  int64_t bytes;
  const char* name;
  const char* of_f32;  // for memory of f32, so that it is never seen as another type
};

/// A row of helpers.cc, or a language's own in its place.
struct HelperRow {
  const char* family;
  unsigned classes;  // of HelperClass: the types it is for
  const char* text;
  const char* needs = "";  // "family:type:from …": helpers that the text calls
};

/// A thread axis, and the expression that is a thread's place on it.
struct AxisSpelling {
  ThreadAxis axis;
  const char* text;
};

/// An atomic update: `function(pointer to type, value)`; null: the helper atomic_OP, for languages
/// with address spaces atomic_OP_global and atomic_OP_shared.
struct AtomicSpelling {
  BinaryOp op;
  DType type;
  const char* function;
  const char* memory;  // the type that the function works on
};

/// Text that a file begins with where it mentions one of the words (separated by blanks).
struct PreambleSpelling {
  const char* words;
  const char* text;
};

/// Warps with work of their own, barriers that they and asynchronous copies meet at, and the
/// copies' sources.
struct RolesSpelling {
  const char* warp;            // the number of a thread's warp in its block
  const char* more_registers;  // of a warpgroup: {} for each thread from now on
  const char* fewer_registers;
  const char* threads;     // as GpuSpelling has it, of a kernel that says how many registers
  const char* tensor_map;  // the type of a description of memory
  const char* map_param;   // of a kernel: {} is its name
  const char* fetch_map;   // by one thread, before it is used: {} is its name
  const char* arrive;      // statements: {0} the barrier's address, {1} the value
  const char* expect;
  const char* wait;
};

/// What a language has whose functions are run by the threads of a GPU. Null in a Language: they
/// are run by one worker.
struct GpuSpelling {
  const char* shared;          // qualifier of a block's memory
  const char* dynamic_shared;  // the name of the array whose size a launch gives; null: none
  const char*
      threads;  // of a kernel: {0} threads in a block, {1} along x, {2} along y, {3} along z
  const char* global_space;  // before the type of pointers to global memory; "" where any will do
  const char* shared_space;
  bool shared_first;  // shared arrays stand at the beginning of a kernel
  std::span<const AxisSpelling> axes;
  const char* sync_cta;
  const char* sync_warp;               // null: threads of a warp cannot wait for each other alone
  const char* sync_cluster = nullptr;  // and blocks of a cluster, and all blocks, not at all
  const char* sync_grid = nullptr;
  // A serial loop with a barrier inside must not end in a branch: it gets one more barrier there.
  bool barrier_ends_loop = false;
  const char* fence_cta;  // null, and below: there is no such order
  const char* fence_grid;
  std::span<const AtomicSpelling> atomics;
  const char* preamble;  // what every file begins with
  std::span<const PreambleSpelling> preambles;
  const RolesSpelling* roles = nullptr;  // null: it has none
};

struct Language {
  const char* name;            // for messages
  const char* helper;          // qualifiers of a helper function
  const char* hidden;          // of a function that this source alone calls
  const char* visible;         // of an exported one
  const char* restrict_word;   // of a pointer that nothing else aliases
  const char* copy;            // copies bytes: (to, from, count); null: elements are copied
  const char* align;           // of a declaration, before its type; {} are bytes
  const char* unroll;          // a line before a loop that must be unrolled; null: none
  const char* divide;          // approximates a quotient of f32; null: none
  const char* remainder_f32;   // of a quotient rounded towards zero
  const char* reserved_words;  // besides those of C, separated by blanks
  std::span<const TypeSpelling> types;
  std::span<const MathSpelling> math;
  std::span<const WideSpelling> wide;  // the widest first; empty: lanes move one by one
  std::span<const HelperRow> helpers;  // come before those of helpers.cc
  const GpuSpelling* gpu = nullptr;

  /// The element type's name; null where the language has none. `index` is a signed integer of 64
  /// bits, a handle a pointer to void.
  const char* TypeName(DType type) const;
  /// The library function for an intrinsic on f32 or f64; null where there is none.
  const char* MathName(Intrinsic intrinsic, DType type, bool approximate) const;
};

}  // namespace tenon::codegen

/* Programs: how a library computes with values that are no tensors of numbers.
 *
 * Such a network is compiled in parts, each an ordinary function of tensors, and a program says
 * what happens between them: steps on strings, sequences and optional values, branches and loops.
 * The compiler writes it as data of the library (tn_blob_program), and tn_program_call, which only
 * such libraries carry, runs it.
 *
 * Values live in slots. A slot holds None, a tensor, or an ffi.Array (a sequence). The elements of
 * a tensor of strings are numbers of 64 bits: equal strings have equal numbers during a call, those
 * of the program's own strings always, so kernels move and compare strings without knowing it. Only
 * where values enter and leave a call are they strings: there a tensor of strings is an ffi.Array
 * of its shape (an ffi.Array of ints, or an ffi.Shape) and an ffi.Array of its elements in
 * row-major order; and a map is an ffi.Array of its keys and an ffi.Array of its values.
 *
 * Encoding: words of 32 bits, in this order.
 *   program = TN_PROGRAM_MAGIC, number of slots, number of strings, their lengths in bytes,
 *             number of inputs, for each its slot, its name and its type,
 *             frame, number of outputs, for each its slot and its type, the strings' bytes
 *   name    = its length in bytes, as many bytes, filled up to whole words
 *   type    = TN_TYPE_TENSOR dtype (a tn_dl_data_type) | TN_TYPE_STRINGS
 *             | TN_TYPE_SEQUENCE type | TN_TYPE_OPTIONAL type
 *             | TN_TYPE_MAP type-of-keys type-of-values
 *   frame   = number of steps, steps
 *   step    = operation, number of words that follow, list of input slots (-1: left out), list of
 *             output slots (-1: not wanted), list of numbers, number of bodies, bodies
 *   body    = list of the slots that its inputs come in, list of those of its results, frame
 *   list    = number of entries, entries */
#ifndef TENON_PROGRAM_ABI_H_
#define TENON_PROGRAM_ABI_H_

#include "tenon/ffi_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_PROGRAM_MAGIC 0x32504e54 /* "TNP2" */

enum { TN_TYPE_TENSOR, TN_TYPE_STRINGS, TN_TYPE_SEQUENCE, TN_TYPE_OPTIONAL, TN_TYPE_MAP };

/* Operations. Numbers of a step are given in brackets; strings are numbers of the program's. */
enum {
  TN_STEP_PART, /* [part]: a function of the library */
  TN_STEP_MOVE, /* the input as it is */
  TN_STEP_IF,   /* condition; two bodies */
  TN_STEP_LOOP, /* [carried; of each collected result: dtype, rank, dims] trip count or none,
                   condition or none, carried values; the body takes number, condition, carried
                   and gives condition, carried, collected */
  TN_STEP_MAP,  /* [for each input: whether it is a sequence] the body takes an element of each */
  TN_STEP_SEQUENCE,         /* of its inputs */
  TN_STEP_AT,               /* sequence, position */
  TN_STEP_INSERT,           /* sequence, value, position or none */
  TN_STEP_ERASE,            /* sequence, position or none */
  TN_STEP_LENGTH,           /* sequence */
  TN_STEP_SPLIT,            /* [axis, keepdims] tensor, sizes or none */
  TN_STEP_JOIN,             /* [axis, new_axis] sequence */
  TN_STEP_NONE,             /* an optional value that is not there */
  TN_STEP_HAS,              /* optional */
  TN_STEP_GET,              /* optional */
  TN_STEP_STRING_CONCAT,    /* two tensors, which broadcast */
  TN_STEP_STRING_SPLIT,     /* [delimiter or -1, maxsplit or -1] */
  TN_STEP_STRING_NORMALIZE, /* [0 none 1 lower 2 upper, case sensitive, stopwords…] */
  TN_STEP_REGEX,            /* [pattern] */
  TN_STEP_TO_STRING,        /* numbers as text */
  TN_STEP_FROM_STRING,      /* [dtype] */
  TN_STEP_STRING_RANKS,     /* strings: for each its place among the distinct ones in the order of
                               their bytes; and those */
  TN_STEP_ZIP_MAP,          /* keys, rows of values */
  TN_STEP_MAP_ROW,          /* map, keys, a value for those that it lacks or
                               none, which is 0: a row of values */
  TN_STEP_MAP_VALUES,       /* map: a row of its values in the order of keys */
  TN_STEP_BY_RANK,          /* [the tensor's name, a rank for each body] tensor; a body for each
                               of the ranks that there may be */
  TN_STEP_FAIL,             /* [text]: what the call's error says */
  TN_STEP_BY_LENGTH,        /* the same by the length of a vector */
  TN_STEP_COUNT
};

/* Which inputs a step reads by itself, as bits: all from the third on alike. Others it hands on, or
 * asks for nothing but whether they are there, how many elements they have and what shape. */
static inline uint32_t tn_step_reads(int32_t operation) {
  switch (operation) {
    case TN_STEP_PART:
    case TN_STEP_MOVE:
    case TN_STEP_MAP:
    case TN_STEP_SEQUENCE:
    case TN_STEP_LENGTH:
    case TN_STEP_NONE:
    case TN_STEP_HAS:
    case TN_STEP_GET:
    case TN_STEP_BY_RANK:
    case TN_STEP_BY_LENGTH:
    case TN_STEP_FAIL: return 0;
    case TN_STEP_IF: return 1;
    case TN_STEP_AT:
    case TN_STEP_ERASE: return 2;
    case TN_STEP_LOOP: return 3;
    case TN_STEP_INSERT: return 4;
    default: return 7;
  }
}

/* Provided by the library: its parts as packed functions, and the program. A part takes tensors
 * alone, and it relies on what is done where values enter a call: they are compact, aligned to
 * their elements and on the host where it runs there. */
int32_t tn_program_part(int32_t part, const tn_ffi_any* args, int32_t n, tn_ffi_any* result);

/* The body of the library's packed function. */
int32_t tn_program_call(const tn_ffi_any* args, int32_t n, tn_ffi_any* result);

/* The same where the parts run on a device: that of the first argument there, or number 0. Tensors
 * of numbers leave on it; arguments may be on the host. A step that reads what is on the device
 * waits for it. */
int32_t tn_program_call_on_device(const tn_ffi_any* args, int32_t n, tn_ffi_any* result,
                                  int32_t device_type);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_PROGRAM_ABI_H_ */

// The way out of the compiler: lowered loop IR (Module) × Target → object code.
//
// What "lowered" means here: no blocks but markers (no iteration variables, no init; their `fp`
// counts), buffers of at most one dimension without a layout, loops that are serial (the others
// were expanded by src/loop/pass), vectors written as Ramp and Broadcast, transcendental functions
// expanded (expand_math), launches lowered (lower_team). Anything else is a diagnostic that names
// the construct.
//
// Machine signatures, in this order: a pointer per buffer, int64 per dim, the scalars by their
// types (bool, f16 and bf16 as their bits), and then by kind
//
//   kernel   returns nothing: (…, i32 rank, i32 team_size, ptr team); run by every worker of a team
//   device   returns nothing: (…), with the same three where it, or what it calls, asks for its
//            rank or team or synchronises
//   host     returns i32: (…, i32 rank, i32 team_size, ptr team); with one handle: tn_body_fn
//   packed   returns i32: (ptr self, ptr args, i32 n, ptr result), its scalars: tn_packed_fn; with
//            buffers, those first: a function for C programs that know its signature
//
// The team pointer stands last, so that C code may call a kernel that never synchronises without
// it. Symbols: packed functions and those with attribute `exported: true` are visible outside the
// library, all others are hidden, under the function's name; device functions of a module that is
// emitted whole are seen by its object alone. Attribute `noalias: true` promises that no two buffer
// parameters overlap.
//
// Calls of C (`extern`): the first argument is the C function's name. A further string argument is
// a C string, unless it starts with '@': then it is the address of that symbol (a function of the
// module, a blob, anything the linker knows). Evaluated as a statement with result type i32 it is
// checked: non-zero leaves the host or packed function with that value. A C function without result
// is called with type handle, which is then not looked at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loop/func.h"
#include "support/expected.h"
#include "target/target.h"

namespace tenon::codegen {

/// Data emitted beside the code. All-zero writable data takes no room in the file.
struct DataBlob {
  std::string symbol;
  std::string bytes;
  int64_t align = 1;      // a power of two
  bool exported = false;  // else hidden: other objects of the same library see it
  bool writable = false;
  const char* section = nullptr;  // of ELF; null: the usual one
};

struct EmitOptions {
  std::vector<DataBlob> blobs;
  /// Objects only: functions `const char* NAME(void)` to define, by which C programs get the text
  /// of the thread's last error.
  std::vector<std::string> error_texts;
  /// The functions to define; of the others signatures are used (and the bodies of device
  /// functions, which say whether they take the team). Empty: all. So a module is emitted in parts,
  /// by several threads.
  std::vector<std::string> functions;
  /// Objects and assembly: the code runs once a call, or once at all. Instructions and registers
  /// are chosen quickly.
  bool quickly = false;
  /// Source only: whether exports can be seen outside of the program or library that the source
  /// becomes part of.
  bool visible = true;
  /// Source only: text that stands before the runtime core and the functions.
  std::string declarations;
#ifdef NDEBUG
  bool verify = false;
#else
  bool verify = true;
#endif
};

// Each call has its own compiler state: any number may run at the same time. Equal arguments give
// equal bytes.

/// A relocatable object (ELF, or the object format of the target's triple).
Expected<std::string> EmitObject(const Module& module, const Target& target,
                                 const EmitOptions& options);
/// The same as assembly text.
Expected<std::string> EmitAssembly(const Module& module, const Target& target,
                                   const EmitOptions& options);
/// The same as LLVM IR, after the passes that EmitObject runs.
Expected<std::string> EmitLlvm(const Module& module, const Target& target,
                               const EmitOptions& options);

/// C11 that compiles without a warning and needs the standard library's headers alone. Vectors are
/// loops over their lanes; every function is for a team of one worker and takes neither rank nor
/// team. What is neither exported nor used by another function can be called too. Of the blobs,
/// those that the code mentions. Where it calls the runtime core, the text holds a small one of its
/// own (src/codegen/c/core.c).
Expected<std::string> EmitC(const Module& module, const Target& target, const EmitOptions& options);

}  // namespace tenon::codegen

// make_packed: host functions get the signature they are called with, exported ones a wrapper for
// the world.
//
// Needs: plan_storage and lower_team; parameters still have logical shapes.
// Ensures: every host function F is a body for the runtime's team: its only parameter is `closure:
// handle`, an array of 8-byte slots: the address of each buffer, each dim, each scalar (the arena
// last), in the order of its parameters before; it returns 0i32. For an exported F (attributes
// exported: true, export_name, default F's name) the module gets
//   __tvm_ffi_NAME             packed, the TVM-FFI convention: checks the CPU and every argument,
//                              borrows an arena,
//                              makes the outputs where they are not given, runs F on a team,
//                              returns
//   __tvm_ffi__metadata_NAME   packed: the type schema of the former, as JSON
//   PLAIN                      with attribute plain: PLAIN. packed, but with the parameters of F:
//                              addresses of buffers, dims, scalars, then the address of its working
//                              memory (arena_bytes, aligned to 64). It runs F alone. With the
//                              attribute plain_checks it checks the CPU, the dims' ranges, that no
//                              address is null or not aligned, that outputs overlap nothing, and
//                              what `requires` lists
// The arguments and their order are those of loop/arguments.h; the last num_outputs are outputs. A
// call with as many arguments as inputs returns the outputs, one with outputs appended writes into
// them. A buffer's argument is a DLTensor* or an ffi.Tensor, a number's an int, a float or a bool,
// where the wider one takes the narrower. Checked, in this order: the CPU; the count; for each
// buffer type, ndim, dtype, device, each dim (constants; a dim's first place gives its value, range
// and step; later places must agree), strides (compact, or as the parameter says; those of size-1
// dims do not count), alignment to the element; for each number its type, and that an integer fits
// or a dim is in its range; that no output overlaps another argument; what the attribute `requires`
// lists (loop/requirements.h). A function with the attribute device_type takes tensors of that kind
// of device, all on the first one's, whose number is its scalar `device.id`. Messages:
// docs/calling.md. The wrapper's attributes: instances, the symbol of its tn_instances (absent
// where it needs no arena): tn_main_instances for a function exported under its own name, else
// tn_instances_NAME. Why here: it sees final placements and still the shapes to check; its code is
// flattened and simplified like any other.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

/// On a host function: the name of the plain function that it is to get besides; on that function:
/// its name. With `plain_checks: true` beside it, it checks what it is called with.
inline constexpr const char* kPlain = "plain";

Module MakePacked(const Module& module, const PassContext& context);

}  // namespace tenon

// split_roles: the copy engine's copies go to warps of their own, which run ahead.
//
// Needs: kernels in their bound form (loop/threads.h). Ensures, for a loop with the attribute
// `producer_stages`: n whose steps begin with copies by the copy engine into tiles of shared
// memory: each tile has n versions; a further warpgroup of the block does nothing but begin the
// copies of the steps, as far ahead as there are versions, while the others do the rest. Between
// them stand two rings of barriers, by version: `full` ends a phase when a step's bytes have come,
// `empty` when each warpgroup has done with them; the barriers of the block that stood in the loop
// are gone. Several warpgroups of the others that keep many registers take over some of the copying
// warpgroup's. Parameters that are copied from are passed as tensor maps; where one of them may
// begin anywhere, that is the kernel's aligned form (loop/aligned_form.h), beside one whose threads
// copy. Errors: a loop that touches other memory that threads share, copies by the engine anywhere
// else. Why on the bound form: which thread copies, and which barriers stand between copies and
// uses, has been derived and is checked here.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module SplitRoles(const Module& module, const PassContext& context);

}  // namespace tenon

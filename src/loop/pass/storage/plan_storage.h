// plan_storage: gives every allocation its place.
//
// Needs: blocks are lowered and allocations compacted; logical shapes (before flatten_storage).
// Ensures, for a kernel: allocations of scope `register` (of a register file's size), and
// worker-local ones up to PassContext::max_stack_bytes together (smallest first), stay allocations:
// the stack. The others are views of a workspace that the launcher passes as a last scalar
// parameter `workspace: handle`: first what the team shares (`global` allocations outside parallel
// loops), then one part per worker. What is made inside a parallel loop is local to the worker.
// Sizes are those of the largest dims; where dims have no end they are expressions of them. What
// has scope `tile` and fits the tiles that there are stays an allocation too. Attributes, with
// which a declaration of the kernel serves its launchers: those of loop/workspace.h, reads and
// writes (numbers of the parameters that it reads and writes), parallel. A kernel that has them is
// planned and stays. For a host function: every allocation becomes a stretch of one arena, a last
// scalar parameter `arena: handle`, in which values that are never alive at the same time overlap
// (what a launch uses is alive until the last of those that depend on it, each on the one before);
// so does each launch's workspace, for workspace_bytes + max_team * scratch_bytes. (What has scope
// `local` in the host function of a device is the host's own, and stays.) Allocations of
// scope `const` are weights: stretches of the weight segment, at the byte offsets given by the
// function's attributes `weights` (names) and `weight_offsets`. Accesses and regions become flat
// ones of a view of arena or weights per element type, so that no chain of bindings as long as the
// network arises. Attributes: arena_bytes (where constant; else the module gets a device function
// NAME.arena_bytes<dims>(bytes: i64[1])), max_team where a workspace depends on it, and plan, the
// plan as a table. Why before lower_team: barriers depend on which values share memory.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module PlanStorage(const Module& module, const PassContext& context);

}  // namespace tenon

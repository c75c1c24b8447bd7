// What launchers of a kernel must know: plan_storage notes it, as attributes.
#pragma once

#include <span>

#include "loop/func.h"

namespace tenon {

/// Attributes of a planned kernel: bytes for the team and for each worker, at the largest dims.
/// Where dims have no end these are 0, and the sizes are texts of expressions of the dims.
inline constexpr const char* kWorkspaceBytes = "workspace_bytes";
inline constexpr const char* kScratchBytes = "scratch_bytes";
inline constexpr const char* kWorkspaceSize = "workspace_size";
inline constexpr const char* kScratchSize = "scratch_size";

/// Notes both, each an expression of constants and the function's dims.
void SetWorkspace(const Expr& shared, const Expr& per_worker, PrimFunc* kernel);

/// All that a team of this size needs, as an expression of the kernel's dims.
Expr WorkspaceOf(const PrimFunc& kernel, int64_t team_size);

/// On a kernel and on a host function: how many workers have something to do at most, as an
/// expression of its dims. Absent where that is a constant or not known.
inline constexpr const char* kTeamWidth = "team_width";
void SetTeamWidth(const Expr& width, PrimFunc* func);
/// Null where it is absent.
Expr TeamWidthOf(const PrimFunc& func);

/// On a launch: what it takes on one worker by the cost model, in millionths of the time of a
/// barrier: [at no elements, for each element of the memory of open size that it is given].
inline constexpr const char* kAlone = "alone";
inline constexpr double kAloneUnits = 1e6;
/// How many those elements are, of a launch's arguments.
Expr ElementsOfOpenSize(std::span<const Region> args);

/// Whether an expression has no other variables than the function's dims, and reads no memory.
bool IsOfDims(const Expr& e, const PrimFunc& func);

}  // namespace tenon

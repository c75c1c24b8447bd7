// What must hold of a schedule: it is sound, prints and replays, and means what the function meant.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fuzz/schedule/moves.h"
#include "fuzz/schedule/subject.h"
#include "schedule/schedule.h"
#include "target/target.h"

namespace tenon::fuzz {

/// One choice of sizes: the arguments before the call, and what the unscheduled function leaves.
struct Run {
  DimValues dims;
  std::vector<InterpArg> given, want;
};

/// A run for each of the subject's sizes.
std::vector<Run> RunsOf(const Subject& subject);

// All throw a Finding where something does not hold.

/// The verifier accepts it; its text reads back as the same; so does its trace, as text and as
/// JSON, and it replays to the same.
void CheckForm(const Subject& subject, const Schedule& schedule);
/// The interpreter gets the same results from it, with parallel iterations in the order of `seed`.
void CheckMeaning(const Schedule& schedule, const std::vector<Run>& runs, uint64_t seed);

/// The scheduled function for a target, exported under `name`, and names of its own for all that it
/// calls.
Module Exported(const Schedule& schedule, const Target& target, const std::string& name);
/// The same after the passes that kernels go through. Nothing where it needs what the target has
/// not, or where threads need what no GPU has.
std::optional<Module> Lowered(const Schedule& schedule, const Target& target,
                              const std::string& name);
/// The interpreter gets the same results from the lowered function by a team, or by the threads of
/// a launch in several orders, without a race. `schedule` is what was lowered, for saying after
/// which pass it went wrong.
void CheckLowered(const Module& lowered, const std::string& name, const Schedule& schedule,
                  const std::vector<Run>& runs, int team_size, uint64_t seed);

/// The extents of a buffer in memory.
std::vector<int64_t> StorageShape(const Buffer& buffer, const DimValues& dims);
/// The argument as it lies in memory where the buffer is stored in its own way, and back.
InterpArg ToStorage(const InterpArg& arg, const Buffer& buffer, const DimValues& dims);
void FromStorage(const InterpArg& stored, const Buffer& buffer, const DimValues& dims,
                 InterpArg* arg);

/// How the outputs differ, the signs of zeros aside; "" where they do not.
std::string Difference(const PrimFunc& func, const std::vector<InterpArg>& want,
                       const std::vector<InterpArg>& got);

}  // namespace tenon::fuzz

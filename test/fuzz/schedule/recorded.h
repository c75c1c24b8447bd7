// Schedules to be run on a machine that has none of this: libraries, and what to call them with.
#pragma once

#include <string>
#include <vector>

#include "fuzz/schedule/compiled.h"

namespace tenon::fuzz {

/// What a library has: each dim is the extent of an input, as nothing but its tensors come with a
/// call; on OpenCL no kernel has global memory of its own.
bool CanBeCalled(const Unit& unit, const Target& target);

/// Writes FOLDER/BATCH.so with a function for each unit, FOLDER/BATCH.bin with the bytes of its
/// tensors and FOLDER/BATCH.json, which says what is where, for replay.py; FOLDER/BATCH.cu is for
/// reading. Units whose own code is
/// refused come back.
std::vector<Found> Record(const std::vector<Unit>& units, const Target& target,
                          const std::string& folder, const std::string& batch);

}  // namespace tenon::fuzz

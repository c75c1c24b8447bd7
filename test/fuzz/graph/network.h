// Random networks: each is made around one subject, a rule and an element type, so that runs of
// seeds go through all of them evenly.
#pragma once

#include <string>

#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

/// The same for a seed on every machine. A third have open sizes; a tenth have a branch or a loop.
/// `infos`: with the types of all values, which some have anyway.
Network RandomNetwork(uint64_t seed, int steps, bool infos = false);

/// The subject that the network of a seed is made around.
const Subject& SubjectOf(uint64_t seed);

}  // namespace tenon::fuzz

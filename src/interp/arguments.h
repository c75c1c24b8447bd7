// Arguments to run a function on, where nobody has given any: small integers in every type, so that
// sums come out the same in any order.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "interp/interp.h"

namespace tenon {

using DimValues = std::map<std::string, int64_t>;

/// The extents of a buffer parameter, given the function's dims by name. Errors: one that does not
/// come out as a number of at least 0.
Expected<std::vector<int64_t>> ExtentsOf(const PrimFunc& func, const Buffer& buffer,
                                         const DimValues& dims);

/// The working memory that plan_storage has found a kernel to need.
int64_t WorkspaceBytes(const PrimFunc& kernel, const DimValues& dims, int team_size);

/// Integers in [-4, 4]; unsigned in [0, 7]; bools.
InterpArg SmallIntegers(DType dtype, const std::vector<int64_t>& shape, std::mt19937& random);

/// One argument per parameter, the same for the same seed: inputs of small integers, outputs that
/// nothing has written, memory of the size that the function's attributes ask for a team of
/// `team_size` where a handle is wanted, numbers in [0, 3] for other scalars.
Expected<std::vector<InterpArg>> SmallIntegerArgs(const PrimFunc& func, const DimValues& dims,
                                                  uint32_t seed, int team_size = 1);

}  // namespace tenon

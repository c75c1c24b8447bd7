// Which points stand for a whole space, where it is asked how good the best of it is. Of a space of
// few kernels that is all of them; of another a sample by structure, and then what is one choice
// away from the best of the sample.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "tune/task.h"

namespace tenon::tune {

/// The points whose neighbours are tried, too.
inline constexpr size_t kNeighboursOf = 16;

/// At most `most` of a task's candidates, of which `distinct` are the places of those that are
/// kernels of their own, in order: all of them, where they are no more; else of each structure in
/// turn one, as long as it has some, spread evenly over its predicted times.
std::vector<size_t> SampleOf(const Task& task, const std::vector<size_t>& distinct, size_t most);

/// The places of the candidates that differ from this one in the value of one knob.
std::vector<size_t> NeighboursOf(const Task& task, size_t place);

}  // namespace tenon::tune

// Which points stand for a whole space, where it is asked how good the best of it is. Of a space of
// few points that is all of them; of another a sample, and then what is one choice away from the
// best of it.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "tune/task.h"

namespace tenon::tune {

/// The places of at most `most` of a task's candidates, in order: all of them, where they are no
/// more. Else a quarter are its leaders (session.h), and then the best predicted ones; of the
/// others each structure in turn has one, as long as it has some, spread evenly over its predicted
/// times.
std::vector<size_t> SampleOf(const Task& task, size_t most);

/// The places of the candidates that differ from this one in the value of one knob.
std::vector<size_t> NeighboursOf(const Task& task, size_t place);

}  // namespace tenon::tune

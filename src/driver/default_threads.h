// Nests of device kernels in which a schedule has bound no loop.
#pragma once

#include <string>
#include <vector>

#include "loop/func.h"

namespace tenon::driver {

/// Kernels in which neither a loop over a thread axis nor a parallel one is get their outermost
/// loops parallel, as many as are neighbours and may be: bind_threads makes threads of these. What
/// stays with one thread, there or beside nests that are bound, is said by its blocks' names.
Module WithDefaultThreads(const Module& module, std::vector<std::string>* remarks);

}  // namespace tenon::driver

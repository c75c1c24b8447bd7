// Room for walks of deeply nested IR: the allocations of a network nest, one inside the other, so a
// file of a million constants makes a tree a million statements deep.
#pragma once

#include <functional>

namespace tenon {

/// Calls fn on a thread of its own with the largest stack up to 4 GiB that the system gives
/// (address space: memory is used as far as the walk goes), and returns when it is done. Exceptions
/// of fn are rethrown here.
void OnDeepStack(const std::function<void()>& fn);

}  // namespace tenon

// Kernels that a loop of a host function needs on a device, besides those of its body.
#pragma once

#include <string>
#include <vector>

#include "cost/machine.h"
#include "graph/graph.h"
#include "ops/kernel.h"
#include "support/expected.h"

namespace tenon::graph {

/// number[] = i, where `i` is a dim of the kernel.
Expected<ops::Kernel> NumberKernel(const std::string& name, const Var& i, const Machine& machine);

/// rows[i, …] = row[…], where `rows` has an axis in front of those of `row`; the graph's dims that
/// the sizes mention are dims too, before `i`.
Expected<ops::Kernel> RowKernel(const std::string& name, const Buffer& row, const Buffer& rows,
                                const Var& i, const std::vector<Dim>& dims, const Machine& machine);

}  // namespace tenon::graph

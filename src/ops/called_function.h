// Functions that users wrote as the bodies of `call` nodes: from a text to a kernel.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/visit.h"
#include "loop/func.h"
#include "ops/kernel.h"
#include "support/expected.h"

namespace tenon::ops {

class Group;

/// A body: the function itself and those that it calls.
struct CalledFunction {
  Func function;
  std::map<std::string, Func> callees;
};

/// The functions of a module that no other calls, by name, fit to be bodies but for scalars: they
/// have results, and every dim is told by an input. Errors: the module does not verify; parameters
/// with strides or layouts.
Expected<std::vector<CalledFunction>> FindCalled(const Module& module);
/// The one of a `call` node's text, without scalars.
Expected<CalledFunction> ParseCalled(const std::string& body);

/// A shape of a tensor that a function is given.
using InputShape = std::vector<Expr>;

/// How many of a function's parameters are inputs, which come first.
size_t NumInputs(const PrimFunc& f);

/// What a function's dims are where its inputs have these shapes, by number and rank its own.
VarMap DimsOf(const PrimFunc& f, std::span<const InputShape> inputs);

/// The kernel of a `call` node: the function on the group's buffers, unscheduled unless it has
/// loops that are not serial. Its callees get names that say their text, so that kernels share
/// them.
Expected<Kernel> BuildCall(const KernelRequest& request, const Group& group);

/// A kernel's signature without a body: the group's border, and the graph's dims.
PrimFunc SignatureOf(const KernelRequest& request, const Group& group);
/// Of the group's border, at typical sizes.
int64_t BytesOf(const Group& group);

/// True where somebody has said how the function's loops run.
bool IsScheduled(const PrimFunc& f);

}  // namespace tenon::ops

// How a function is called from outside: its arguments, in the caller's order.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "loop/func.h"
#include "support/expected.h"

namespace tenon {

/// The attribute of an exported function that names its arguments in the caller's order: buffers,
/// scalars, and dims that are passed as numbers. The outputs come last. Without it callers pass
/// the input buffers, the scalars, the outputs.
inline constexpr const char* kArgumentsAttr = "arguments";

/// A scalar parameter of functions that launch on a device, i32, which no caller passes: the number
/// of the device that the tensors are on.
inline constexpr const char* kDeviceId = "device.id";
/// On host functions that launch kernels on a device: the DLDeviceType of their tensors.
inline constexpr const char* kDeviceTypeAttr = "device_type";
/// A handle: the addresses of a function's weights on that device, in the order of `weights`.
inline constexpr const char* kDeviceWeights = "device.weights";
/// A handle: slots of 8 bytes that the function fills with sizes which only it can find out, in the
/// order of the attribute kResultDimsAttr, their names. The outputs of such sizes are memory for as
/// many elements as there can be; kResultShapesAttr has, for each output, its true sizes as text
/// ("2; n"), or "" where the parameter's shape is that.
inline constexpr const char* kResultDims = "result.dims";
inline constexpr const char* kResultDimsAttr = "result_dims";
inline constexpr const char* kResultShapesAttr = "result_shapes";
/// Sizes that a call must know before it asks for memory. The host functions that kFindersAttr
/// names, in this order, find them: each takes the inputs, dims that are known by then, and places
/// for scalars of i64, one for each name in its own kFoundDimsAttr. That of the function itself
/// names the dims of all.
inline constexpr const char* kFindersAttr = "finders";
inline constexpr const char* kFoundDimsAttr = "found_dims";
/// On a function that a program alone calls (tenon/program_abi.h), with inputs and never with
/// outputs. The program vouches for tensors: they are compact, aligned, on the host where the
/// function runs there, and no size is beyond 2^47 - 1. For each input that only other parts make:
/// the shape that they give it, "[?, 3]"; "" for all others, whose kind, rank and element type are
/// not known before a call.
inline constexpr const char* kPartAttr = "part";
/// Memory that plan_storage has a call of a host function borrow: `arena`, or `arena_0`, `arena_1`,
/// …
bool IsArena(const Var& scalar);

/// One argument. Dims that are none are found in the shapes of those that are buffers.
struct Argument {
  enum class Kind { kBuffer, kScalar, kDim } kind;
  size_t index;  // into the function's buffers, scalars or dims

  /// Of a number; null for a buffer.
  Var VarOf(const PrimFunc& func) const;
  const std::string& NameOf(const PrimFunc& func) const;
};

/// Errors: the attribute names what is no parameter, something twice, not every buffer and scalar,
/// or not the outputs last; a scalar has a type that callers cannot pass (handles, but for those
/// that the compiler adds: "arena", "workspace").
Expected<std::vector<Argument>> ArgumentsOf(const PrimFunc& func);

/// The dim that a size of a shape tells, given those that are known: n in 2 * n + m where m is
/// known, or n itself. Null where all are known, or where it takes more to find it.
Var DimToldBy(const PrimFunc& func, const Expr& size, const std::function<bool(const Var&)>& known);
/// The first dim that the arguments do not tell, neither as numbers nor by their shapes, and that
/// is not found either; null where there is none.
Var UntoldDim(const PrimFunc& func, std::span<const Argument> arguments);

}  // namespace tenon

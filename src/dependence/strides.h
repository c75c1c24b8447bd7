// How far apart the elements of buffers lie, and who is told.
#pragma once

#include <optional>
#include <vector>

#include "arith/analyzer.h"
#include "loop/func.h"

namespace tenon {

/// How far apart neighbours are along each dimension: the strides that the buffer says, or those of
/// one that is row-major, its rows perhaps longer than what they hold.
std::vector<Expr> StridesOf(const BufferNode& buffer);

/// The element's number in row-major order, simplified.
Expr FlatIndex(const BufferNode& buffer, const std::vector<Expr>& indices, Analyzer* analyzer);

/// A dim of a function that is the stride of an operand and nothing else.
struct StrideDim {
  size_t scalar;  // its place among the call's scalars
  size_t dim;     // of the buffer that is passed
};
/// All strides of operand i of the call that are not 1, where each is such a dim; nothing where the
/// function knows one otherwise, or the operand lies in a layout that StridesOf does not read.
std::optional<std::vector<StrideDim>> StrideDims(const CallFunc& call, const PrimFunc& callee,
                                                 size_t i);

}  // namespace tenon

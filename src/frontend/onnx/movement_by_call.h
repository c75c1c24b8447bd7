// Importers of operators that move elements, where their arguments come with the call. The inputs
// are there, as ops_movement.cc has seen to; errors say what must be known all the same.
#pragma once

#include "frontend/onnx/op_context.h"

namespace tenon::onnx {

Status ReshapeByCall(OpContext& c, bool allow_zero);
/// How many axes there are is known.
Status SqueezeByCall(OpContext& c);
Status UnsqueezeByCall(OpContext& c);
Status SliceByCall(OpContext& c);
Status PadByCall(OpContext& c);

}  // namespace tenon::onnx

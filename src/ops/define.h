// The definitions: the meaning of each graph operator in te, from the page at the top of
// graph/ops.def. Algorithms (conv.h, matmul.h, …) compute the same values faster and are tested
// against these.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "ops/fusing.h"
#include "ops/operand.h"

namespace tenon::ops {

/// The context of one operator: its node, its operands (absent optional ones have a null `at`), the
/// type of its first result.
struct OpContext {
  const graph::Node* node;
  std::vector<Operand> in;
  graph::TensorType out;
  std::string name;  // of the tensors made; unique in the kernel

  int64_t Int(const char* attr) const { return node->attrs.GetInt(attr); }
  bool Has(size_t i) const { return i < in.size() && in[i].at != nullptr; }
};

/// The element of such an operator's result at `out`.
Expr DefineElement(const OpContext& op, const te::Indices& out);

/// The first result of any operator as an operand, made of te tensors where elements need
/// reductions.
Operand Define(const OpContext& op);
/// All results that the node has.
std::vector<Operand> DefineAll(const OpContext& op);

// Families, used by Define and DefineElement.
Expr DefineUnary(const OpContext& op, const Expr& x);
Expr DefineBinary(const OpContext& op, const Expr& a, const Expr& b);
Expr DefineMovement(const OpContext& op, const te::Indices& out);
Expr DefineResize(const OpContext& op, const te::Indices& out);
Operand DefineReduction(const OpContext& op);
std::vector<Operand> DefineTopK(const OpContext& op);
std::vector<Operand> DefineMaxPool(const OpContext& op);
Operand DefineWindow(const OpContext& op);
Operand DefineContraction(const OpContext& op);
Operand DefineWinograd(const OpContext& op);

/// The node's `axis`, which is not negative.
size_t AxisOf(const graph::Node& node);
/// An index of data, which counts from the end of `dim` where it is negative.
Expr FromEnd(const Expr& raw, const Expr& dim);
/// What a scatter combines an update with what is there by: add, mul, max or min.
BinaryOp CombinerOf(const std::string& reduction);

/// Max and min that return NaN where an operand is NaN.
Expr NanMax(const Expr& a, const Expr& b);
Expr NanMin(const Expr& a, const Expr& b);

}  // namespace tenon::ops

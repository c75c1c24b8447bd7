// Shape, type and value inference: the rules of ops.def applied to one node or to a whole graph.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tenon::graph {

/// What a rule sees of a node. Absent optional inputs are null. `elements[i]` is null unless input
/// i's elements are known. Attributes are complete.
struct OpView {
  OpKind op;
  const Attrs& attrs;
  const ExprAttrs& exprs;
  std::span<const TensorType* const> inputs;
  std::span<const Elements* const> elements;
  std::vector<Expr>* constraints;  // rules append what they had to assume of symbolic dims

  bool Has(size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  const TensorType& in(size_t i) const { return *inputs[i]; }
  const Elements* known(size_t i) const { return i < elements.size() ? elements[i] : nullptr; }
};

/// The types of all results that the operator can have, checked against Limits; not for operators
/// with regions. Errors have no location: the caller knows the node's name.
Expected<Types> InferTypes(const OpView& view);

/// The types of the results of a node with regions, which verify. Errors: what is passed in or out
/// does not fit the regions, or is not plain where control flow has its borders.
Expected<Types> InferRegionTypes(const Graph& g, const Node& n);

/// What a contraction of these operands adds up in, and what it gives unless the node says
/// otherwise: f16 and bf16 add up in f32 and are rounded once; 8-bit integers, of any signs, add up
/// in i32 and give it; all others stay what they are.
struct ContractionTypes {
  DType accumulator, result;
};
/// By the node's attributes `accumulator` and `result`. Errors: types that do not go together.
Expected<ContractionTypes> ContractionTypesOf(DType a, DType b, const Attrs& attrs);
/// What sums of this type add up in: f32 for f16 and bf16, else the type itself.
DType AccumulatorOf(DType type);

/// The first output's elements where they follow from what is known, else nullopt.
std::optional<Elements> InferElements(const OpView& view, const TensorType& out);

/// Elements of a constant, where it is a small integer or bool tensor.
std::optional<Elements> ElementsOf(const Value& constant);

/// Checks a type against Limits: rank, dims ≥ 0, element count, size of expressions; depth.
Status CheckType(const Type& type);

}  // namespace tenon::graph

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

/// The type of the node's output, checked against Limits. Errors have no location: the caller knows
/// the node's name.
Expected<TensorType> InferType(const OpView& view);

/// The output's elements where they follow from what is known, else nullopt.
std::optional<Elements> InferElements(const OpView& view, const TensorType& out);

/// Elements of a constant, where it is a small integer or bool tensor.
std::optional<Elements> ElementsOf(const Value& constant);

/// Checks a type against Limits: rank, dims ≥ 0, element count, size of expressions.
Status CheckType(const TensorType& type);

}  // namespace tenon::graph

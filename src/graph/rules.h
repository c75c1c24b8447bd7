// The rules that ops.def names: Type<X> and Value<X>. Defined in type_*.cc and value_rules.cc.
#pragma once

#include <fmt/format.h>

#include "graph/dims.h"
#include "graph/infer.h"

namespace tenon::graph::rules {

/// What the rule of an operator with that many results answers.
template <int results>
using TypeRuleResult = Expected<std::conditional_t<results == 1, TensorType, Types>>;

// A row may repeat a rule of another: repeated declarations are fine.
#define TN_OP(Name, text, lo, hi, outs, map, type, value, ...) \
  TypeRuleResult<outs> Type##type(const OpView& v);            \
  std::optional<Elements> Value##value(const OpView& v, const TensorType& out);
#define TN_REGION_OP(...)
#include "graph/ops.def"
#undef TN_REGION_OP
#undef TN_OP

/// An error of a type rule: "expected …, but got …".
template <class... Args>
Diagnostic Bad(fmt::format_string<Args...> format, Args&&... args) {
  return MakeError(fmt::format(format, std::forward<Args>(args)...));
}

/// Numpy broadcasting of two shapes. `v` gets the constraints; errors name both shapes.
Expected<std::vector<Expr>> BroadcastDims(const OpView& v, const std::vector<Expr>& a,
                                          const std::vector<Expr>& b);
/// Checks that `from` broadcasts to exactly `to`.
Status CheckBroadcastsTo(const OpView& v, const std::vector<Expr>& from,
                         const std::vector<Expr>& to);
/// Requires a == b: an error where they are provably different, a constraint where that is not
/// known.
Status RequireEqual(const OpView& v, const Expr& a, const Expr& b, const char* what);
/// The int attribute `name` as an axis of a tensor of that rank.
Expected<int> Axis(const OpView& v, const char* name, int rank);

}  // namespace tenon::graph::rules

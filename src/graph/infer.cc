#include "graph/infer.h"

#include <fmt/format.h>

#include "graph/rules.h"

namespace tenon::graph {

Status CheckType(const TensorType& type) {
  if (type.rank() > Limits::kRank) {
    return MakeLimitError(
        fmt::format("expected a rank of at most {}, but got {}", Limits::kRank, type.rank()));
  }
  int64_t count = 1;
  for (const Expr& dim : type.dims) {
    std::optional<int64_t> n = AsInt(dim);
    if (!n && ExprSize(dim, Limits::kExprSize) > Limits::kExprSize) {
      return MakeLimitError("a dim whose expression is too large");
    }
    if (n && *n < 0)
      return MakeError(fmt::format("expected dims of at least 0, but got {}", type.ToString()));
    if (!n || *n == 0) continue;
    if (*n > Limits::kElements / count) {
      return MakeLimitError(
          fmt::format("expected a tensor of at most 2^40 elements, but got {}", type.ToString()));
    }
    count *= *n;
  }
  return Ok();
}

Expected<TensorType> InferType(const OpView& view) {
  TN_ASSIGN_OR_RETURN(TensorType type, Info(view.op).type_rule(view));
  TN_RETURN_IF_ERROR(CheckType(type));
  return type;
}

std::optional<Elements> InferElements(const OpView& view, const TensorType& out) {
  const DType t = out.dtype;
  if (!t.IsInt() && !t.IsBool()) return std::nullopt;
  std::optional<int64_t> count = StaticCount(out.dims);
  if (!count || *count > Limits::kKnownElements) return std::nullopt;
  std::optional<Elements> elements = Info(view.op).value_rule(view, out);
  if (!elements) return std::nullopt;
  for (const Expr& e : *elements) {
    if (!AsInt(e) && ExprSize(e, Limits::kExprSize) > Limits::kExprSize) return std::nullopt;
  }
  return elements;
}

std::optional<Elements> ElementsOf(const Value& constant) {
  std::optional<std::vector<int64_t>> ints = ReadInts(constant);
  if (!ints) return std::nullopt;
  Elements out;
  const DType t = constant.type.dtype;
  for (int64_t i : *ints) {
    if (!t.IsSigned() && t.bits == 64 && i < 0)
      return std::nullopt;  // an u64 beyond what index holds
    out.push_back(t.IsBool() ? BoolConst(i != 0) : IndexConst(i));
  }
  return out;
}

}  // namespace tenon::graph

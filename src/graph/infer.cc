#include "graph/infer.h"

#include <fmt/format.h>

#include "graph/rules.h"

namespace tenon::graph {

Status CheckType(const Type& whole) {
  int depth = 0;
  for (const Type* t = &whole; !t->IsTensor(); t = &t->element()) {
    if (++depth > Limits::kTypeDepth)
      return MakeLimitError(fmt::format("expected sequences and optionals nested at most {} deep",
                                        Limits::kTypeDepth));
  }
  const TensorType& type = whole.leaf();
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

Expected<Types> InferTypes(const OpView& view) {
  TN_ASSIGN_OR_RETURN(Types types, Info(view.op).type_rule(view));
  for (const Type& type : types) TN_RETURN_IF_ERROR(CheckType(type));
  return types;
}

DType AccumulatorOf(DType type) {
  return type.IsFloat() && type.bits < 32 ? DType::Float(32) : type;
}

namespace {

// The attribute as a type, or `fallback` where it is left to the operands.
Expected<DType> TypeAttr(const Attrs& attrs, const char* name, DType fallback) {
  const std::string text = attrs.GetString(name);
  if (text.empty()) return fallback;
  std::optional<DType> type = DType::Parse(text);
  if (!type || !type->IsScalar() || (!type->IsFloat() && !type->IsInt()))
    return MakeError(
        fmt::format("expected {} to be a float or integer type, but got '{}'", name, text));
  if (type->IsFloat() != fallback.IsFloat())
    return MakeError(fmt::format("expected {} to be {} type like the operands, but got {}", name,
                                 fallback.IsFloat() ? "a float" : "an integer", text));
  return *type;
}

}  // namespace

Expected<ContractionTypes> ContractionTypesOf(DType a, DType b, const Attrs& attrs) {
  const bool bytes = a.IsInt() && b.IsInt() && a.bits == 8 && b.bits == 8;
  if (a != b && !bytes) {
    return MakeError(
        fmt::format("expected operands of one dtype, or of 8-bit integers, but got {} and {}",
                    a.ToString(), b.ToString()));
  }
  ContractionTypes types;
  const DType natural = bytes ? DType::Int(32) : AccumulatorOf(a);
  TN_ASSIGN_OR_RETURN(types.accumulator, TypeAttr(attrs, "accumulator", natural));
  TN_ASSIGN_OR_RETURN(types.result, TypeAttr(attrs, "result", bytes ? types.accumulator : a));
  return types;
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
  const DType t = constant.type.leaf().dtype;
  for (int64_t i : *ints) {
    if (!t.IsSigned() && t.bits == 64 && i < 0)
      return std::nullopt;  // an u64 beyond what index holds
    out.push_back(t.IsBool() ? BoolConst(i != 0) : IndexConst(i));
  }
  return out;
}

}  // namespace tenon::graph

// Type rules of elementwise and broadcasting operators, and what the other rules share.
#include "graph/graph.h"
#include "graph/rules.h"

namespace tenon::graph::rules {

Status RequireEqual(const OpView& v, const Expr& a, const Expr& b, const char* what) {
  if (ProveEqual(a, b)) return Ok();
  if (ProveDifferent(a, b))
    return Bad("expected {} to be equal, but got {} and {}", what, DimText(a), DimText(b));
  if (v.constraints) v.constraints->push_back(Eq(a, b));
  return Ok();
}

namespace {

// One axis of a broadcast; null where the dims are provably incompatible.
Expr BroadcastDim(const OpView& v, const Expr& a, const Expr& b) {
  const BroadcastAxis axis = BroadcastSizes(a, b);
  if (v.constraints && axis.size && axis.condition) v.constraints->push_back(axis.condition);
  return axis.size;
}

bool IsNumber(DType t) { return t.IsFloat() || t.IsInt(); }
bool IsFloat(DType t) { return t.IsFloat(); }
bool IsInteger(DType t) { return t.IsInt(); }
bool IsBool(DType t) { return t.IsBool(); }
bool IsAny(DType) { return true; }

Expected<TensorType> UnaryOf(const OpView& v, bool (*accepts)(DType), const char* want) {
  const DType t = v.in(0).dtype;
  if (!accepts(t)) return Bad("expected {} input, but got {}", want, t.ToString());
  return TensorType{t, v.in(0).dims};
}

Expected<TensorType> BinaryOf(const OpView& v, bool (*accepts)(DType), const char* want) {
  const DType a = v.in(0).dtype, b = v.in(1).dtype;
  if (a != b)
    return Bad("expected both inputs to have one dtype, but got {} and {}", a.ToString(),
               b.ToString());
  if (!accepts(a)) return Bad("expected {} inputs, but got {}", want, a.ToString());
  TN_ASSIGN_OR_RETURN(std::vector<Expr> dims, BroadcastDims(v, v.in(0).dims, v.in(1).dims));
  return TensorType{a, std::move(dims)};
}

Expected<TensorType> WithDType(Expected<TensorType> type, DType dtype) {
  if (type) type->dtype = dtype;
  return type;
}

}  // namespace

Expected<std::vector<Expr>> BroadcastDims(const OpView& v, const std::vector<Expr>& a,
                                          const std::vector<Expr>& b) {
  const std::vector<Expr>& longer = a.size() >= b.size() ? a : b;
  const std::vector<Expr>& shorter = a.size() >= b.size() ? b : a;
  std::vector<Expr> out = longer;
  const size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    out[shift + i] = BroadcastDim(v, longer[shift + i], shorter[i]);
    if (!out[shift + i]) {
      return Bad("expected shapes that broadcast together, but got {} and {}", DimsText(a),
                 DimsText(b));
    }
  }
  return out;
}

Status CheckBroadcastsTo(const OpView& v, const std::vector<Expr>& from,
                         const std::vector<Expr>& to) {
  auto fail = [&] {
    return Bad("expected a shape that broadcasts to {}, but got {}", DimsText(to), DimsText(from));
  };
  if (from.size() > to.size()) return fail();
  const size_t shift = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    const Expr& size = to[shift + i];
    if (IsOne(from[i]) || ProveEqual(from[i], size)) continue;
    const bool may_equal = !ProveDifferent(from[i], size), may_be_one = MayBroadcast(from[i], size);
    if (!may_equal && !may_be_one) return fail();
    Expr condition = may_equal ? Eq(from[i], size) : Eq(from[i], IndexConst(1));
    if (may_equal && may_be_one) condition = Or(condition, Eq(from[i], IndexConst(1)));
    if (v.constraints) v.constraints->push_back(condition);
  }
  return Ok();
}

Expected<int> Axis(const OpView& v, const char* name, int rank) {
  const int64_t axis = v.attrs.GetInt(name);
  if (axis < 0 || axis >= rank)
    return Bad("expected {} in 0..{}, but got {}", name, rank - 1, axis);
  return static_cast<int>(axis);
}

Expected<TensorType> TypeUnaryNumber(const OpView& v) {
  return UnaryOf(v, IsNumber, "a float or integer");
}
Expected<TensorType> TypeUnaryFloat(const OpView& v) { return UnaryOf(v, IsFloat, "a float"); }
Expected<TensorType> TypeUnaryInteger(const OpView& v) {
  return UnaryOf(v, IsInteger, "an integer");
}
Expected<TensorType> TypeUnaryBool(const OpView& v) { return UnaryOf(v, IsBool, "a bool"); }
Expected<TensorType> TypeFloatTest(const OpView& v) {
  return WithDType(TypeUnaryFloat(v), DType::Bool());
}

Expected<TensorType> TypeBinaryNumber(const OpView& v) {
  return BinaryOf(v, IsNumber, "float or integer");
}
Expected<TensorType> TypeBinaryInteger(const OpView& v) {
  return BinaryOf(v, IsInteger, "integer");
}
Expected<TensorType> TypeBinaryBool(const OpView& v) { return BinaryOf(v, IsBool, "bool"); }
Expected<TensorType> TypeCompare(const OpView& v) {
  return WithDType(TypeBinaryNumber(v), DType::Bool());
}
Expected<TensorType> TypeCompareAny(const OpView& v) {
  return WithDType(BinaryOf(v, IsAny, "any"), DType::Bool());
}

Expected<TensorType> TypeCast(const OpView& v) {
  const std::string to = v.attrs.GetString("to");
  std::optional<DType> dtype = DType::Parse(to);
  if (!dtype || !dtype->IsScalar() || dtype->IsIndex() || dtype->IsHandle()) {
    return Bad("expected the attribute to to be a data type, but got '{}'", to);
  }
  return TensorType{*dtype, v.in(0).dims};
}

Expected<TensorType> TypeBitCast(const OpView& v) {
  TN_ASSIGN_OR_RETURN(TensorType out, TypeCast(v));
  const DType from = v.in(0).dtype;
  if (out.dtype.StorageBits() != from.StorageBits() || from.IsString() || out.dtype.IsString()) {
    return Bad("expected a type of as many bits as {}, but got {}", from.ToString(),
               out.dtype.ToString());
  }
  return out;
}

Expected<TensorType> TypeWhere(const OpView& v) {
  if (!v.in(0).dtype.IsBool())
    return Bad("expected a bool condition, but got {}", v.in(0).dtype.ToString());
  if (v.in(1).dtype != v.in(2).dtype) {
    return Bad("expected both choices to have one dtype, but got {} and {}",
               v.in(1).dtype.ToString(), v.in(2).dtype.ToString());
  }
  TN_ASSIGN_OR_RETURN(std::vector<Expr> dims, BroadcastDims(v, v.in(0).dims, v.in(1).dims));
  TN_ASSIGN_OR_RETURN(dims, BroadcastDims(v, dims, v.in(2).dims));
  return TensorType{v.in(1).dtype, std::move(dims)};
}

}  // namespace tenon::graph::rules

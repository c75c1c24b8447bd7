// Value rules: the elements of small integer tensors, followed through shape computations. Elements
// are index expressions; a rule answers nullopt where it cannot follow. Only tensors of static
// shape have known elements.
//
// Models compute shapes with tensors: Shape, Gather, Concat, then a Reshape by the result. To know
// the result's type these small tensors must be followed while the graph is built. An element is an
// index expression over the graph's dims, so that
//
//   %1: i64[2] = shape(%0)            known as [n, 8], of %0: f32[n, 8]
//   %2: i64[1] = slice(%1) {…}        known as [n]
//   %3: i64[1] = mul(%2, %8)          known as [n * 8], %8 being a constant
//
// and a Reshape of x to %3 is reshape(%0) {shape: [n * 8]}, of type f32[n * 8].
//
// Numbers are computed in 128 bits and wrapped to the tensor's type, as the operator would;
// symbolic elements only where the arithmetic of dims means the same: division truncates on data
// and floors on dims, so it is followed where nothing is negative.

#include <algorithm>

#include "graph/graph.h"
#include "graph/rules.h"

namespace tenon::graph::rules {
namespace {

// `value` as an integer of that type, or null where it is not an int64.
Expr Wrapped(DType type, __int128 value) {
  if (type.IsBool()) return BoolConst(value != 0);
  const int bits = type.bits;
  const unsigned __int128 low = static_cast<unsigned __int128>(value) << (128 - bits);
  const __int128 wrapped = type.IsSigned() ? static_cast<__int128>(low) >> (128 - bits)
                                           : static_cast<__int128>(low >> (128 - bits));
  if (wrapped > INT64_MAX) return nullptr;
  return IndexConst(static_cast<int64_t>(wrapped));
}

// Division as ops.def defines it: it truncates, and by 0 gives 0.
__int128 Quotient(__int128 a, __int128 b) { return b == 0 ? 0 : a / b; }
__int128 TruncatedRemainder(__int128 a, __int128 b) { return b == 0 ? 0 : a % b; }
__int128 FlooredRemainder(__int128 a, __int128 b) {
  const __int128 r = TruncatedRemainder(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

Expr Compare(BinaryOp op, const Expr& a, const Expr& b) {
  return SimplifyDim(Binary::Make(op, a, b));
}

// Truncation equals flooring where nothing is negative. What a division by 0 gives is nobody's
// size.
bool Floors(const Expr& a, const Expr& b) { return DimRange(a).min >= 0 && DimRange(b).min >= 0; }

// How two known elements combine: as numbers (the result is wrapped to its type) and as expressions
// (null: unknown).
struct Fold {
  OpKind op;
  __int128 (*numbers)(__int128 a, __int128 b);
  Expr (*exprs)(const Expr& a, const Expr& b);
};

constexpr Fold kFolds[] = {
    {OpKind::kAdd, [](__int128 a, __int128 b) { return a + b; }, DimAdd},
    {OpKind::kSub, [](__int128 a, __int128 b) { return a - b; }, DimSub},
    {OpKind::kMul, [](__int128 a, __int128 b) { return a * b; }, DimMul},
    {OpKind::kDiv, Quotient,
     [](const Expr& a, const Expr& b) { return Floors(a, b) ? DimFloorDiv(a, b) : nullptr; }},
    {OpKind::kMod, FlooredRemainder,
     [](const Expr& a, const Expr& b) {
       return Floors(a, b) ? SimplifyDim(a % DimMax(b, IndexConst(1))) : nullptr;
     }},
    {OpKind::kMin, [](__int128 a, __int128 b) { return std::min(a, b); }, DimMin},
    {OpKind::kMax, [](__int128 a, __int128 b) { return std::max(a, b); }, DimMax},
    {OpKind::kAnd, [](__int128 a, __int128 b) { return a & b; },
     [](const Expr& a, const Expr& b) { return Compare(BinaryOp::kAnd, a, b); }},
    {OpKind::kOr, [](__int128 a, __int128 b) { return a | b; },
     [](const Expr& a, const Expr& b) { return Compare(BinaryOp::kOr, a, b); }},
    {OpKind::kXor, [](__int128 a, __int128 b) { return a ^ b; },
     [](const Expr&, const Expr&) { return Expr(); }},
    {OpKind::kEqual, [](__int128 a, __int128 b) { return __int128{a == b}; },
     [](const Expr& a, const Expr& b) {
       return a->dtype.IsBool() ? Expr() : Compare(BinaryOp::kEq, a, b);
     }},
    {OpKind::kLess, [](__int128 a, __int128 b) { return __int128{a < b}; },
     [](const Expr& a, const Expr& b) { return Compare(BinaryOp::kLt, a, b); }},
    {OpKind::kGreater, [](__int128 a, __int128 b) { return __int128{a > b}; },
     [](const Expr& a, const Expr& b) { return Compare(BinaryOp::kGt, a, b); }},
    {OpKind::kLessEqual, [](__int128 a, __int128 b) { return __int128{a <= b}; },
     [](const Expr& a, const Expr& b) { return Compare(BinaryOp::kLe, a, b); }},
    {OpKind::kGreaterEqual, [](__int128 a, __int128 b) { return __int128{a >= b}; },
     [](const Expr& a, const Expr& b) { return Compare(BinaryOp::kGe, a, b); }},
};

const Fold* FindFold(OpKind op) {
  for (const Fold& f : kFolds) {
    if (f.op == op) return &f;
  }
  return nullptr;
}

// The two combined, as a value of `type`; null where that is not known.
Expr Combine(const Fold& fold, DType type, const Expr& a, const Expr& b) {
  std::optional<int64_t> x = AsInt(a), y = AsInt(b);
  return x && y ? Wrapped(type, fold.numbers(*x, *y)) : fold.exprs(a, b);
}

// Row-major strides of static dims, 0 where the dim is 1 (for broadcasting).
std::vector<int64_t> Strides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = dims[i] == 1 ? 0 : step;
    step *= dims[i];
  }
  return strides;
}

// Coordinates of element `index` of a tensor of static dims.
std::vector<int64_t> Unravel(int64_t index, const std::vector<int64_t>& dims) {
  std::vector<int64_t> at(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    at[i] = index % dims[i];
    index /= dims[i];
  }
  return at;
}

// Picks, for each element of `out`, the elements of each input that broadcasting aligns with it,
// and maps them by `f`.
template <class F>
std::optional<Elements> MapBroadcast(const OpView& v, const TensorType& out, F f) {
  std::optional<std::vector<int64_t>> dims = out.StaticDims();
  std::optional<int64_t> count = StaticCount(out.dims);
  if (!dims || !count || *count > Limits::kKnownElements) return std::nullopt;
  std::vector<std::vector<int64_t>> strides;
  for (size_t k = 0; k < v.inputs.size(); ++k) {
    std::optional<std::vector<int64_t>> in = v.in(k).StaticDims();
    if (!v.known(k) || !in) return std::nullopt;
    strides.push_back(Strides(*in));
  }
  Elements result;
  for (int64_t i = 0; i < *count; ++i) {
    const std::vector<int64_t> at = Unravel(i, *dims);
    std::vector<Expr> args;
    for (size_t k = 0; k < strides.size(); ++k) {
      int64_t offset = 0;
      const size_t shift = at.size() - strides[k].size();
      for (size_t d = 0; d < strides[k].size(); ++d) offset += strides[k][d] * at[shift + d];
      args.push_back((*v.known(k))[static_cast<size_t>(offset)]);
    }
    Expr e = f(args);
    if (!e) return std::nullopt;
    result.push_back(std::move(e));
  }
  return result;
}

}  // namespace

std::optional<Elements> ValueNone(const OpView&, const TensorType&) { return std::nullopt; }

std::optional<Elements> ValueArithmetic(const OpView& v, const TensorType& out) {
  const Fold* row = FindFold(v.op);
  if (!row) return std::nullopt;
  Fold fold = *row;
  if (v.op == OpKind::kMod && v.attrs.Get<bool>("fmod", false)) fold.numbers = TruncatedRemainder;
  return MapBroadcast(
      v, out, [&](const std::vector<Expr>& x) { return Combine(fold, out.dtype, x[0], x[1]); });
}

std::optional<Elements> ValueNeg(const OpView& v, const TensorType& out) {
  return MapBroadcast(v, out, [&](const std::vector<Expr>& x) -> Expr {
    std::optional<int64_t> a = AsInt(x[0]);
    return a ? Wrapped(out.dtype, -static_cast<__int128>(*a)) : DimSub(IndexConst(0), x[0]);
  });
}

std::optional<Elements> ValueNot(const OpView& v, const TensorType& out) {
  return MapBroadcast(v, out, [&](const std::vector<Expr>& x) { return SimplifyDim(Not(x[0])); });
}

std::optional<Elements> ValueCast(const OpView& v, const TensorType& out) {
  if (!out.dtype.IsInt() && !out.dtype.IsBool()) return std::nullopt;
  return MapBroadcast(v, out, [&](const std::vector<Expr>& x) -> Expr {
    if (std::optional<int64_t> a = AsInt(x[0])) return Wrapped(out.dtype, *a);
    if (x[0]->dtype.IsBool()) {
      return out.dtype.IsBool() ? x[0]
                                : SimplifyDim(Select::Make(x[0], IndexConst(1), IndexConst(0)));
    }
    if (out.dtype.IsBool()) return Compare(BinaryOp::kNe, x[0], IndexConst(0));
    // A symbolic value is followed through a narrower integer: that it fits is left for the entry
    // to check.
    const Interval range = DimRange(x[0]);
    const int bits = out.dtype.bits - (out.dtype.IsSigned() ? 1 : 0);
    const int64_t most = bits >= 63 ? INT64_MAX : (int64_t{1} << bits) - 1;
    const int64_t least = out.dtype.IsSigned() ? -most - 1 : 0;
    if (v.constraints && range.min < least) v.constraints->push_back(Ge(x[0], IndexConst(least)));
    if (v.constraints && range.max > most) v.constraints->push_back(Le(x[0], IndexConst(most)));
    return x[0];
  });
}

std::optional<Elements> ValueWhere(const OpView& v, const TensorType& out) {
  return MapBroadcast(v, out, [&](const std::vector<Expr>& x) -> Expr {
    if (std::optional<int64_t> c = AsInt(x[0])) return *c ? x[1] : x[2];
    return DimChoice(x[0], x[1], x[2]);
  });
}

std::optional<Elements> ValueReduce(const OpView& v, const TensorType& out) {
  const Elements* x = v.known(0);
  const std::string kind = v.attrs.GetString("kind");
  // Whole vectors only: that is what shape computations reduce.
  if (!x || v.in(0).rank() != 1 || v.attrs.GetInts("axes").size() != 1 || !v.in(0).dtype.IsInt())
    return std::nullopt;
  const bool sum = kind == "sum", product = kind == "prod";
  if (!sum && !product && (x->empty() || (kind != "max" && kind != "min"))) return std::nullopt;
  const Fold& fold = *FindFold(sum             ? OpKind::kAdd
                               : product       ? OpKind::kMul
                               : kind == "max" ? OpKind::kMax
                                               : OpKind::kMin);
  Expr total = x->empty() ? IndexConst(product) : (*x)[0];
  for (size_t i = 1; total && i < x->size(); ++i) total = Combine(fold, out.dtype, total, (*x)[i]);
  if (!total) return std::nullopt;
  return Elements{total};
}

std::optional<Elements> ValueReshape(const OpView& v, const TensorType& out) {
  if (!v.known(0)) return std::nullopt;
  return *v.known(0);
}

std::optional<Elements> ValueTranspose(const OpView& v, const TensorType& out) {
  const std::optional<std::vector<int64_t>> dims = out.StaticDims(), in = v.in(0).StaticDims();
  if (!v.known(0) || !dims || !in) return std::nullopt;
  const std::vector<int64_t> perm = v.attrs.GetInts("perm"), strides = Strides(*in);
  Elements result;
  for (int64_t i = 0; i < *StaticCount(out.dims); ++i) {
    const std::vector<int64_t> at = Unravel(i, *dims);
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[static_cast<size_t>(perm[d])];
    result.push_back((*v.known(0))[static_cast<size_t>(offset)]);
  }
  return result;
}

std::optional<Elements> ValueSlice(const OpView& v, const TensorType& out) {
  std::optional<std::vector<int64_t>> dims = out.StaticDims(), in = v.in(0).StaticDims();
  if (!v.known(0) || !dims || !in) return std::nullopt;
  const std::vector<int64_t> steps = v.attrs.GetInts("steps");
  const std::vector<Expr>& starts = v.exprs.find("starts")->second;
  Elements result;
  for (int64_t i = 0; i < *StaticCount(out.dims); ++i) {
    const std::vector<int64_t> at = Unravel(i, *dims);
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      std::optional<int64_t> start = AsInt(starts[d]);
      if (!start) return std::nullopt;
      offset = offset * (*in)[d] + *start + at[d] * steps[d];
    }
    result.push_back((*v.known(0))[static_cast<size_t>(offset)]);
  }
  return result;
}

std::optional<Elements> ValueConcat(const OpView& v, const TensorType& out) {
  if (out.rank() != 1) return std::nullopt;
  Elements result;
  for (size_t i = 0; i < v.inputs.size(); ++i) {
    if (!v.known(i)) return std::nullopt;
    result.insert(result.end(), v.known(i)->begin(), v.known(i)->end());
  }
  return result;
}

std::optional<Elements> ValueExpand(const OpView& v, const TensorType& out) {
  return MapBroadcast(v, out, [](const std::vector<Expr>& x) { return x[0]; });
}

std::optional<Elements> ValueGather(const OpView& v, const TensorType& out) {
  if (!v.known(0) || !v.known(1) || v.in(0).rank() != 1) return std::nullopt;
  const int64_t dim = static_cast<int64_t>(v.known(0)->size());
  Elements result;
  for (const Expr& e : *v.known(1)) {
    std::optional<int64_t> at = AsInt(e);
    if (!at || *at < -dim || *at >= dim) return std::nullopt;
    result.push_back((*v.known(0))[static_cast<size_t>(*at < 0 ? *at + dim : *at)]);
  }
  return result;
}

std::optional<Elements> ValueShape(const OpView& v, const TensorType& out) {
  const std::vector<Expr>& dims = v.in(0).dims;
  return Elements(dims.begin() + v.attrs.GetInt("start"), dims.begin() + v.attrs.GetInt("end"));
}

std::optional<Elements> ValueDim(const OpView& v, const TensorType& out) {
  return Elements{v.exprs.at("size")[0]};
}

std::optional<Elements> ValueRange(const OpView& v, const TensorType& out) {
  std::optional<int64_t> size = AsInt(out.dims[0]);
  if (!v.known(0) || !v.known(1) || !size) return std::nullopt;
  Elements result;
  for (int64_t i = 0; i < *size; ++i) {
    std::optional<int64_t> start = AsInt((*v.known(0))[0]), delta = AsInt((*v.known(1))[0]);
    Expr e = start && delta ? Wrapped(out.dtype, *start + static_cast<__int128>(*delta) * i)
                            : DimAdd((*v.known(0))[0], DimMul((*v.known(1))[0], IndexConst(i)));
    if (!e) return std::nullopt;
    result.push_back(std::move(e));
  }
  return result;
}

}  // namespace tenon::graph::rules

// Type rules of reductions, contractions and windows.
//
// A rule gets the operands' types, attributes and known values, and answers with the result's type
// or with what was expected. Sizes are expressions: a product of f32[n, 8] and f32[8, m] is
// f32[n, m] if the two inner sizes are shown equal, and an error if they are shown to differ;
// otherwise the graph notes that they must be equal, which is checked when it is called. A window
// of size k with stride s and padding b + e over d elements makes
//
//   (d + b + e - k) / s + 1          and with ceil_mode the last window must begin inside d + b
//
// elements; sizes beyond anything sensible are refused before the arithmetic could overflow.

#include <algorithm>

#include "graph/graph.h"
#include "graph/rules.h"

namespace tenon::graph::rules {
namespace {

Status RequireFloat(const OpView& v) {
  if (v.in(0).dtype.IsFloat()) return Ok();
  return Bad("expected a float input, but got {}", v.in(0).dtype.ToString());
}

Status RequireNumber(const OpView& v) {
  if (v.in(0).dtype.IsFloat() || v.in(0).dtype.IsInt()) return Ok();
  return Bad("expected a float or integer input, but got {}", v.in(0).dtype.ToString());
}

// Every present input has the first one's dtype.
Status RequireOneDType(const OpView& v) {
  for (size_t i = 1; i < v.inputs.size(); ++i) {
    if (v.Has(i) && v.in(i).dtype != v.in(0).dtype) {
      return Bad("expected all inputs to have one dtype, but input 0 has {} and input {} has {}",
                 v.in(0).dtype.ToString(), i, v.in(i).dtype.ToString());
    }
  }
  return Ok();
}

Status CheckReduceDType(const std::string& kind, DType t) {
  const bool logical = kind == "any" || kind == "all";
  const bool ordered = kind == "max" || kind == "min";
  const bool fits = t.IsBool() ? logical || ordered : !logical && (t.IsFloat() || t.IsInt());
  if (fits) return Ok();
  return Bad("expected a {} input for reduce of kind {}, but got {}",
             logical ? "bool" : "float or integer", kind, t.ToString());
}

std::vector<Expr> Reduced(const std::vector<Expr>& dims, const std::vector<int64_t>& axes,
                          bool keep) {
  std::vector<Expr> out;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!gone) out.push_back(dims[i]);
    if (gone && keep) out.push_back(IndexConst(1));
  }
  return out;
}

}  // namespace

Expected<TensorType> TypeReduce(const OpView& v) {
  TN_RETURN_IF_ERROR(CheckReduceDType(v.attrs.GetString("kind"), v.in(0).dtype));
  const std::vector<int64_t> axes = v.attrs.GetInts("axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= v.in(0).rank() || (i > 0 && axes[i] <= axes[i - 1])) {
      return Bad("expected axes to be sorted, distinct and below the rank {}, but got {}",
                 v.in(0).rank(), ToString(AttrValue(axes)));
    }
  }
  return TensorType{v.in(0).dtype,
                    Reduced(v.in(0).dims, axes, v.attrs.Get<bool>("keepdims", false))};
}

Expected<TensorType> TypeArgReduce(const OpView& v) {
  TN_RETURN_IF_ERROR(RequireNumber(v));
  TN_ASSIGN_OR_RETURN(int axis, Axis(v, "axis", v.in(0).rank()));
  const Expr& size = v.in(0).dims[static_cast<size_t>(axis)];
  if (IsZero(size)) return Bad("expected a reduced axis of at least 1, but got 0");
  if (v.constraints && !AsInt(size)) v.constraints->push_back(Le(IndexConst(1), size));
  return TensorType{DType::Int(64),
                    Reduced(v.in(0).dims, {axis}, v.attrs.Get<bool>("keepdims", false))};
}

Expected<Types> TypeTopK(const OpView& v) {
  TN_RETURN_IF_ERROR(RequireNumber(v));
  TN_ASSIGN_OR_RETURN(int axis, Axis(v, "axis", v.in(0).rank()));
  const std::vector<Expr>& k = v.exprs.find("k")->second;
  if (k.size() != 1) return Bad("expected one entry in k, but got {}", k.size());
  std::vector<Expr> dims = v.in(0).dims;
  Expr& dim = dims[static_cast<size_t>(axis)];
  if (AsInt(k[0]) && AsInt(dim) ? *AsInt(k[0]) > *AsInt(dim) : DimRange(DimSub(dim, k[0])).max < 0)
    return Bad("expected k of at most {}, but got {}", DimText(dim), DimText(k[0]));
  if (v.constraints && !(AsInt(k[0]) && AsInt(dim))) v.constraints->push_back(Le(k[0], dim));
  dim = k[0];
  return Types{TensorType{v.in(0).dtype, dims}, TensorType{DType::Int(64), dims}};
}

Expected<TensorType> TypeSearchSorted(const OpView& v) {
  TN_RETURN_IF_ERROR(RequireNumber(v));
  TN_RETURN_IF_ERROR(RequireOneDType(v));
  if (v.in(0).rank() != 1)
    return Bad("expected one axis of sorted elements, but got {}", v.in(0).ToString());
  return TensorType{DType::Int(64), v.in(1).dims};
}

Expected<TensorType> TypeAlongAxis(const OpView& v) {
  TN_RETURN_IF_ERROR(RequireNumber(v));
  TN_ASSIGN_OR_RETURN([[maybe_unused]] int axis, Axis(v, "axis", v.in(0).rank()));
  return TensorType{v.in(0).dtype, v.in(0).dims};
}

Expected<TensorType> TypeAlongAxisFloat(const OpView& v) {
  TN_RETURN_IF_ERROR(RequireFloat(v));
  return TypeAlongAxis(v);
}

Expected<TensorType> TypeLayerNorm(const OpView& v) {
  TN_RETURN_IF_ERROR(RequireFloat(v));
  TN_RETURN_IF_ERROR(RequireOneDType(v));
  TN_ASSIGN_OR_RETURN([[maybe_unused]] int axis, Axis(v, "axis", v.in(0).rank()));
  for (size_t i = 1; i < v.inputs.size(); ++i) {
    if (v.Has(i)) TN_RETURN_IF_ERROR(CheckBroadcastsTo(v, v.in(i).dims, v.in(0).dims));
  }
  return TensorType{v.in(0).dtype, v.in(0).dims};
}

Expected<TensorType> TypeBatchNorm(const OpView& v) {
  TN_RETURN_IF_ERROR(RequireFloat(v));
  TN_RETURN_IF_ERROR(RequireOneDType(v));
  if (v.in(0).rank() < 2)
    return Bad("expected an input of rank 2 or more, but got {}", DimsText(v.in(0).dims));
  for (size_t i = 1; i < 5; ++i) {
    if (v.in(i).rank() != 1) {
      return Bad("expected one entry per channel in input {}, but got {}", i,
                 DimsText(v.in(i).dims));
    }
    TN_RETURN_IF_ERROR(RequireEqual(v, v.in(0).dims[1], v.in(i).dims[0], "the number of channels"));
  }
  return TensorType{v.in(0).dtype, v.in(0).dims};
}

Expected<TensorType> TypeMatMul(const OpView& v) {
  TN_RETURN_IF_ERROR(RequireNumber(v));
  TN_ASSIGN_OR_RETURN(const ContractionTypes types,
                      ContractionTypesOf(v.in(0).dtype, v.in(1).dtype, v.attrs));
  const std::vector<Expr>& a = v.in(0).dims;
  const std::vector<Expr>& b = v.in(1).dims;
  if (a.size() < 2 || b.size() < 2)
    return Bad("expected matrices, but got {} and {}", DimsText(a), DimsText(b));
  const bool ta = v.attrs.Get<bool>("trans_a", false), tb = v.attrs.Get<bool>("trans_b", false);
  const Expr& inner_a = a[a.size() - (ta ? 2 : 1)];
  const Expr& inner_b = b[b.size() - (tb ? 1 : 2)];
  if (ProveDifferent(inner_a, inner_b)) {
    return Bad("expected equal inner dims, but got {} and {} in {}{} and {}{}", DimText(inner_a),
               DimText(inner_b), DimsText(a), ta ? "ᵀ" : "", DimsText(b), tb ? "ᵀ" : "");
  }
  TN_RETURN_IF_ERROR(RequireEqual(v, inner_a, inner_b, "inner dims"));
  TN_ASSIGN_OR_RETURN(std::vector<Expr> dims,
                      BroadcastDims(v, {a.begin(), a.end() - 2}, {b.begin(), b.end() - 2}));
  dims.push_back(a[a.size() - (ta ? 1 : 2)]);
  dims.push_back(b[b.size() - (tb ? 2 : 1)]);
  return TensorType{types.result, std::move(dims)};
}

Expected<TensorType> TypeSplitMatMul(const OpView& v) {
  const TensorType &a = v.in(0), &parts = v.in(1);
  if (a.dtype != DType::Float(32) || parts.dtype != DType::BFloat16())
    return Bad("expected f32 and bf16, but got {} and {}", a.dtype.ToString(),
               parts.dtype.ToString());
  if (a.rank() < 2 || parts.rank() != 3 || AsInt(parts.dims[0]) != 2)
    return Bad("expected a matrix and two parts of one, but got {} and {}", DimsText(a.dims),
               DimsText(parts.dims));
  const bool trans = v.attrs.Get<bool>("trans_b", false);
  const Expr &k = parts.dims[trans ? 2 : 1], &n = parts.dims[trans ? 1 : 2];
  if (!AsInt(k) || !AsInt(n) || AsInt(a.dims.back()) != AsInt(k))
    return Bad("expected equal inner dims that are numbers, but got {} and {}", DimsText(a.dims),
               DimsText(parts.dims));
  std::vector<Expr> dims = a.dims;
  dims.back() = n;
  return TensorType{a.dtype, std::move(dims)};
}

Expected<TensorType> TypeBlockMatMul(const OpView& v) {
  const DType f32 = DType::Float(32);
  const int64_t bits = v.attrs.GetInt("bits"), block = v.attrs.GetInt("block");
  if (v.in(0).dtype != f32 || v.in(1).dtype != DType::UInt(8) || v.in(2).dtype != f32 ||
      v.in(3).dtype != f32) {
    return Bad("expected f32, u8, f32 and f32, but got {}, {}, {} and {}", v.in(0).dtype.ToString(),
               v.in(1).dtype.ToString(), v.in(2).dtype.ToString(), v.in(3).dtype.ToString());
  }
  if ((bits != 2 && bits != 4 && bits != 8) || block < 1 || block > INT32_MAX ||
      block % (8 / bits) != 0)
    return Bad("expected codes of 2, 4 or 8 bits in blocks of whole bytes, but got {} and {}", bits,
               block);
  const std::vector<Expr>&a = v.in(0).dims, &codes = v.in(1).dims;
  if (a.size() < 2 || codes.size() != 2)
    return Bad("expected matrices, but got {} and {}", DimsText(a), DimsText(codes));
  const std::optional<int64_t> depth = AsInt(a.back()), n = AsInt(codes[0]);
  if (!depth || !n)
    return Bad("expected numbers of rows and columns, but got {} and {}", DimsText(a),
               DimsText(codes));
  const int64_t blocks = *depth / block + (*depth % block != 0);
  const std::vector<Expr> factors = {codes[0], IndexConst(blocks)};
  const auto is = [](const std::vector<Expr>& dims, int64_t rows, int64_t columns) {
    return dims.size() == 2 && AsInt(dims[0]) == rows && AsInt(dims[1]) == columns;
  };
  if (blocks > (int64_t{1} << 40) / block || !is(codes, *n, blocks * (block * bits / 8)) ||
      !is(v.in(2).dims, *n, blocks) || !is(v.in(3).dims, *n, blocks)) {
    return Bad(
        "expected codes, scales and offsets of {} blocks of {} codes of {} bits, but got {}, {} "
        "and {}",
        blocks, block, bits, DimsText(codes), DimsText(v.in(2).dims), DimsText(v.in(3).dims));
  }
  std::vector<Expr> dims = a;
  dims.back() = codes[0];
  return TensorType{f32, std::move(dims)};
}

namespace {

// Sizes beyond this are taken for nonsense: it keeps the arithmetic below far from overflow.
constexpr int64_t kMostWindow = int64_t{1} << 31;

struct Window {
  std::vector<Expr> kernel;
  std::vector<int64_t> strides, dilations, pads;
  bool ceil_mode = false;
};

Status CheckList(const char* name, const std::vector<int64_t>& list, size_t count, int64_t least) {
  if (list.size() != count)
    return Bad("expected {} entries in {}, but got {}", count, name, list.size());
  for (int64_t x : list) {
    if (x < least || x > kMostWindow) {
      return Bad("expected {} in {}..{}, but got {}", name, least, kMostWindow,
                 ToString(AttrValue(list)));
    }
  }
  return Ok();
}

Expected<Window> ReadWindow(const OpView& v, std::vector<Expr> kernel) {
  const size_t n = v.in(0).dims.size() - 2;
  Window w{std::move(kernel), v.attrs.GetInts("strides"), v.attrs.GetInts("dilations"),
           v.attrs.GetInts("pads"), v.attrs.Get<bool>("ceil_mode", false)};
  if (w.kernel.size() != n)
    return Bad("expected {} entries in kernel, but got {}", n, w.kernel.size());
  for (const Expr& k : w.kernel) {
    const int64_t size = AsInt(k).value_or(1);
    if (size < 1 || size > kMostWindow)
      return Bad("expected kernel in 1..{}, but got {}", kMostWindow, DimsText(w.kernel));
  }
  TN_RETURN_IF_ERROR(CheckList("strides", w.strides, n, 1));
  TN_RETURN_IF_ERROR(CheckList("dilations", w.dilations, n, 1));
  TN_RETURN_IF_ERROR(CheckList("pads", w.pads, 2 * n, 0));
  return w;
}

// The out dim of one spatial axis (ops.def, conv and max_pool).
Expected<Expr> WindowDim(const Window& w, size_t i, const Expr& dim) {
  const size_t n = w.kernel.size();
  const Expr reach =
      DimMul(DimSub(w.kernel[i], IndexConst(1)), IndexConst(w.dilations[i]));  // less one
  const int64_t begin = w.pads[i], end = w.pads[n + i];
  const Expr stride = IndexConst(w.strides[i]);
  const Expr room = DimSub(DimAdd(dim, IndexConst(begin + end - 1)), reach);
  // With ceil_mode as much may lack as rounding up makes whole again.
  const int64_t lacking = w.ceil_mode ? w.strides[i] - 1 : 0;
  if (std::optional<int64_t> r = AsInt(room); r && *r + lacking < 0) {
    return Bad(
        "expected spatial axis {} to hold its window, but {} padded by {} and {} is less than {}",
        i, DimText(dim), begin, end, DimText(DimAdd(reach, IndexConst(1))));
  }
  if (!w.ceil_mode) return DimAdd(DimFloorDiv(room, stride), IndexConst(1));
  const Expr rounded = DimAdd(DimCeilDiv(room, stride), IndexConst(1));
  // (rounded - 1) * stride >= dim + begin: the last window begins in the end padding.
  const Expr last = DimMul(DimSub(rounded, IndexConst(1)), stride);
  const Expr limit = DimAdd(dim, IndexConst(begin));
  if (AsInt(last) && AsInt(limit))
    return *AsInt(last) >= *AsInt(limit) ? DimSub(rounded, IndexConst(1)) : rounded;
  // At most ceil(limit / stride) windows begin before `limit`.
  return DimMin(rounded, DimCeilDiv(limit, stride));
}

Expected<std::vector<Expr>> WindowDims(const OpView& v, const Window& w, const Expr& channels) {
  const std::vector<Expr>& x = v.in(0).dims;
  std::vector<Expr> dims = {x[0], channels};
  for (size_t i = 0; i + 2 < x.size(); ++i) {
    TN_ASSIGN_OR_RETURN(Expr dim, WindowDim(w, i, x[i + 2]));
    dims.push_back(std::move(dim));
  }
  return dims;
}

// What a call brings may be too small for a window, of which the sizes above would make none, or a
// number below that.
void RequireWindows(const OpView& v, const Window& w) {
  const size_t n = w.kernel.size();
  for (size_t i = 0; v.constraints && i < n; ++i) {
    if (AsInt(w.kernel[i]) && AsInt(v.in(0).dims[i + 2])) continue;
    const Expr reach = DimMul(DimSub(w.kernel[i], IndexConst(1)), IndexConst(w.dilations[i]));
    const int64_t lacking = w.ceil_mode ? w.strides[i] - 1 : 0;
    const Expr there = DimAdd(v.in(0).dims[i + 2], IndexConst(w.pads[i] + w.pads[n + i] + lacking));
    v.constraints->push_back(Le(DimAdd(reach, IndexConst(1)), there));
  }
}

Status CheckConvChannels(const OpView& v, int64_t group) {
  const std::vector<Expr>& x = v.in(0).dims;
  const std::vector<Expr>& w = v.in(1).dims;
  if (group < 1) return Bad("expected group of at least 1, but got {}", group);
  const Expr inputs = DimMul(w[1], IndexConst(group));
  if (ProveDifferent(inputs, x[1])) {
    return Bad("expected {} input channels (weight {} and group {}), but got {}", DimText(inputs),
               DimsText(w), group, DimsText(x));
  }
  TN_RETURN_IF_ERROR(RequireEqual(v, inputs, x[1], "input channels"));
  if (std::optional<int64_t> m = AsInt(w[0]); m && *m % group != 0) {
    return Bad("expected group {} to divide the {} output channels", group, *m);
  } else if (!m && group > 1 && v.constraints) {
    v.constraints->push_back(Eq(w[0] % IndexConst(group), IndexConst(0)));
  }
  return Ok();
}

}  // namespace

Expected<TensorType> TypeConv(const OpView& v) {
  TN_RETURN_IF_ERROR(RequireNumber(v));
  TN_ASSIGN_OR_RETURN(const ContractionTypes types,
                      ContractionTypesOf(v.in(0).dtype, v.in(1).dtype, v.attrs));
  const TensorType& x = v.in(0);
  const TensorType& w = v.in(1);
  if (x.rank() < 3) return Bad("expected an input of rank 3 or more, but got {}", DimsText(x.dims));
  if (w.rank() != x.rank()) {
    return Bad("expected a weight of rank {} like the input, but got {}", x.rank(),
               DimsText(w.dims));
  }
  TN_RETURN_IF_ERROR(CheckConvChannels(v, v.attrs.GetInt("group", 1)));
  if (v.Has(2)) {
    if (v.in(2).rank() != 1)
      return Bad("expected a bias of rank 1, but got {}", DimsText(v.in(2).dims));
    if (v.in(2).dtype != types.result)
      return Bad("expected a bias of {} like the result, but got {}", types.result.ToString(),
                 v.in(2).dtype.ToString());
    TN_RETURN_IF_ERROR(RequireEqual(v, w.dims[0], v.in(2).dims[0], "output channels and bias"));
  }
  TN_ASSIGN_OR_RETURN(Window window, ReadWindow(v, {w.dims.begin() + 2, w.dims.end()}));
  TN_ASSIGN_OR_RETURN(std::vector<Expr> dims, WindowDims(v, window, w.dims[0]));
  RequireWindows(v, window);
  return TensorType{types.result, std::move(dims)};
}

Expected<TensorType> TypeWinogradConv(const OpView& v) {
  const TensorType &x = v.in(0), &u = v.in(1);
  if (x.dtype != DType::Float(32) || u.dtype != DType::Float(32) || x.rank() != 4 || u.rank() != 4)
    return Bad("expected f32 of rank 4, but got {} and {}", DimsText(x.dims), DimsText(u.dims));
  const auto n = AsInt(u.dims[2]);
  if (!n || AsInt(u.dims[3]) != n || (*n != 4 && *n != 6))
    return Bad("expected weights of 4 x 4 or 6 x 6, but got {}", DimsText(u.dims));
  TN_RETURN_IF_ERROR(CheckConvChannels(v, 1));
  if (v.Has(2)) {
    if (v.in(2).rank() != 1 || v.in(2).dtype != x.dtype)
      return Bad("expected a bias of rank 1 in f32, but got {}", DimsText(v.in(2).dims));
    TN_RETURN_IF_ERROR(RequireEqual(v, u.dims[0], v.in(2).dims[0], "output channels and bias"));
  }
  const std::vector<int64_t> pads = v.attrs.GetInts("pads");
  TN_RETURN_IF_ERROR(CheckList("pads", pads, 4, 0));
  const Window window{{IndexConst(3), IndexConst(3)}, {1, 1}, {1, 1}, pads, false};
  TN_ASSIGN_OR_RETURN(std::vector<Expr> dims, WindowDims(v, window, u.dims[0]));
  return TensorType{x.dtype, std::move(dims)};
}

static std::vector<Expr> Numbers(const std::vector<int64_t>& list) {
  std::vector<Expr> out;
  for (int64_t k : list) out.push_back(IndexConst(k));
  return out;
}

static Expected<TensorType> PoolType(const OpView& v) {
  TN_RETURN_IF_ERROR(RequireNumber(v));
  if (v.in(0).rank() < 3)
    return Bad("expected an input of rank 3 or more, but got {}", DimsText(v.in(0).dims));
  TN_ASSIGN_OR_RETURN(Window window, ReadWindow(v, Numbers(v.attrs.GetInts("kernel"))));
  TN_ASSIGN_OR_RETURN(std::vector<Expr> dims, WindowDims(v, window, v.in(0).dims[1]));
  RequireWindows(v, window);
  return TensorType{v.in(0).dtype, std::move(dims)};
}

Expected<Types> TypeMaxPool(const OpView& v) {
  TN_ASSIGN_OR_RETURN(TensorType pooled, PoolType(v));
  return Types{pooled, TensorType{DType::Int(64), pooled.dims}};
}

Expected<TensorType> TypePoolFloat(const OpView& v) {
  TN_RETURN_IF_ERROR(RequireFloat(v));
  return PoolType(v);
}

Expected<TensorType> TypeAttention(const OpView& v) {
  const std::vector<Expr>&q = v.in(0).dims, &k = v.in(1).dims, &value = v.in(2).dims;
  TN_RETURN_IF_ERROR(RequireFloat(v));
  for (size_t i = 1; i < 3; ++i) {
    if (v.in(i).dtype != v.in(0).dtype) return Bad("expected q, k and v of one dtype");
  }
  const size_t r = q.size();
  if (r < 2 || k.size() != r || value.size() != r) {
    return Bad("expected q, k and v of one rank, at least 2, but got {}, {} and {}", DimsText(q),
               DimsText(k), DimsText(value));
  }
  for (size_t i = 0; i + 2 < r; ++i) {
    TN_RETURN_IF_ERROR(RequireEqual(v, q[i], k[i], "leading dims of q and k"));
    TN_RETURN_IF_ERROR(RequireEqual(v, q[i], value[i], "leading dims of q and v"));
  }
  TN_RETURN_IF_ERROR(RequireEqual(v, q[r - 1], k[r - 1], "last dims of q and k"));
  TN_RETURN_IF_ERROR(RequireEqual(v, k[r - 2], value[r - 2], "lengths of k and v"));
  std::vector<Expr> scores = q;
  scores[r - 1] = k[r - 2];
  if (v.Has(3)) {
    const DType mask = v.in(3).dtype, own = v.in(0).dtype;
    if (!mask.IsBool() && mask != own && mask != AccumulatorOf(own)) {
      return Bad("expected a mask of bool or {}, but got {}", own.ToString(), mask.ToString());
    }
    TN_RETURN_IF_ERROR(CheckBroadcastsTo(v, v.in(3).dims, scores));
  }
  std::vector<Expr> dims = q;
  dims[r - 1] = value[r - 1];
  return TensorType{v.in(0).dtype, std::move(dims)};
}

}  // namespace tenon::graph::rules

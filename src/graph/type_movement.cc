// Type rules of operators that move elements.
//
// Most of these rules are sums over one axis or maps between lists of dims, with sizes that are
// expressions: a concat of f32[n, 8] and f32[m, 8] along axis 0 is f32[n + m, 8] and asks that the
// other dims be equal; a transpose permutes them; a slice with starts [1] and steps [2] of n - 2
// elements has as many as its attribute says, and what must hold of n for that (the last one read
// is inside) becomes a constraint of the graph:
//
//   %1: f32[n + m, 8] = concat(%0, %2) {axis: 0}
//
// A reshape is checked by products: both sides have the same number of elements, shown by dividing
// out what they have in common.

#include <algorithm>
#include <cmath>

#include "graph/graph.h"
#include "graph/rules.h"

namespace tenon::graph::rules {
namespace {

const std::vector<Expr>& Exprs(const OpView& v, const char* name) {
  static const std::vector<Expr> kNone;
  auto it = v.exprs.find(name);
  return it == v.exprs.end() ? kNone : it->second;
}

Status CheckLength(const char* name, size_t length, size_t expected) {
  if (length == expected) return Ok();
  return Bad("expected {} entries in {}, but got {}", expected, name, length);
}

Status RequireIndices(const OpView& v) {
  const DType t = v.in(1).dtype;
  if (t == DType::Int(32) || t == DType::Int(64)) return Ok();
  return Bad("expected indices of i32 or i64, but got {}", t.ToString());
}

}  // namespace

Expected<TensorType> TypeReshape(const OpView& v) {
  const std::vector<Expr>& shape = Exprs(v, "shape");
  const Expr have = DimProduct(v.in(0).dims), want = DimProduct(shape);
  if (ProveDifferent(have, want)) {
    return Bad("expected a shape of {} elements like the input's {}, but got {} with {}",
               DimText(have), DimsText(v.in(0).dims), DimsText(shape), DimText(want));
  }
  TN_RETURN_IF_ERROR(RequireEqual(v, have, want, "element counts"));
  return TensorType{v.in(0).dtype, shape};
}

Expected<TensorType> TypeTranspose(const OpView& v) {
  const std::vector<int64_t> perm = v.attrs.GetInts("perm");
  const std::vector<Expr>& x = v.in(0).dims;
  std::vector<bool> seen(x.size(), false);
  std::vector<Expr> dims;
  for (int64_t p : perm) {
    if (p < 0 || p >= v.in(0).rank() || seen[static_cast<size_t>(p)]) break;
    seen[static_cast<size_t>(p)] = true;
    dims.push_back(x[static_cast<size_t>(p)]);
  }
  if (perm.size() != x.size() || dims.size() != x.size()) {
    return Bad("expected perm to permute {} axes, but got {}", x.size(), ToString(AttrValue(perm)));
  }
  return TensorType{v.in(0).dtype, std::move(dims)};
}

Expected<TensorType> TypeSlice(const OpView& v) {
  const std::vector<Expr>& x = v.in(0).dims;
  const std::vector<Expr>&starts = Exprs(v, "starts"), &sizes = Exprs(v, "sizes");
  const std::vector<int64_t> steps = v.attrs.GetInts("steps");
  TN_RETURN_IF_ERROR(CheckLength("starts", starts.size(), x.size()));
  TN_RETURN_IF_ERROR(CheckLength("sizes", sizes.size(), x.size()));
  TN_RETURN_IF_ERROR(CheckLength("steps", steps.size(), x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    if (steps[i] == 0) return Bad("expected steps other than 0 (axis {})", i);
    std::optional<int64_t> start = AsInt(starts[i]), size = AsInt(sizes[i]), dim = AsInt(x[i]);
    if (!start || !size || *size <= 0) continue;
    const __int128 last =
        static_cast<__int128>(*start) + static_cast<__int128>(*size - 1) * steps[i];
    if (*start < 0 || last < 0 || (dim && (*start >= *dim || last >= *dim))) {
      return Bad("expected a slice inside axis {} of {}, but got start {}, size {}, step {}", i,
                 DimText(x[i]), *start, *size, steps[i]);
    }
  }
  return TensorType{v.in(0).dtype, sizes};
}

Expected<TensorType> TypeConcat(const OpView& v) {
  TensorType out{v.in(0).dtype, v.in(0).dims};
  TN_ASSIGN_OR_RETURN(int axis, Axis(v, "axis", out.rank()));
  const size_t at = static_cast<size_t>(axis);
  for (size_t i = 1; i < v.inputs.size(); ++i) {
    const TensorType& x = v.in(i);
    if (x.dtype != out.dtype) {
      return Bad("expected all inputs to have one dtype, but input 0 has {} and input {} has {}",
                 out.dtype.ToString(), i, x.dtype.ToString());
    }
    bool fits = x.rank() == out.rank();
    for (size_t d = 0; fits && d < x.dims.size(); ++d)
      fits = d == at || !ProveDifferent(x.dims[d], out.dims[d]);
    if (!fits) {
      return Bad("expected inputs that differ along axis {} only, but got {} and {}", axis,
                 DimsText(v.in(0).dims), DimsText(x.dims));
    }
    for (size_t d = 0; d < x.dims.size(); ++d) {
      if (d != at) TN_RETURN_IF_ERROR(RequireEqual(v, x.dims[d], out.dims[d], "dims"));
    }
    out.dims[at] = DimAdd(out.dims[at], x.dims[at]);
  }
  return out;
}

Expected<TensorType> TypeExpand(const OpView& v) {
  const std::vector<Expr>& shape = Exprs(v, "shape");
  TN_RETURN_IF_ERROR(CheckBroadcastsTo(v, v.in(0).dims, shape));
  return TensorType{v.in(0).dtype, shape};
}

Expected<TensorType> TypePad(const OpView& v) {
  const std::vector<Expr>& x = v.in(0).dims;
  const std::vector<Expr>& pads = Exprs(v, "pads");
  const std::string mode = v.attrs.GetString("mode");
  TN_RETURN_IF_ERROR(CheckLength("pads", pads.size(), 2 * x.size()));
  if (v.Has(1) && (v.in(1).rank() != 0 || v.in(1).dtype != v.in(0).dtype)) {
    return Bad("expected a scalar of {} as padding value, but got {}", v.in(0).dtype.ToString(),
               v.in(1).ToString());
  }
  TensorType out{v.in(0).dtype, {}};
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t begin = AsInt(pads[i]).value_or(0), end = AsInt(pads[x.size() + i]).value_or(0);
    if (std::max(std::abs(begin / 2), std::abs(end / 2)) > (Limits::kElements / 2)) {
      return Bad("expected sensible padding, but got {} and {} on axis {}", begin, end, i);
    }
    const int64_t most = std::max(begin, end);
    std::optional<int64_t> dim = AsInt(x[i]);
    if (dim && mode == "reflect" && most > 0 && most >= *dim) {
      return Bad("expected reflected padding below axis {}'s dim {}, but got {}", i, *dim, most);
    }
    if (dim && (mode == "edge" || mode == "wrap") && most > 0 &&
        *dim + std::min({begin, end, int64_t{0}}) <= 0) {
      return Bad("expected a non-empty axis {} to pad by its own elements, but got {}", i, *dim);
    }
    Expr size = DimAdd(x[i], DimAdd(pads[i], pads[x.size() + i]));
    if (AsInt(size) && *AsInt(size) < 0)
      return Bad("expected padding that leaves axis {} a size, but got {}", i, DimText(size));
    out.dims.push_back(std::move(size));
  }
  return out;
}

// An index of a constant that no call can have meant. Of an axis without elements any index gives
// 0.
static Status CheckIndex(const OpView& v, const Expr& index, int axis) {
  const Expr& dim = v.in(0).dims[static_cast<size_t>(axis)];
  const std::optional<int64_t> i = AsInt(index), d = AsInt(dim);
  if (!i || !d || *d == 0 || (-*d <= *i && *i < *d)) return Ok();
  return Bad("expected indices in {}..{} into axis {}, but got {}", -*d, *d - 1, axis, *i);
}

static Status CheckIndices(const OpView& v, int axis) {
  if (const Elements* indices = v.known(1)) {
    for (const Expr& index : *indices) TN_RETURN_IF_ERROR(CheckIndex(v, index, axis));
  }
  return Ok();
}

Expected<TensorType> TypeGather(const OpView& v) {
  TN_RETURN_IF_ERROR(RequireIndices(v));
  TN_ASSIGN_OR_RETURN(int axis, Axis(v, "axis", v.in(0).rank()));
  TN_RETURN_IF_ERROR(CheckIndices(v, axis));
  const std::vector<Expr>&x = v.in(0).dims, &indices = v.in(1).dims;
  std::vector<Expr> dims(x.begin(), x.begin() + axis);
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), x.begin() + axis + 1, x.end());
  return TensorType{v.in(0).dtype, std::move(dims)};
}

Expected<TensorType> TypeGatherElements(const OpView& v) {
  TN_RETURN_IF_ERROR(RequireIndices(v));
  const std::vector<Expr>&x = v.in(0).dims, &indices = v.in(1).dims;
  if (x.size() != indices.size()) {
    return Bad("expected indices of the input's rank, but got {} and {}", DimsText(indices),
               DimsText(x));
  }
  TN_ASSIGN_OR_RETURN(int axis, Axis(v, "axis", v.in(0).rank()));
  TN_RETURN_IF_ERROR(CheckIndices(v, axis));
  for (size_t i = 0; i < x.size(); ++i) {
    std::optional<int64_t> have = AsInt(x[i]), want = AsInt(indices[i]);
    if (static_cast<int>(i) != axis && have && want && *want > *have) {
      return Bad("expected indices within the input's axes, but got {} for {}", DimsText(indices),
                 DimsText(x));
    }
    if (static_cast<int>(i) != axis && !(have && want) && !ProveEqual(x[i], indices[i]) &&
        v.constraints) {
      v.constraints->push_back(Le(indices[i], x[i]));
    }
  }
  return TensorType{v.in(0).dtype, indices};
}

Expected<TensorType> TypeGatherNd(const OpView& v) {
  TN_RETURN_IF_ERROR(RequireIndices(v));
  const std::vector<Expr>&x = v.in(0).dims, &indices = v.in(1).dims;
  const int64_t batch = v.attrs.GetInt("batch_dims");
  if (x.empty() || indices.empty())
    return Bad("expected tensors of rank 1 or more, but got {} and {}", DimsText(x),
               DimsText(indices));
  const int64_t least = static_cast<int64_t>(std::min(x.size(), indices.size()));
  if (batch < 0 || batch >= least)
    return Bad("expected batch_dims in 0..{}, but got {}", least - 1, batch);
  std::optional<int64_t> q = AsInt(indices.back());
  if (!q || *q < 1 || *q > static_cast<int64_t>(x.size()) - batch) {
    return Bad("expected the last dim of indices in 1..{}, but got {}",
               static_cast<int64_t>(x.size()) - batch, DimText(indices.back()));
  }
  for (int64_t i = 0; i < batch; ++i) {
    TN_RETURN_IF_ERROR(
        RequireEqual(v, x[static_cast<size_t>(i)], indices[static_cast<size_t>(i)], "batch dims"));
  }
  for (int64_t k = 0; v.known(1) && k < static_cast<int64_t>(v.known(1)->size()); ++k) {
    TN_RETURN_IF_ERROR(
        CheckIndex(v, (*v.known(1))[static_cast<size_t>(k)], static_cast<int>(batch + k % *q)));
  }
  std::vector<Expr> dims(indices.begin(), indices.end() - 1);
  dims.insert(dims.end(), x.begin() + batch + *q, x.end());
  return TensorType{v.in(0).dtype, std::move(dims)};
}

Expected<TensorType> TypeScatter(const OpView& v) {
  TN_RETURN_IF_ERROR(RequireIndices(v));
  const TensorType &x = v.in(0), &indices = v.in(1), &updates = v.in(2);
  const bool any = v.attrs.GetString("reduction") == "none";
  if (updates.dtype != x.dtype)
    return Bad("expected updates of {}, but got {}", x.dtype.ToString(), updates.ToString());
  if (x.dtype.IsString() || (x.dtype.IsBool() && !any))
    return Bad("expected float or integer elements to {}, but got {}",
               v.attrs.GetString("reduction"), x.dtype.ToString());
  if (updates.rank() != x.rank() || indices.rank() != x.rank()) {
    return Bad("expected updates and indices of the input's rank, but got {} and {} for {}",
               DimsText(updates.dims), DimsText(indices.dims), DimsText(x.dims));
  }
  TN_ASSIGN_OR_RETURN(int axis, Axis(v, "axis", x.rank()));
  TN_RETURN_IF_ERROR(CheckBroadcastsTo(v, indices.dims, updates.dims));
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (static_cast<int>(i) == axis || ProveEqual(x.dims[i], updates.dims[i])) continue;
    if (DimRange(DimSub(x.dims[i], updates.dims[i])).max < 0) {
      return Bad("expected updates within the input's axes, but got {} for {}",
                 DimsText(updates.dims), DimsText(x.dims));
    }
    if (v.constraints && !(AsInt(x.dims[i]) && AsInt(updates.dims[i])))
      v.constraints->push_back(Le(updates.dims[i], x.dims[i]));
  }
  return TensorType{x.dtype, x.dims};
}

Expected<TensorType> TypeResize(const OpView& v) {
  const std::vector<Expr>&x = v.in(0).dims, &sizes = Exprs(v, "sizes");
  TN_RETURN_IF_ERROR(CheckLength("sizes", sizes.size(), x.size()));
  const auto scales = v.attrs.Get<std::vector<double>>("scales", {});
  const auto roi = v.attrs.Get<std::vector<double>>("roi", {});
  if (!scales.empty()) TN_RETURN_IF_ERROR(CheckLength("scales", scales.size(), x.size()));
  for (double s : scales) {
    if (!(s > 0) || !std::isfinite(s))
      return Bad("expected finite scales above 0, but got {}", ToString(AttrValue(scales)));
  }
  const bool crops = v.attrs.GetString("coordinates") == "tf_crop_and_resize";
  if (crops) TN_RETURN_IF_ERROR(CheckLength("roi", roi.size(), 2 * x.size()));
  if (v.attrs.GetString("mode") != "nearest" && !v.in(0).dtype.IsFloat()) {
    return Bad("expected a float input for mode {}, but got {}", v.attrs.GetString("mode"),
               v.in(0).dtype.ToString());
  }
  for (size_t i = 0; i < x.size(); ++i) {
    if (IsZero(x[i]) && AsInt(sizes[i]) && !IsZero(sizes[i]))
      return Bad("expected a non-empty axis {} to resize", i);
    // How far the filter reaches is a matter of the scale.
    if (v.attrs.Get<bool>("antialias", false) && scales.empty() && !ProveEqual(x[i], sizes[i]) &&
        !(AsInt(x[i]) && AsInt(sizes[i])))
      return Bad("expected known sizes to resize axis {} with antialiasing, but got {} from {}", i,
                 DimText(sizes[i]), DimText(x[i]));
  }
  return TensorType{v.in(0).dtype, sizes};
}

Expected<TensorType> TypeShape(const OpView& v) {
  const int64_t start = v.attrs.GetInt("start"), end = v.attrs.GetInt("end");
  if (start < 0 || end < start || end > v.in(0).rank()) {
    return Bad("expected 0 ≤ start ≤ end ≤ {}, but got {} and {}", v.in(0).rank(), start, end);
  }
  return TensorType{DType::Int(64), {IndexConst(end - start)}};
}

Expected<TensorType> TypeDim(const OpView& v) {
  const std::vector<Expr>& size = Exprs(v, "size");
  TN_RETURN_IF_ERROR(CheckLength("size", size.size(), 1));
  if (!Exprs(v, "most").empty())
    TN_RETURN_IF_ERROR(CheckLength("most", Exprs(v, "most").size(), 1));
  const VarNode* dim = As<VarNode>(size[0]);
  if (!dim || !dim->counts)
    return Bad("expected a dim that may be 0, but got {}", DimText(size[0]));
  if (v.in(0).rank() != 0 || v.in(0).dtype != DType::Int(64))
    return Bad("expected a scalar of i64, but got {}", v.in(0).ToString());
  return TensorType{DType::Int(64), {}};
}

Expected<TensorType> TypeRequire(const OpView& v) {
  TN_RETURN_IF_ERROR(CheckLength("least", Exprs(v, "least").size(), 1));
  TN_RETURN_IF_ERROR(CheckLength("end", Exprs(v, "end").size(), 1));
  if (v.in(1).rank() != 0 || v.in(1).dtype != DType::UInt(64))
    return Bad("expected a scalar of u64, but got {}", v.in(1).ToString());
  return TensorType{v.in(0).dtype, v.in(0).dims};
}

Expected<TensorType> TypeRange(const OpView& v) {
  TN_RETURN_IF_ERROR(CheckLength("size", Exprs(v, "size").size(), 1));
  if (v.in(0).rank() != 0 || v.in(1).rank() != 0 || v.in(0).dtype != v.in(1).dtype) {
    return Bad("expected two scalars of one dtype, but got {} and {}", v.in(0).ToString(),
               v.in(1).ToString());
  }
  if (v.in(0).dtype.IsBool()) return Bad("expected float or integer scalars, but got bool");
  return TensorType{v.in(0).dtype, Exprs(v, "size")};
}

Expected<TensorType> TypeOneHot(const OpView& v) {
  TN_RETURN_IF_ERROR(CheckLength("depth", Exprs(v, "depth").size(), 1));
  if (!v.in(0).dtype.IsInt())
    return Bad("expected integer indices, but got {}", v.in(0).dtype.ToString());
  if (v.in(1).rank() != 1 || !AsInt(v.in(1).dims[0]) || *AsInt(v.in(1).dims[0]) != 2) {
    return Bad("expected two values, off and on, but got {}", DimsText(v.in(1).dims));
  }
  TN_ASSIGN_OR_RETURN(int axis, Axis(v, "axis", v.in(0).rank() + 1));
  std::vector<Expr> dims = v.in(0).dims;
  dims.insert(dims.begin() + axis, Exprs(v, "depth")[0]);
  return TensorType{v.in(1).dtype, std::move(dims)};
}

}  // namespace tenon::graph::rules

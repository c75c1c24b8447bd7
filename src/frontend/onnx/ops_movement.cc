// Operators that rearrange elements: reshape and its kin, transpose, concat, split, slice, pad,
// expand, tile.
//
// ONNX moved many arguments from attributes to inputs over its versions; each function here takes
// either, and where an input must be known while compiling, says so by name. What is left is one
// form per operator of the graph: a slice has starts, sizes and steps for every axis, whatever of
// negative, absent or clamped bounds the node has. With x: f32[10], Slice(x, [-3], [100]) is
//
//   %1: f32[3] = slice(%0) {starts: [7], sizes: [3], steps: [1]}
//
// Symbolic sizes are carried through as expressions where Python's rules allow to decide the case;
// where they do not, or where arguments come with the call, the same rules are computed by nodes:
// sizes are dims that these define, and what moves is gathered (call_sizes.h).

#include <algorithm>
#include <cmath>

#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/formula.h"
#include "frontend/onnx/movement_by_call.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

using graph::DimAdd;
using graph::DimCeilDiv;
using graph::DimFloorDiv;
using graph::DimMax;
using graph::DimMin;
using graph::DimMul;
using graph::DimProduct;
using graph::DimRange;
using graph::DimSub;
using graph::ProveEqual;

// What is left of the product of `dims` after dividing by the product of `by`; common factors
// cancel as they stand.
Expr Quotient(std::vector<Expr> dims, const std::vector<Expr>& by) {
  std::vector<Expr> rest;
  for (const Expr& d : by) {
    auto it =
        std::find_if(dims.begin(), dims.end(), [&](const Expr& x) { return ProveEqual(x, d); });
    if (it != dims.end()) {
      dims.erase(it);
    } else {
      rest.push_back(d);
    }
  }
  return DimFloorDiv(DimProduct(dims), DimProduct(rest));
}

Status ImportReshape(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  bool allow_zero = false;
  if (c.opset >= 14) {
    TN_ASSIGN_OR_RETURN(allow_zero, c.Bool("allowzero", false));
  }
  if (!c.b.Known(c.In(1))) return ReshapeByCall(c, allow_zero);
  TN_ASSIGN_OR_RETURN(Elements shape, c.Known(1, "a shape"));
  const std::vector<Expr>& dims = c.Dims(0);
  std::optional<size_t> inferred;
  std::vector<Expr> others;
  for (size_t i = 0; i < shape.size(); ++i) {
    const std::optional<int64_t> n = AsInt(shape[i]);
    if (n == 0 && !allow_zero) {
      if (i >= dims.size())
        return c.Error("expected 0 in the shape to copy one of {} dims, but it stands at {}",
                       dims.size(), i);
      shape[i] = dims[i];
    } else if (n == -1) {
      if (inferred)
        return c.Error("expected at most one -1 in the shape, but got {}", graph::DimsText(shape));
      inferred = i;
      continue;
    } else if (n && *n < 0) {
      return c.Error("expected dims of -1 or more in the shape, but got {}",
                     graph::DimsText(shape));
    }
    others.push_back(shape[i]);
  }
  if (inferred) {
    if (std::any_of(others.begin(), others.end(), IsZero)) {
      return c.Error("expected a shape whose -1 can be inferred, but another dim is 0");
    }
    shape[*inferred] = Quotient(dims, others);
  }
  return c.Result(OpKind::kReshape, {c.In(0)}, {}, {{"shape", std::move(shape)}});
}

Status ImportFlatten(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", 1, c.Rank(0), true));
  const std::vector<Expr> dims = c.Dims(0);
  const std::span<const Expr> all(dims);
  const size_t at = static_cast<size_t>(axis);
  TN_ASSIGN_OR_RETURN(ValueId v,
                      c.Reshape(c.In(0), {DimProduct(all.first(at)), DimProduct(all.subspan(at))}));
  return c.SetOutput(0, v);
}

// The axes of Squeeze and Unsqueeze: an attribute until opset 12, then an input.
Expected<std::optional<std::vector<int64_t>>> ReadAxes(OpContext& c) {
  if (c.opset < 13) {
    TN_RETURN_IF_ERROR(c.Arity(1, 1));
    return c.Ints("axes");
  }
  TN_RETURN_IF_ERROR(c.Arity(1, 2));
  if (!c.Has(1)) return std::optional<std::vector<int64_t>>();
  TN_ASSIGN_OR_RETURN(std::vector<int64_t> axes, c.KnownInts(1, "axes"));
  return std::optional(std::move(axes));
}

// Whether the axes come with the call; how many there are is known.
bool AxesByCall(const OpContext& c) {
  return c.opset >= 13 && c.Has(1) && !c.b.KnownInts(c.In(1)) && c.Rank(1) == 1 &&
         AsInt(c.Dims(1)[0]).has_value();
}

Status ImportSqueeze(OpContext& c) {
  if (const auto left = c.DeclaredRank(0); left && c.opset >= 13)
    TN_RETURN_IF_ERROR(c.Fix(1, 0, std::max<int64_t>(c.Rank(0) - *left, 0)));
  if (AxesByCall(c)) return SqueezeByCall(c);
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> axes, ReadAxes(c));
  std::vector<Expr> dims;
  if (axes) {
    TN_ASSIGN_OR_RETURN(axes, c.NormalizeAxes(*axes, c.Rank(0), "axes"));
  }
  for (int64_t i = 0; i < c.Rank(0); ++i) {
    const Expr& d = c.Dims(0)[static_cast<size_t>(i)];
    const bool named = axes && std::binary_search(axes->begin(), axes->end(), i);
    if (named && graph::ProveDifferent(d, IndexConst(1))) {
      return c.Error("expected axis {} to squeeze to be 1, but got {}", i, c.Type(0).ToString());
    }
    if (named) c.b.Require(Eq(d, IndexConst(1)));
    // Kernels have a rank: for this one an open size is none of those that vanish.
    if (!axes && !AsInt(d)) {
      c.b.Require(Ne(d, IndexConst(1)));
      c.regions().AssumeRank();
    }
    if (!named && (axes || !IsOne(d))) dims.push_back(d);
  }
  TN_ASSIGN_OR_RETURN(ValueId v, c.Reshape(c.In(0), std::move(dims)));
  return c.SetOutput(0, v);
}

Status ImportUnsqueeze(OpContext& c) {
  if (const auto rank = c.DeclaredRank(0); rank && c.opset >= 13)
    TN_RETURN_IF_ERROR(c.Fix(1, 0, std::max<int64_t>(*rank - c.Rank(0), 0)));
  if (AxesByCall(c)) return UnsqueezeByCall(c);
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> axes, ReadAxes(c));
  if (!axes) return c.Error("expected axes, but they are missing");
  const int64_t rank = c.Rank(0) + static_cast<int64_t>(axes->size());
  TN_ASSIGN_OR_RETURN(axes, c.NormalizeAxes(*axes, rank, "axes"));
  std::vector<Expr> dims = c.Dims(0);
  for (int64_t axis : *axes) dims.insert(dims.begin() + axis, IndexConst(1));
  TN_ASSIGN_OR_RETURN(ValueId v, c.Reshape(c.In(0), std::move(dims)));
  return c.SetOutput(0, v);
}

Status ImportTranspose(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> perm, c.Ints("perm"));
  if (!perm) {
    perm.emplace();
    for (int64_t i = c.Rank(0); i-- > 0;) perm->push_back(i);
  }
  return c.Result(OpKind::kTranspose, {c.In(0)}, {{"perm", *perm}});
}

Status ImportConcat(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, -1));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", std::nullopt, c.Rank(0)));
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < c.num_inputs(); ++i) inputs.push_back(c.In(i));
  return c.Result(OpKind::kConcat, std::move(inputs), {{"axis", axis}});
}

// A slice in the graph's form: starts, sizes and steps for every axis.
struct SliceSpec {
  explicit SliceSpec(const std::vector<Expr>& dims)
      : starts(dims.size(), IndexConst(0)), sizes(dims), steps(dims.size(), 1) {}
  ExprAttrs exprs() const { return {{"starts", starts}, {"sizes", sizes}}; }
  std::vector<Expr> starts, sizes;
  std::vector<int64_t> steps;
};

// Python's rule for one bound: negative counts from the end, then it is clamped to [least, most].
Expr ClampBound(const Expr& bound, const Expr& dim, const Expr& least, const Expr& most) {
  const Interval range = DimRange(bound);
  // "To the end", and beyond any symbolic dim.
  if (range.min == INT32_MAX || (range.min > INT32_MAX && !AsInt(dim))) return most;
  if (range.max < -int64_t{INT32_MAX} && !AsInt(dim)) return least;
  const Expr place = range.min >= 0 ? bound
                     : range.max < 0
                         ? DimAdd(bound, dim)
                         : Select::Make(Lt(bound, IndexConst(0)), DimAdd(bound, dim), bound);
  return DimMax(least, DimMin(most, place));
}

Status SliceAxis(const OpContext& c, size_t axis, const Expr& start, const Expr& end, int64_t step,
                 SliceSpec* spec) {
  const Expr& dim = c.Dims(0)[axis];
  const Expr zero = IndexConst(0), one = IndexConst(1);
  if (step == 0) return c.Error("expected slice steps other than 0 (axis {})", axis);
  // Longer than any axis: such a step takes one element.
  step = std::clamp(step, -graph::Limits::kElements, graph::Limits::kElements);
  if (step > 0) {
    const Expr from = ClampBound(start, dim, zero, dim);
    const Expr to = ClampBound(end, dim, zero, dim);
    spec->sizes[axis] = DimMax(zero, DimCeilDiv(DimSub(to, from), IndexConst(step)));
    spec->starts[axis] = from;
  } else {
    const Expr last = DimSub(dim, one);
    const Expr from = ClampBound(start, dim, zero, last);
    const Expr to = ClampBound(end, dim, IndexConst(-1), last);
    // Of an empty axis both are -1, though a start is none below 0.
    const Expr begin = DimMin(last, from);
    spec->sizes[axis] = DimMax(zero, DimCeilDiv(DimSub(begin, to), IndexConst(-step)));
    spec->starts[axis] = from;
  }
  spec->steps[axis] = IsOne(spec->sizes[axis]) ? 1 : step;
  if (IsZero(spec->sizes[axis])) spec->starts[axis] = zero;
  return Ok();
}

Status Slice(OpContext& c, const Elements& starts, const Elements& ends,
             std::optional<std::vector<int64_t>> axes, std::optional<std::vector<int64_t>> steps) {
  if (starts.size() != ends.size() || (axes && axes->size() != starts.size()) ||
      (steps && steps->size() != starts.size())) {
    return c.Error("expected starts, ends, axes and steps of one length, but got {}, {}, {} and {}",
                   starts.size(), ends.size(), axes ? axes->size() : starts.size(),
                   steps ? steps->size() : starts.size());
  }
  SliceSpec spec(c.Dims(0));
  std::vector<bool> seen(c.Dims(0).size(), false);
  for (size_t i = 0; i < starts.size(); ++i) {
    TN_ASSIGN_OR_RETURN(int64_t axis, c.NormalizeAxis(axes ? (*axes)[i] : static_cast<int64_t>(i),
                                                      c.Rank(0), "axes"));
    const size_t at = static_cast<size_t>(axis);
    if (seen[at]) return c.Error("expected distinct axes, but {} is repeated", axis);
    seen[at] = true;
    TN_RETURN_IF_ERROR(SliceAxis(c, at, starts[i], ends[i], steps ? (*steps)[i] : 1, &spec));
  }
  return c.Result(OpKind::kSlice, {c.In(0)}, {{"steps", spec.steps}}, spec.exprs());
}

Status ImportSliceAttr(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> starts, c.Ints("starts"));
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> ends, c.Ints("ends"));
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> axes, c.Ints("axes"));
  if (!starts || !ends) return c.Error("expected the attributes starts and ends");
  return Slice(c, graph::ToElements(*starts), graph::ToElements(*ends), std::move(axes),
               std::nullopt);
}

Status ImportSlice(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 5));
  for (size_t i = 1; i < c.num_inputs(); ++i) {
    if (c.Has(i) && !(i < 3 ? c.b.Known(c.In(i)) != nullptr : c.b.KnownInts(c.In(i)).has_value()))
      return SliceByCall(c);
  }
  TN_ASSIGN_OR_RETURN(Elements starts, c.Known(1, "starts"));
  TN_ASSIGN_OR_RETURN(Elements ends, c.Known(2, "ends"));
  std::optional<std::vector<int64_t>> axes, steps;
  if (c.Has(3)) {
    TN_ASSIGN_OR_RETURN(axes, c.KnownInts(3, "axes"));
  }
  if (c.Has(4)) {
    TN_ASSIGN_OR_RETURN(steps, c.KnownInts(4, "steps"));
  }
  return Slice(c, starts, ends, std::move(axes), std::move(steps));
}

// Sizes of the parts: given, or equal (until opset 17) or equal but for the last.
Expected<std::vector<Expr>> SplitSizes(OpContext& c, const Expr& dim) {
  std::optional<std::vector<int64_t>> given;
  Elements by_call;
  if (c.opset < 13) {
    TN_ASSIGN_OR_RETURN(given, c.Ints("split"));
  } else if (c.Has(1)) {
    given = c.b.KnownInts(c.In(1));
    if (!given) {
      TN_ASSIGN_OR_RETURN(by_call, SizesOf(c, 1, "split", static_cast<int64_t>(c.num_outputs())));
    }
  }
  int64_t parts = static_cast<int64_t>(c.num_outputs());
  if (c.opset >= 18) {
    TN_ASSIGN_OR_RETURN(int64_t num_outputs, c.Int("num_outputs", parts));
    if (num_outputs != parts)
      return c.Error("expected num_outputs {} as the node has, but got {}", parts, num_outputs);
  }
  if (!by_call.empty()) {
    if (static_cast<int64_t>(by_call.size()) != parts)
      return c.Error("expected {} split sizes, but got {}", parts, by_call.size());
    Expr sum = IndexConst(0);
    for (const Expr& size : by_call) sum = DimAdd(sum, size);
    c.b.Require(Eq(sum, dim));
    return by_call;
  }
  if (given) {
    Expr sum = IndexConst(0);
    for (int64_t s : *given) {
      if (s < 0) return c.Error("expected split sizes of at least 0, but got {}", s);
      sum = DimAdd(sum, IndexConst(s));
    }
    if (static_cast<int64_t>(given->size()) != parts || graph::ProveDifferent(sum, dim)) {
      return c.Error("expected {} split sizes that sum to {}, but got {}", parts,
                     graph::DimText(dim), ToString(AttrValue(*given)));
    }
    if (!ProveEqual(sum, dim)) c.b.Require(Eq(sum, dim));
    return graph::ToElements(*given);
  }
  if (parts == 0) return c.Error("expected outputs to split into, but there are none");
  const Expr size = DimCeilDiv(dim, IndexConst(parts));
  const Expr last = DimSub(dim, DimMul(size, IndexConst(parts - 1)));
  if (c.opset < 18 && !ProveEqual(last, size)) {
    if (graph::ProveDifferent(last, size)) {
      return c.Error("expected an axis that splits into {} equal parts, but got {}", parts,
                     graph::DimText(dim));
    }
    c.b.Require(Eq(dim, DimMul(size, IndexConst(parts))));
    return std::vector<Expr>(static_cast<size_t>(parts), size);
  }
  if (DimRange(last).max < 0)
    return c.Error("expected an axis that splits into {} parts, but got {}", parts,
                   graph::DimText(dim));
  c.b.Require(Ge(last, IndexConst(0)));
  std::vector<Expr> sizes(static_cast<size_t>(parts), size);
  sizes.back() = last;
  return sizes;
}

Status ImportSplit(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, c.opset < 13 ? 1 : 2));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", 0, c.Rank(0)));
  const size_t at = static_cast<size_t>(axis);
  TN_ASSIGN_OR_RETURN(std::vector<Expr> sizes, SplitSizes(c, c.Dims(0)[at]));
  SliceSpec spec(c.Dims(0));
  for (size_t i = 0; i < sizes.size(); ++i) {
    spec.sizes[at] = sizes[i];
    TN_ASSIGN_OR_RETURN(ValueId part,
                        c.Emit(OpKind::kSlice, {c.In(0)}, {{"steps", spec.steps}}, spec.exprs()));
    TN_RETURN_IF_ERROR(c.SetOutput(i, part));
    spec.starts[at] = DimAdd(spec.starts[at], sizes[i]);
  }
  return Ok();
}

Status ImportExpand(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(Elements shape, SizesOf(c, 1, "a shape", c.DeclaredRank(0)));
  // The shapes broadcast both ways: a 1 in `shape` keeps the input's dim.
  const std::vector<Expr>& dims = c.Dims(0);
  if (shape.size() < dims.size())
    shape.insert(shape.begin(), dims.size() - shape.size(), IndexConst(1));
  const size_t shift = shape.size() - dims.size();
  for (size_t i = 0; i < dims.size(); ++i) {
    Expr& size = shape[shift + i];
    const graph::BroadcastAxis axis = graph::BroadcastSizes(size, dims[i]);
    if (!axis.size) {
      return c.Error("expected a shape that broadcasts to {}, but got {}", graph::DimsText(shape),
                     graph::DimsText(dims));
    }
    if (axis.condition) c.b.Require(axis.condition);
    size = axis.size;
  }
  return c.Result(OpKind::kExpand, {c.In(0)}, {}, {{"shape", std::move(shape)}});
}

Status ImportTile(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(const Elements repeats, SizesOf(c, 1, "repeats", c.Rank(0)));
  if (repeats.size() != c.Dims(0).size())
    return c.Error("expected {} entries in repeats, but got {}", c.Rank(0), repeats.size());
  for (const Expr& r : repeats) {
    if (AsInt(r).value_or(0) < 0)
      return c.Error("expected repeats of at least 0, but got {}", graph::DimsText(repeats));
  }
  const Formula f(c);
  return f.Result(Tile(f.In(0), repeats));
}

Status Pad(OpContext& c, std::vector<int64_t> pads, ValueId value) {
  TN_ASSIGN_OR_RETURN(std::string mode, c.String("mode", "constant"));
  std::vector<ValueId> inputs = {c.In(0)};
  if (value != kNoValue) {
    TN_ASSIGN_OR_RETURN(value, c.Reshape(value, {}));
    inputs.push_back(value);
  }
  return c.Result(OpKind::kPad, std::move(inputs), {{"mode", std::move(mode)}},
                  {{"pads", graph::ToElements(pads)}});
}

Status ImportPadAttr(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> pads, c.Ints("pads"));
  TN_ASSIGN_OR_RETURN(double value, c.Float("value", 0));
  if (!pads) return c.Error("expected the attribute pads, but it is missing");
  return Pad(c, std::move(*pads), c.Scalar(c.Type(0).dtype, value));
}

Status ImportPad(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, c.opset < 18 ? 3 : 4));
  if (!c.b.KnownInts(c.In(1)) || (c.Has(3) && !c.b.KnownInts(c.In(3)))) return PadByCall(c);
  TN_ASSIGN_OR_RETURN(std::vector<int64_t> pads, c.KnownInts(1, "pads"));
  if (c.Has(3)) {
    TN_ASSIGN_OR_RETURN(std::vector<int64_t> axes, c.KnownInts(3, "axes"));
    TN_RETURN_IF_ERROR(c.NormalizeAxes(axes, c.Rank(0), "axes"));
    const size_t n = axes.size(), rank = c.Dims(0).size();
    if (pads.size() != 2 * n)
      return c.Error("expected {} pads for {} axes, but got {}", 2 * n, n, pads.size());
    std::vector<int64_t> all(2 * rank, 0);
    for (size_t i = 0; i < n; ++i) {
      const size_t at = static_cast<size_t>(axes[i] < 0 ? axes[i] + c.Rank(0) : axes[i]);
      all[at] = pads[i];
      all[rank + at] = pads[n + i];
    }
    pads = std::move(all);
  }
  return Pad(c, std::move(pads), c.InOr(2));
}

// Depth and space trade places: reshape, transpose, reshape.
Status ImportDepthToSpace(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(int64_t block, c.Int("blocksize", std::nullopt));
  TN_ASSIGN_OR_RETURN(std::string mode, c.String("mode", "DCR"));
  const std::vector<Expr> d = c.Dims(0);
  if (d.size() != 4 || block < 1 || block > (1 << 15))
    return c.Error("expected an input of rank 4 and a sensible blocksize, but got {} and {}",
                   c.Type(0).ToString(), block);
  if (mode != "DCR" && mode != "CRD")
    return c.Error("expected mode DCR or CRD, but got {}", graph::Quoted(mode));
  const Expr bs = IndexConst(block), depth = DimFloorDiv(d[1], IndexConst(block * block));
  const bool dcr = mode == "DCR";
  TN_ASSIGN_OR_RETURN(ValueId v,
                      c.Reshape(c.In(0), dcr ? std::vector<Expr>{d[0], bs, bs, depth, d[2], d[3]}
                                             : std::vector<Expr>{d[0], depth, bs, bs, d[2], d[3]}));
  const std::vector<int64_t> perm =
      dcr ? std::vector<int64_t>{0, 3, 4, 1, 5, 2} : std::vector<int64_t>{0, 1, 4, 2, 5, 3};
  TN_ASSIGN_OR_RETURN(v, c.Emit(OpKind::kTranspose, {v}, {{"perm", perm}}));
  TN_ASSIGN_OR_RETURN(v, c.Reshape(v, {d[0], depth, DimMul(d[2], bs), DimMul(d[3], bs)}));
  return c.SetOutput(0, v);
}

Status ImportSpaceToDepth(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(int64_t block, c.Int("blocksize", std::nullopt));
  std::string mode = "DCR";
  if (c.opset >= 28) {
    TN_ASSIGN_OR_RETURN(mode, c.String("mode", "DCR"));
  }
  const std::vector<Expr> d = c.Dims(0);
  if (d.size() != 4 || block < 1 || block > (1 << 15))
    return c.Error("expected an input of rank 4 and a sensible blocksize, but got {} and {}",
                   c.Type(0).ToString(), block);
  if (mode != "DCR" && mode != "CRD")
    return c.Error("expected mode DCR or CRD, but got {}", graph::Quoted(mode));
  const Expr bs = IndexConst(block);
  const Expr height = DimFloorDiv(d[2], bs), width = DimFloorDiv(d[3], bs);
  TN_ASSIGN_OR_RETURN(ValueId v, c.Reshape(c.In(0), {d[0], d[1], height, bs, width, bs}));
  const std::vector<int64_t> perm = mode == "DCR" ? std::vector<int64_t>{0, 3, 5, 1, 2, 4}
                                                  : std::vector<int64_t>{0, 1, 3, 5, 2, 4};
  TN_ASSIGN_OR_RETURN(v, c.Emit(OpKind::kTranspose, {v}, {{"perm", perm}}));
  TN_ASSIGN_OR_RETURN(v,
                      c.Reshape(v, {d[0], DimMul(d[1], IndexConst(block * block)), height, width}));
  return c.SetOutput(0, v);
}

constexpr OpRow kRows[] = {
    {"Reshape", 5, ImportReshape},
    {"Flatten", 1, ImportFlatten},
    {"Squeeze", 1, ImportSqueeze},
    {"Unsqueeze", 1, ImportUnsqueeze},
    {"Transpose", 1, ImportTranspose},
    {"Concat", 4, ImportConcat},
    {"Slice", 1, ImportSliceAttr},
    {"Slice", 10, ImportSlice},
    {"Split", 2, ImportSplit},
    {"Expand", 8, ImportExpand},
    {"Tile", 6, ImportTile},
    {"Pad", 2, ImportPadAttr},
    {"Pad", 11, ImportPad},
    {.name = "Pad", .since = 1, .import = ImportPad, .domain = "com.microsoft"},
    {"DepthToSpace", 1, ImportDepthToSpace},
    {"SpaceToDepth", 1, ImportSpaceToDepth},
};

}  // namespace

std::span<const OpRow> MovementRows() { return kRows; }

}  // namespace tenon::onnx

#include "frontend/onnx/call_sizes.h"

#include <algorithm>
#include <unordered_set>

#include "graph/edit.h"
#include "ir/visit.h"
#include "support/strings.h"

namespace tenon::onnx {
namespace {

constexpr DType kI64 = DType::Int(64);

// The scalar that reads element `at` of a list or a tensor of one element, of integers.
struct Source {
  ValueId list;
  int64_t at;
};

// One step back to where the element comes from; false where there is none.
bool StepBack(const graph::Graph& g, Source* from) {
  const graph::Value& value = g.value(from->list);
  if (value.producer == graph::kNoNode) return false;
  const graph::Node& n = g.node(value.producer);
  const TensorType& type = value.type.tensor();
  if (type.rank() > 1 || n.inputs.empty()) return false;
  const TensorType& in = g.type(n.inputs[0]);
  switch (n.op) {
    case OpKind::kReshape:
      if (in.rank() > 1) return false;
      *from = {n.inputs[0], from->at};
      return true;
    case OpKind::kCast:
      if (!in.dtype.IsInt() || in.dtype.bits > type.dtype.bits) return false;
      *from = {n.inputs[0], from->at};
      return true;
    case OpKind::kSlice: {
      const std::optional<int64_t> start = AsInt(n.exprs.at("starts")[0]);
      if (!start) return false;
      *from = {n.inputs[0], *start + from->at * n.attrs.GetInts("steps")[0]};
      return true;
    }
    case OpKind::kConcat:
      for (ValueId part : n.inputs) {
        const std::optional<int64_t> size = AsInt(g.type(part).dims[0]);
        if (!size) return false;
        if (from->at < *size) {
          from->list = part;
          return true;
        }
        from->at -= *size;
      }
      return false;
    default: return false;
  }
}

// Whether an operator reads of its operands no more than it gives.
bool Picks(OpKind op) {
  return op == OpKind::kSlice || op == OpKind::kGather || op == OpKind::kGatherNd ||
         op == OpKind::kGatherElements || op == OpKind::kShape;
}

// Whether little has to be computed for a value: from small tensors, and from parts of any.
bool IsCheap(const graph::Graph& g, ValueId v) {
  std::unordered_set<ValueId> seen;
  std::vector<ValueId> stack = {v};
  while (!stack.empty()) {
    const ValueId at = stack.back();
    stack.pop_back();
    if (at == kNoValue || !seen.insert(at).second) continue;
    const graph::Value& value = g.value(at);
    if (value.producer == graph::kNoNode) continue;
    const graph::Node& n = g.node(value.producer);
    if (n.op == OpKind::kShape) continue;  // whose elements nobody needs
    for (ValueId in : n.inputs) {
      if (in == kNoValue || Picks(n.op) || n.op == OpKind::kReshape) continue;
      if (!g.IsTensor(in)) return false;
      const std::optional<int64_t> count = graph::StaticCount(g.type(in).dims);
      if (!count || *count > graph::Limits::kKnownElements) return false;
    }
    stack.insert(stack.end(), n.inputs.begin(), n.inputs.end());
  }
  return true;
}

}  // namespace

Expected<ValueId> Conform(Builder& b, ValueId v, Dims dims, const std::string& name) {
  const Dims own = b.type(v).dims;
  if (!std::equal(own.begin(), own.end(), dims.begin(), dims.end(),
                  [](const Expr& x, const Expr& y) { return !graph::ProveDifferent(x, y); }))
    return kNoValue;
  for (size_t i = 0; i < own.size(); ++i) b.Require(Eq(own[i], dims[i]));
  return b.Add(OpKind::kReshape, {v}, name, {}, {{"shape", std::move(dims)}});
}

Val Conformed(const Val& x, const Dims& dims) {
  if (!x) return x;
  const Formula& f = x.formula();
  const Dims own = x.dims();
  if (std::equal(own.begin(), own.end(), dims.begin(), dims.end(), graph::ProveEqual)) return x;
  const Expected<ValueId> made = Conform(f.builder(), x.id(), dims, f.name());
  if (made && *made == kNoValue) {
    return f.Fail(MakeError(fmt::format("expected a tensor of {}, but got {}",
                                        graph::DimsText(dims), graph::DimsText(own))));
  }
  return f.Of(made);
}

Val Beside(const Val& x, const Dims& dims) {
  if (!x) return x;
  const Formula& f = x.formula();
  const Dims own = x.dims();
  bool fits = own.size() <= dims.size();
  for (size_t i = 0; fits && i < own.size(); ++i) {
    const Expr &size = own[own.size() - 1 - i], &other = dims[dims.size() - 1 - i];
    if (IsOne(size) || graph::ProveEqual(size, other)) continue;
    fits = !graph::ProveDifferent(size, other) || !graph::ProveDifferent(size, IndexConst(1));
    f.builder().Require(Or(Eq(size, IndexConst(1)), Eq(size, other)));
  }
  if (fits) return x;
  return f.Fail(MakeError(fmt::format("expected a tensor that broadcasts to {}, but got {}",
                                      graph::DimsText(dims), graph::DimsText(own))));
}

Val ShapeOf(const Val& x) {
  return x ? x.formula().Emit(OpKind::kShape, {x}, {{"start", int64_t{0}}, {"end", x.rank()}}) : x;
}

Val ElementOf(const Val& list, int64_t i) {
  if (!list) return list;
  const graph::Graph& g = list.formula().builder().graph();
  Source from{list.id(), i};
  while (StepBack(g, &from)) {
  }
  const Val source = list.formula().Of(from.list);
  if (source.rank() == 0) return Cast(source, kI64);
  return Cast(Element(source, 0, from.at), kI64);
}

Expr SizeOf(const Val& scalar, const Expr& most) {
  if (!scalar) return IndexConst(1);
  const Formula& f = scalar.formula();
  const Val count = Cast(Reshape(scalar, {}), kI64);
  if (!count) return IndexConst(1);
  Builder& b = f.builder();
  if (const Elements* known = b.Known(count.id())) return (*known)[0];
  const bool late = most && !IsCheap(b.graph(), count.id());
  const Expected<Expr> size = b.DefineDim(ToIdentifier(f.name()), count.id(), late ? most : Expr());
  if (!size) {
    f.Of(Expected<ValueId>(size.errors()));
    return IndexConst(1);
  }
  // It has no other value: a call with one that is no size fails.
  if (!late) b.Assume(count.id(), {*size});
  return *size;
}

Val NumberOf(const Formula& f, const Expr& size) {
  if (const std::optional<int64_t> known = AsInt(size))
    return f.Number(kI64, static_cast<double>(*known));
  // The elements of a shape are known; nobody needs the list's. That has one more, so that the size
  // may be 0.
  return Size(f.Iota(graph::DimAdd(size, IndexConst(1))), 0) - 1;
}

Dims SizesIn(const Val& list) {
  if (!list) return {};
  Builder& b = list.formula().builder();
  if (const Elements* known = b.Known(list.id())) return *known;
  const std::optional<int64_t> count = graph::StaticCount(list.dims());
  if (!count || list.rank() > 1 || *count > graph::Limits::kRank) {
    list.formula().Fail(MakeError(
        fmt::format("expected a list of known length, but got {}", b.type(list.id()).ToString())));
    return {};
  }
  Dims sizes;
  for (int64_t i = 0; i < *count; ++i) sizes.push_back(SizeOf(ElementOf(list, i)));
  if (b.type(list.id()).dtype.IsInt()) b.Assume(list.id(), sizes);
  return sizes;
}

Expected<Elements> SizesOf(OpContext& c, size_t i, const char* what, std::optional<int64_t> count) {
  if (count && *count >= 0 && c.Rank(i) == 1) TN_RETURN_IF_ERROR(c.Fix(i, 0, *count));
  if (const Elements* known = c.b.Known(c.In(i))) return *known;
  const TensorType& type = c.Type(i);
  if (!type.dtype.IsInt() || type.rank() > 1 || !graph::StaticCount(type.dims))
    return c.Known(i, what);
  const Formula f(c);
  const Dims sizes = SizesIn(f.In(i));
  TN_RETURN_IF_ERROR(f.Done());
  return sizes;
}

Val AxisMatches(const Val& axes, int64_t rank) {
  if (!axes) return axes;
  const Val list = Cast(axes, kI64);
  const Val axis = Unsqueeze(Where(list < 0, list + static_cast<double>(rank), list), 1);
  return Equal(axis, list.formula().Iota(IndexConst(rank)));
}

Val IsAmong(const Val& axes, int64_t rank) {
  if (!axes) return axes;
  return Reduce("any", AxisMatches(axes, rank), {0}, false);
}

Val PerAxis(const Val& list, const Val& axes, int64_t rank, double otherwise) {
  if (!list) return list;
  const Formula& f = list.formula();
  Val wide = Cast(list, kI64);
  const std::optional<int64_t> count = AsInt(wide.dim(0));
  if (!axes && count) {
    if (*count >= rank) return wide;
    std::vector<Val> parts = {wide};
    parts.push_back(Expand(f.Number(kI64, otherwise), {IndexConst(rank - *count)}));
    return Concat(parts, 0);
  }
  const Val at = AxisMatches(axes ? axes : f.Iota(wide.dim(0)), rank);
  const Val there = Reduce("sum", Where(at, Expand(Unsqueeze(wide, 1), at.dims()), 0), {0}, false);
  return Where(Reduce("any", at, {0}, false), there, otherwise);
}

Val Cut(const Val& x, int64_t axis, const Val& from, const Expr& size, double otherwise) {
  return x ? Cut(x, axis, from, size, x.formula().Number(x.dtype(), otherwise)) : x;
}

Val Cut(const Val& x, int64_t axis, const Val& from, const Expr& size, const Val& otherwise) {
  if (!x || !from) return x;
  const Val at = x.formula().Iota(size) + from, last = Size(x, axis) - 1;
  Val inside = (at >= 0) & (at <= last);
  for (int64_t k = x.At(axis) + 1; k < x.rank(); ++k) inside = Unsqueeze(inside, -1);
  return Where(inside, Gather(x, Max(Min(at, last), 0), axis), otherwise);
}

Val Without(const Val& list, const Val& flags, int64_t left) {
  if (!list || !flags) return list;
  const Val so_far = CumSum(Cast(Not(flags), kI64), 0);
  const Val from =
      list.formula().Emit(OpKind::kSearchSorted, {so_far, list.formula().Iota(IndexConst(left))});
  return Gather(list, from, 0);
}

bool HaveFoundSizes(const Builder& b, std::span<const ValueId> values) {
  const graph::Graph& g = b.graph();
  std::vector<Var> found;
  for (const graph::Node& n : g.nodes) {
    if (Var dim = graph::DefinedDim(n)) found.push_back(std::move(dim));
  }
  const auto is_found = [&](const Expr& size) {
    return std::any_of(found.begin(), found.end(),
                       [&](const Var& dim) { return UsesVar(size, dim.get()); });
  };
  return std::any_of(values.begin(), values.end(), [&](ValueId v) {
    if (v < 0 || !g.IsTensor(v)) return false;
    const Elements* known = b.Known(v);
    return std::any_of(g.type(v).dims.begin(), g.type(v).dims.end(), is_found) ||
           (known && std::any_of(known->begin(), known->end(), is_found));
  });
}

}  // namespace tenon::onnx

#include "frontend/onnx/formula.h"

#include <algorithm>
#include <numeric>

#include "frontend/onnx/call_sizes.h"
#include "graph/infer.h"
#include "support/strings.h"

namespace tenon::onnx {

Formula::Formula(OpContext& c) : state_(std::make_shared<State>(State{c.b, &c, c.name(), {}})) {}

Formula::Formula(Builder& b, std::string name)
    : state_(std::make_shared<State>(State{b, nullptr, std::move(name), {}})) {}

Val Formula::In(size_t i) const { return Val(*this, state_->c->InOr(i)); }
Val Formula::Of(ValueId v) const { return Val(*this, v); }

Val Formula::Of(Expected<ValueId> v) const {
  if (v) return Val(*this, *v);
  if (state_->error.empty()) state_->error = std::move(v.errors());
  return Val(*this, kNoValue);
}

Val Formula::Fail(Diagnostic error) const { return Of(Expected<ValueId>(std::move(error))); }

Val Formula::Number(DType dtype, double value) const {
  return Val(*this, state_->b.Scalar(dtype, value));
}

Val Formula::Iota(const Expr& size, DType dtype) const {
  return Emit(OpKind::kRange, {Number(dtype, 0), Number(dtype, 1)}, {}, {{"size", {size}}});
}

namespace {
template <class T>
ValueId List(Builder& b, DType dtype, const std::vector<T>& list) {
  return b.Constant("", TensorType{dtype, {IndexConst(static_cast<int64_t>(list.size()))}},
                    graph::MakePayload(dtype, std::span<const T>(list)));
}
}  // namespace

Val Formula::Ints(const std::vector<int64_t>& list) const {
  return Of(List(state_->b, DType::Int(64), list));
}
Val Formula::Floats(const std::vector<double>& list, DType dtype) const {
  return Of(List(state_->b, dtype, list));
}

static bool MayContract(OpKind op, const std::vector<Val>& inputs) {
  return (op == OpKind::kAdd || op == OpKind::kSub || op == OpKind::kMul) &&
         inputs[0].dtype().IsFloat();
}

std::vector<Val> Formula::EmitAll(OpKind op, size_t results, std::vector<Val> inputs, Attrs attrs,
                                  ExprAttrs exprs) const {
  std::vector<ValueId> ids;
  for (const Val& v : inputs) {
    if (!v) return std::vector<Val>(results, Val(*this, kNoValue));
    ids.push_back(v.id());
  }
  if (!state_->contract && MayContract(op, inputs)) attrs.Set("contract", false);
  Builder& b = state_->b;
  Expected<std::vector<ValueId>> made = [&]() -> Expected<std::vector<ValueId>> {
    if (results > 1)
      return b.AddAll(op, results, std::move(ids), state_->name, std::move(attrs),
                      std::move(exprs));
    TN_ASSIGN_OR_RETURN(const ValueId one, b.Add(op, std::move(ids), state_->name, std::move(attrs),
                                                 std::move(exprs)));
    return std::vector<ValueId>{one};
  }();
  std::vector<Val> out;
  for (size_t i = 0; i < results; ++i)
    out.push_back(made ? Val(*this, (*made)[i]) : Of(Expected<ValueId>(made.errors())));
  return out;
}

Val Formula::Emit(OpKind op, std::vector<Val> inputs, Attrs attrs, ExprAttrs exprs) const {
  return EmitAll(op, 1, std::move(inputs), std::move(attrs), std::move(exprs))[0];
}

Status Formula::Done() const {
  if (state_->error.empty()) return Ok();
  return state_->error;
}

Status Formula::Result(std::initializer_list<Val> outputs) const {
  TN_RETURN_IF_ERROR(Done());
  size_t i = 0;
  for (const Val& v : outputs) {
    if (v) TN_RETURN_IF_ERROR(state_->c->SetOutput(i, v.id()));
    ++i;
  }
  return Ok();
}

Status Formula::Result(const Val& output) const { return Result({output}); }

DType Val::dtype() const { return *this ? f_->builder().type(id_).dtype : DType::Float(32); }
Dims Val::dims() const { return *this ? f_->builder().type(id_).dims : Dims(); }
int64_t Val::rank() const { return *this ? f_->builder().type(id_).rank() : 0; }

Expr Val::dim(int64_t axis) const {
  const int64_t at = At(axis);
  if (at >= 0 && at < rank()) return f_->builder().type(id_).dims[static_cast<size_t>(at)];
  if (*this)
    f_->Fail(MakeError(fmt::format("expected a tensor with an axis {}, but got {}", axis,
                                   f_->builder().type(id_).ToString())));
  return IndexConst(1);
}

// ---- Elementwise. ----

namespace {

// One of several operands says whose formula it is: a value that was left out has none.
Val Emit2(OpKind op, const Val& a, const Val& b, Attrs attrs = {}) {
  if (!a || !b) return a ? b : a;
  return a.formula().Emit(op, {a, b}, std::move(attrs));
}
Val Like(const Val& x, double number) { return x ? x.formula().Number(x.dtype(), number) : x; }

}  // namespace

#define TN_FORMULA_BINARY(name, op)                                             \
  Val name(const Val& a, const Val& b) { return Emit2(OpKind::op, a, b); }      \
  Val name(const Val& a, double b) { return Emit2(OpKind::op, a, Like(a, b)); } \
  Val name(double a, const Val& b) { return Emit2(OpKind::op, Like(b, a), b); }
TN_FORMULA_BINARY(operator+, kAdd)
TN_FORMULA_BINARY(operator-, kSub)
TN_FORMULA_BINARY(operator*, kMul)
TN_FORMULA_BINARY(operator/, kDiv)
TN_FORMULA_BINARY(operator<, kLess)
TN_FORMULA_BINARY(operator>, kGreater)
TN_FORMULA_BINARY(operator<=, kLessEqual)
TN_FORMULA_BINARY(operator>=, kGreaterEqual)
TN_FORMULA_BINARY(Equal, kEqual)
TN_FORMULA_BINARY(Max, kMax)
TN_FORMULA_BINARY(Min, kMin)
TN_FORMULA_BINARY(Pow, kPow)
TN_FORMULA_BINARY(Mod, kMod)
#undef TN_FORMULA_BINARY

Val operator&(const Val& a, const Val& b) { return Emit2(OpKind::kAnd, a, b); }
Val operator|(const Val& a, const Val& b) { return Emit2(OpKind::kOr, a, b); }
Val Not(const Val& a) { return Apply(OpKind::kNot, a); }
Val operator-(const Val& a) { return Apply(OpKind::kNeg, a); }

Val Where(const Val& condition, const Val& a, const Val& b) {
  if (!condition) return condition;
  return condition.formula().Emit(OpKind::kWhere, {condition, a, b});
}
Val Where(const Val& condition, double a, const Val& b) { return Where(condition, Like(b, a), b); }
Val Where(const Val& condition, const Val& a, double b) { return Where(condition, a, Like(a, b)); }

Val Apply(OpKind op, const Val& x) { return x ? x.formula().Emit(op, {x}) : x; }

Val Cast(const Val& x, DType to) {
  return x ? x.formula().Emit(OpKind::kCast, {x}, {{"to", to.ToString()}}) : x;
}

Val Widened(const Val& x) { return Cast(x, graph::AccumulatorOf(x.dtype())); }

// ---- Along axes. ----

Val Reduce(const char* kind, const Val& x, Axes axes, bool keepdims) {
  if (!x) return x;
  for (int64_t& a : axes) a = x.At(a);
  std::sort(axes.begin(), axes.end());
  return x.formula().Emit(
      OpKind::kReduce, {x},
      {{"kind", std::string(kind)}, {"axes", std::move(axes)}, {"keepdims", keepdims}});
}

Axes AxesFrom(const Val& x, int64_t axis) {
  Axes axes(static_cast<size_t>(std::max<int64_t>(x.rank() - x.At(axis), 0)));
  std::iota(axes.begin(), axes.end(), x.At(axis));
  return axes;
}

Val ArgReduce(const char* kind, const Val& x, int64_t axis, bool last) {
  if (!x) return x;
  return x.formula().Emit(OpKind::kArgReduce, {x},
                          {{"kind", std::string(kind)},
                           {"axis", x.At(axis)},
                           {"keepdims", true},
                           {"select_last", last}});
}

Val Softmax(const Val& x, int64_t axis) {
  return x ? x.formula().Emit(OpKind::kSoftmax, {x}, {{"axis", x.At(axis)}}) : x;
}
Val LogSoftmax(const Val& x, int64_t axis) {
  return x ? x.formula().Emit(OpKind::kLogSoftmax, {x}, {{"axis", x.At(axis)}}) : x;
}

Val CumSum(const Val& x, int64_t axis, bool exclusive, bool reverse) {
  if (!x) return x;
  return x.formula().Emit(OpKind::kCumSum, {x},
                          {{"axis", x.At(axis)}, {"exclusive", exclusive}, {"reverse", reverse}});
}

std::pair<Val, Val> TopK(const Val& x, int64_t axis, const Expr& k, bool largest) {
  if (!x) return {x, x};
  const std::vector<Val> both = x.formula().EmitAll(
      OpKind::kTopK, 2, {x}, {{"axis", x.At(axis)}, {"largest", largest}}, {{"k", {k}}});
  return {both[0], both[1]};
}

Val MatMul(const Val& a, const Val& b, bool trans_a, bool trans_b) {
  return Emit2(OpKind::kMatMul, a, b, {{"trans_a", trans_a}, {"trans_b", trans_b}});
}

Val WideMatMul(const Val& a, const Val& b, bool trans_a, bool trans_b) {
  if (!a || graph::AccumulatorOf(a.dtype()) == a.dtype()) return MatMul(a, b, trans_a, trans_b);
  return Emit2(OpKind::kMatMul, a, b,
               {{"trans_a", trans_a},
                {"trans_b", trans_b},
                {"result", graph::AccumulatorOf(a.dtype()).ToString()}});
}

Val ScaledMatMul(const Val& a, const Val& b, bool trans_a, bool trans_b, double alpha) {
  if (alpha == 1) return MatMul(a, b, trans_a, trans_b);
  const Val wide = WideMatMul(a, b, trans_a, trans_b) * alpha;
  return a && wide.dtype() != a.dtype() ? Cast(wide, a.dtype()) : wide;
}

// ---- Movement. ----

namespace {

Val Failed(const Val& x) { return x ? x.formula().Of(kNoValue) : x; }

// Whether x has these axes; if it has not, that is what is wrong.
bool HasAxes(const Val& x, std::initializer_list<int64_t> axes) {
  for (int64_t axis : axes) {
    if (x && (x.At(axis) < 0 || x.At(axis) >= x.rank())) {
      static_cast<void>(x.dim(axis));  // says so
      return false;
    }
  }
  return static_cast<bool>(x);
}

}  // namespace

Val Size(const Val& x, int64_t axis) {
  if (!HasAxes(x, {axis})) return Failed(x);
  const int64_t at = x.At(axis);
  return Reshape(x.formula().Emit(OpKind::kShape, {x}, {{"start", at}, {"end", at + 1}}), {});
}

Val Reshape(const Val& x, Dims shape) {
  return x ? x.formula().Emit(OpKind::kReshape, {x}, {}, {{"shape", std::move(shape)}}) : x;
}

Val Transpose(const Val& x, Axes perm) {
  return x ? x.formula().Emit(OpKind::kTranspose, {x}, {{"perm", std::move(perm)}}) : x;
}

Val Swap(const Val& x, int64_t a, int64_t b) {
  if (!HasAxes(x, {a, b})) return Failed(x);
  Axes perm = AxesFrom(x, 0);
  std::swap(perm[static_cast<size_t>(x.At(a))], perm[static_cast<size_t>(x.At(b))]);
  return Transpose(x, std::move(perm));
}

Val Squeeze(const Val& x, int64_t axis) {
  if (!HasAxes(x, {axis})) return Failed(x);
  Dims dims = x.dims();
  dims.erase(dims.begin() + x.At(axis));
  return Reshape(x, std::move(dims));
}

Val Unsqueeze(const Val& x, int64_t axis) {
  const int64_t at = axis < 0 ? axis + x.rank() + 1 : axis;
  if (at != x.rank() && !HasAxes(x, {at})) return Failed(x);
  Dims dims = x.dims();
  dims.insert(dims.begin() + at, IndexConst(1));
  return Reshape(x, std::move(dims));
}

Val Slice(const Val& x, int64_t axis, const Expr& start, const Expr& size, int64_t step) {
  if (!HasAxes(x, {axis})) return Failed(x);
  const size_t at = static_cast<size_t>(x.At(axis));
  Dims starts(x.dims().size(), IndexConst(0)), sizes = x.dims();
  Axes steps(sizes.size(), 1);
  starts[at] = start;
  sizes[at] = size;
  steps[at] = step;
  return x.formula().Emit(OpKind::kSlice, {x}, {{"steps", std::move(steps)}},
                          {{"starts", std::move(starts)}, {"sizes", std::move(sizes)}});
}

Val Element(const Val& x, int64_t axis, int64_t at) {
  return Squeeze(Slice(x, axis, IndexConst(at), IndexConst(1)), axis);
}

Val Flip(const Val& x, int64_t axis) {
  const Expr size = x.dim(axis);
  return Slice(x, axis, graph::DimMax(graph::DimSub(size, IndexConst(1)), IndexConst(0)), size, -1);
}

Val Concat(const std::vector<Val>& parts, int64_t axis) {
  return parts[0] ? parts[0].formula().Emit(OpKind::kConcat, parts, {{"axis", parts[0].At(axis)}})
                  : parts[0];
}

Val Stack(const std::vector<Val>& parts, int64_t axis) {
  std::vector<Val> rows;
  for (const Val& v : parts) rows.push_back(Unsqueeze(v, axis));
  return Concat(rows, axis);
}

Val Expand(const Val& x, Dims shape) {
  return x ? x.formula().Emit(OpKind::kExpand, {x}, {}, {{"shape", std::move(shape)}}) : x;
}

Val Repeat(const Val& x, int64_t axis, const Expr& count) {
  if (!HasAxes(x, {axis})) return Failed(x);
  if (IsOne(count)) return x;
  const int64_t at = x.At(axis);
  Dims dims = x.dims();
  dims.insert(dims.begin() + at + 1, count);
  const Val wide = Expand(Unsqueeze(x, at + 1), dims);
  dims.erase(dims.begin() + at + 1);
  dims[static_cast<size_t>(at)] = graph::DimMul(dims[static_cast<size_t>(at)], count);
  return Reshape(wide, std::move(dims));
}

// A new axis before each one that repeats, along which all is the same.
Val Tile(const Val& x, const Dims& repeats) {
  if (!x) return x;
  if (std::all_of(repeats.begin(), repeats.end(), IsOne)) return x;
  const Dims dims = x.dims();
  Dims before, during, after;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!IsOne(repeats[i])) {
      before.push_back(IndexConst(1));
      during.push_back(repeats[i]);
    }
    before.push_back(dims[i]);
    during.push_back(dims[i]);
    after.push_back(graph::DimMul(dims[i], repeats[i]));
  }
  // What is too large is told of the result, not of what it is made by.
  if (Status ok = graph::CheckType(graph::TensorType{x.dtype(), after}); !ok)
    return x.formula().Of(Expected<ValueId>(std::move(ok.errors())));
  return Reshape(Expand(Reshape(x, std::move(before)), std::move(during)), std::move(after));
}

Val Pad(const Val& x, int64_t axis, int64_t before, int64_t after, const Val& value) {
  if (!HasAxes(x, {axis})) return Failed(x);
  const size_t rank = static_cast<size_t>(x.rank()), at = static_cast<size_t>(x.At(axis));
  Dims pads(2 * rank, IndexConst(0));
  pads[at] = IndexConst(before);
  pads[rank + at] = IndexConst(after);
  return Pad(x, std::move(pads), "constant", value);
}

Val Pad(const Val& x, Dims pads, std::string mode, const Val& value) {
  if (!x) return x;
  std::vector<Val> inputs = {x};
  if (value) inputs.push_back(value);
  return x.formula().Emit(OpKind::kPad, std::move(inputs), {{"mode", std::move(mode)}},
                          {{"pads", std::move(pads)}});
}

Val Gather(const Val& x, const Val& indices, int64_t axis) {
  return Emit2(OpKind::kGather, x, indices, {{"axis", x.At(axis)}});
}
Val GatherElements(const Val& x, const Val& indices, int64_t axis) {
  return Emit2(OpKind::kGatherElements, x, indices, {{"axis", x.At(axis)}});
}
Val GatherNd(const Val& x, const Val& indices, int64_t batch_dims) {
  return Emit2(OpKind::kGatherNd, x, indices, {{"batch_dims", batch_dims}});
}
Val Scatter(const Val& x, const Val& indices, const Val& updates, int64_t axis,
            const std::string& reduction) {
  if (!x) return x;
  return x.formula().Emit(OpKind::kScatter, {x, indices, updates},
                          {{"axis", x.At(axis)}, {"reduction", reduction}});
}

// Whole rows are gathered: of x as a list of its T · B rows.
Val ReverseRows(const Val& x, const Val& lengths, int64_t time) {
  if (!x || !lengths) return x;
  const Formula& f = x.formula();
  const Expr t = x.dim(time), b = x.dim(1 - time);
  const Val row = Unsqueeze(f.Iota(t), 1 - time);
  const Val column = Unsqueeze(f.Iota(b), time);
  const Val length = Unsqueeze(Cast(lengths, DType::Int(64)), time);
  const Val from = Where(row < length, length - 1 - row, row);
  const Val place = time == 0 ? from * Size(x, 1) + column : column * Size(x, 1) + from;
  const Dims dims = x.dims();
  Dims rows(dims.begin() + 1, dims.end());
  rows[0] = graph::DimMul(t, b);
  return Gather(Reshape(x, std::move(rows)), place, 0);
}

// Element i is the one of number c[i], if it is one, where c are the sums of the mask so far. So as
// many elements stand before the j-th as have c <= j.
Val PlacesOf(const Val& mask, std::string_view dim_name) {
  if (!mask) return mask;
  const Formula& f = mask.formula();
  const Val ones = Cast(mask, DType::Int(64));
  const Val so_far = CumSum(ones, 0);
  Val count = Sum(ones, {0}, false);
  if (!count) return count;
  const Expected<Expr> n = f.builder().DefineDim(ToIdentifier(dim_name), count.id(), mask.dim(0));
  if (!n) return f.Of(Expected<ValueId>(n.errors()));
  return f.Emit(OpKind::kSearchSorted, {so_far, f.Iota(*n)});
}

// ---- Loops. ----

std::vector<Val> Loop(const Formula& f, const Expr& count, const std::vector<Val>& carried,
                      const std::vector<Val>& captured, const LoopBody& body) {
  Builder region("body");
  region.ShareDims(f.builder());
  const Formula inner(region, f.name());
  std::vector<Val> states, others;
  std::vector<ValueId> inputs;
  const Val i = inner.Of(region.Input("i", TensorType{DType::Int(64), {}}));
  for (const auto& [from, to] : {std::pair(&carried, &states), std::pair(&captured, &others)}) {
    for (const Val& v : *from) {
      if (!v) return std::vector<Val>(carried.size() + 1, v);
      inputs.push_back(v.id());
      to->push_back(inner.Of(region.Input("", f.builder().graph().value(v.id()).type)));
    }
  }
  std::vector<Val> results = body(i, states, others);
  for (size_t k = 0; k < carried.size() && k < results.size(); ++k)
    results[k] = Conformed(results[k], carried[k].dims());
  auto made = [&]() -> Expected<std::vector<ValueId>> {
    TN_RETURN_IF_ERROR(inner.Done());
    for (size_t k = 0; k < results.size(); ++k)
      region.Output(fmt::format("out{}", k), results[k].id());
    std::vector<graph::Graph> regions;
    regions.push_back(std::move(region).Finish());
    return f.builder().AddRegions(OpKind::kLoop, std::move(inputs), std::move(regions), f.name(),
                                  {{"carried", static_cast<int64_t>(carried.size())}},
                                  {{"count", {count}}});
  }();
  std::vector<Val> out;
  for (size_t k = 0; k < results.size(); ++k)
    out.push_back(made ? f.Of((*made)[k]) : f.Of(Expected<ValueId>(made.errors())));
  return out;
}

}  // namespace tenon::onnx

// Tensors, operations and reductions.
//
// A compute is written as a function of loop variables. It is called once; what it reads is noted
// while it runs (Reading), and what it returns is kept as the body of a computation of te, with the
// variables that it was given. An operation so has loops that a schedule can name before there is
// loop IR. Of
//
//   k = reduce_axis((0, 8), "k");  c = compute((4,), lambda i: sum(a[i, k] * b[k], axis=k), "c")
//
// the operation has axis [i], reduce_axis [k] and input_tensors [a, b], and is lowered to
//
//   block c(vi: spatial = c.i, vk: reduce = c.k) {
//     init { c[vi] = 0f32 }
//     c[vi] = c[vi] + a[vi, vk] * b[vk]
//   }
//
// A loop in a value that is neither the element's nor reduced over is an error here, by its name.
#include <algorithm>
#include <limits>

#include "api/bridge.h"

namespace tenon::inline v0::te {

namespace {

// The tensors read while a Compute's function runs, innermost Compute last.
thread_local std::vector<std::vector<Tensor>*> g_readers;

void Note(const Tensor& tensor) {
  if (g_readers.empty()) return;
  std::vector<Tensor>& seen = *g_readers.back();
  if (std::find(seen.begin(), seen.end(), tensor) == seen.end()) seen.push_back(tensor);
}

/// Keeps g_readers as it was, also when the function throws.
class Reading {
 public:
  explicit Reading(std::vector<Tensor>* seen) { g_readers.push_back(seen); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() { g_readers.pop_back(); }
};

void CheckShape(const std::string& name, const std::vector<Expr>& shape) {
  for (const Expr& d : shape) {
    if (d.data().loops) {
      ThrowValue(
          fmt::format("'{}': the dim '{}' of its shape has the loop '{}' in it; a shape is "
                      "made of numbers and sizes",
                      name, d.str(), d.data().loops->front()->name));
    }
    std::optional<int64_t> n = AsInt(AsIndex(d));
    if (n && *n < 0) ThrowValue(fmt::format("'{}': a dim of {} is negative", name, *n));
  }
}

std::vector<inner::Expr> Dims(const std::vector<Expr>& shape) {
  std::vector<inner::Expr> dims;
  for (const Expr& d : shape) dims.push_back(AsIndex(d));
  return dims;
}

// A loop of what computes the tensor `of`.
IterVar Loop(const std::string& name, const std::string& of, inner::Var var, inner::Expr extent) {
  auto data = std::make_shared<IterVarData>();
  data->name = name;
  data->of = of;
  data->var = std::move(var);
  data->extent = std::move(extent);
  return IterVar(data);
}

inner::te::Axis AxisOf(const IterVar& axis) {
  if (!axis.node() || axis.node()->kind != LoopKind::kReduce) {
    ThrowValue(fmt::format("'{}' is no reduce axis", axis.name()));
  }
  return {axis.node()->var, axis.node()->extent};
}

void CheckAxes(const std::vector<IterVar>& axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisOf(axes[i]);
    const auto here = axes.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(axes.begin(), here, axes[i]) != here) {
      ThrowValue(fmt::format("the reduce axis '{}' is twice among the axes", axes[i].name()));
    }
  }
}

Expr Reduce(const Expr& value, const std::vector<IterVar>& axes,
            inner::te::Body (*make)(const inner::Expr&)) {
  if (axes.empty()) ThrowValue("a reduction needs an axis; see reduce_axis");
  inner::Expr v = Unwrap(value);
  if (value.data().literal || v->dtype.IsIndex()) {
    v = CastExpr::Make(v->dtype.IsFloat() ? v->dtype : DType::Int(64), v);
  }
  auto reduce = std::make_shared<ReduceData>();
  CheckAxes(axes);
  reduce->axes = axes;
  inner::te::Body body = make(v);
  reduce->value = body.value;
  reduce->identity = body.init;
  reduce->combiner = body.combiner;
  ExprData data;
  data.expr = v;
  data.reduce = reduce;
  data.loops = value.data().loops;
  return Expr(std::make_shared<const ExprData>(std::move(data)));
}

}  // namespace

// Whether its value is in memory.
static bool ReadsTensor(const Expr& e) {
  bool found = false;
  PreOrder(Unwrap(e), [&](const NodeRef& n) {
    found |= IsA<Load>(n);
    return !found && n->kind != NodeKind::kBuffer;
  });
  return found;
}

IterVar ReduceAxis(const Expr& lo, const Expr& hi, const std::string& name) {
  for (const Expr* bound : {&lo, &hi}) {
    if (!bound->data().loops) continue;
    ThrowValue(fmt::format(
        "reduce_axis '{}': its bound '{}' has the loop '{}' in it; reduce to a size and select "
        "inside{}",
        name, bound->str(), bound->data().loops->front()->name,
        ReadsTensor(*bound) ? ", or, where rows are as long as a tensor says, compute them by a "
                              "function of loop IR (te.extern)"
                            : ""));
  }
  inner::Expr low = AsIndex(lo);
  auto data = std::make_shared<IterVarData>();
  data->name = name;
  data->kind = LoopKind::kReduce;
  data->var = VarNode::Make(name);
  data->extent = IsZero(low) ? AsIndex(hi) : AsIndex(hi - lo);
  if (std::optional<int64_t> n = AsInt(Simplify(data->extent)); n && *n < 0) {
    ThrowValue(fmt::format("reduce_axis '{}': from {} to {} is less than nothing", name, lo.str(),
                           hi.str()));
  }
  if (!IsZero(low)) data->min = low;
  return IterVar(data);
}

IterVar ThreadAxis(const std::string& tag) {
  const auto axis = ThreadAxisOf(tag);
  if (!axis) {
    ThrowValue(
        fmt::format("there is no thread axis '{}'; expected blockIdx.x, .y or .z, "
                    "clusterCtaIdx.x, .y or .z, threadIdx.x, .y or .z, or vthread",
                    tag));
  }
  auto data = std::make_shared<IterVarData>();
  data->name = tag;
  data->kind = LoopKind::kThread;
  data->var = VarNode::Make(tag);
  data->thread = *axis;
  return IterVar(data);
}

IterVar ThreadAxis(const Expr& extent, const std::string& tag) {
  auto data = std::make_shared<IterVarData>(*ThreadAxis(tag).node());
  data->extent = AsIndex(extent);
  return IterVar(data);
}

Expr Sum(const Expr& value, const std::vector<IterVar>& axes) {
  return Reduce(value, axes, [](const inner::Expr& v) { return inner::te::Sum(v, {}); });
}
Expr Max(const Expr& value, const std::vector<IterVar>& axes) {
  return Reduce(value, axes, [](const inner::Expr& v) { return inner::te::MaxOf(v, {}); });
}
Expr Min(const Expr& value, const std::vector<IterVar>& axes) {
  return Reduce(value, axes, [](const inner::Expr& v) { return inner::te::MinOf(v, {}); });
}
Expr Prod(const Expr& value, const std::vector<IterVar>& axes) {
  return Reduce(value, axes, [](const inner::Expr& v) { return inner::te::Prod(v, {}); });
}

const inner::te::Tensor& Unwrap(const Tensor& tensor) {
  if (!tensor) ThrowValue("the tensor is empty");
  return tensor.op().node()->outputs[static_cast<size_t>(tensor.value_index())];
}

Expr Tensor::At(const std::vector<Expr>& indices) const {
  const inner::te::Tensor& t = Unwrap(*this);
  if (indices.size() != t.shape().size()) {
    ThrowValue(fmt::format("'{}' has {} dims but got {} indices", t.name(), t.shape().size(),
                           indices.size()));
  }
  Note(*this);
  return Wrap(t.At(Dims(indices)), indices);
}
std::string Tensor::name() const { return Unwrap(*this).name(); }
std::vector<Expr> Tensor::shape() const {
  Unwrap(*this);
  if (op_->extern_body) return op_->extern_shapes[static_cast<size_t>(index_)];
  if (op_->scan_states.empty()) return op_->shape;
  return op_->scan_states[static_cast<size_t>(index_)]->shape;
}
DataType Tensor::dtype() const { return ToPublic(Unwrap(*this).dtype()); }

static const OperationData& Known(const std::shared_ptr<const OperationData>& data) {
  if (!data) ThrowValue("the operation is empty");
  return *data;
}

std::string Operation::name() const { return Known(data_).name; }
std::vector<IterVar> Operation::axis() const { return Known(data_).axis; }
std::vector<IterVar> Operation::reduce_axis() const { return Known(data_).reduce_axis; }
std::vector<Tensor> Operation::input_tensors() const { return Known(data_).inputs; }
std::vector<std::string> Operation::body() const {
  const OperationData& op = Known(data_);
  std::vector<std::string> out;
  for (const Expr& value : op.values) out.push_back(value.str());
  if (op.block_body) out.push_back(Print(op.block_body));
  return out;
}
IterVar Operation::scan_axis() const {
  if (Known(data_).scan_states.empty()) ThrowValue(fmt::format("'{}' is no scan", name()));
  return data_->scan_axis;
}
int Operation::num_outputs() const { return static_cast<int>(Known(data_).outputs.size()); }
Tensor Operation::output(int index) const {
  if (index < 0 || index >= num_outputs()) {
    throw Error("IndexError", fmt::format("'{}' has {} outputs", data_->name, num_outputs()));
  }
  return {data_, index};
}

Tensor Placeholder(const std::vector<Expr>& shape, DataType dtype, const std::string& name) {
  CheckShape(name, shape);
  auto op = std::make_shared<OperationData>();
  op->name = name;
  op->shape = shape;
  op->outputs = {inner::te::Placeholder(name, Dims(shape), FromPublic(dtype))};
  return {op, 0};
}

namespace {

// What a body is computed in: numbers have a type only then.
inner::Expr Typed(const Expr& value) {
  const inner::Expr& e = Unwrap(value);
  if (!e->dtype.IsIndex()) return e;
  return CastExpr::Make(DType::Int(value.data().literal ? 32 : 64), e);
}

inner::te::Body BodyOf(const Expr& value) {
  const std::shared_ptr<const ReduceData>& reduce = value.data().reduce;
  if (!reduce) return Typed(value);
  std::vector<inner::te::Axis> axes;
  for (const IterVar& a : reduce->axes) axes.push_back(AxisOf(a));
  return {reduce->value, std::move(axes), reduce->combiner, reduce->identity};
}

std::vector<Expr> WrapAll(const std::vector<inner::Expr>& values) {
  std::vector<Expr> out;
  for (const inner::Expr& v : values) out.push_back(Wrap(v));
  return out;
}

inner::te::TupleBody TupleOf(const std::string& name, const Tuple& tuple) {
  inner::te::TupleBody body;
  for (const Expr& v : tuple.values) body.values.push_back(Typed(v));
  for (const IterVar& a : tuple.axes) body.axes.push_back(AxisOf(a));
  if (tuple.axes.empty() != !tuple.combine ||
      (tuple.combine && tuple.identity.size() != tuple.values.size())) {
    ThrowValue(
        fmt::format("compute '{}': a reduction of several values needs axes, a combiner and one "
                    "identity for each value",
                    name));
  }
  for (size_t k = 0; k < tuple.identity.size(); ++k) {
    body.identity.push_back(Unwrap(Cast(tuple.identity[k], ToPublic(body.values[k]->dtype))));
  }
  body.combine = [&tuple, &name](const std::vector<inner::Expr>& old,
                                 const std::vector<inner::Expr>& value) {
    std::vector<Expr> combined = tuple.combine(WrapAll(old), WrapAll(value));
    if (combined.size() != old.size()) {
      ThrowValue(fmt::format("compute '{}': the combiner gives {} values for {}", name,
                             combined.size(), old.size()));
    }
    std::vector<inner::Expr> out;
    for (size_t k = 0; k < combined.size(); ++k) {
      out.push_back(Unwrap(Cast(combined[k], ToPublic(old[k]->dtype))));
    }
    return out;
  };
  return body;
}

// Every loop in a value is one of the element's, or of a reduction over it.
void CheckLoops(const std::string& name, const Expr& value, const std::vector<IterVar>& axes,
                const std::vector<IterVar>& reduced) {
  if (!value.data().loops) return;
  for (const std::shared_ptr<const IterVarData>& loop : *value.data().loops) {
    auto is_loop = [&](const IterVar& a) { return a.node() == loop; };
    if (std::any_of(axes.begin(), axes.end(), is_loop) ||
        std::any_of(reduced.begin(), reduced.end(), is_loop)) {
      continue;
    }
    if (loop->kind == LoopKind::kReduce) {
      ThrowValue(
          fmt::format("compute '{}': the reduce axis '{}' is used outside of a reduction over it",
                      name, loop->name));
    }
    if (loop->kind == LoopKind::kThread) {
      ThrowValue(
          fmt::format("compute '{}': the thread axis '{}' is no value: schedules bind loops to it",
                      name, loop->name));
    }
    ThrowValue(fmt::format("compute '{}': the loop '{}' of '{}' is used outside of it", name,
                           loop->name, loop->of));
  }
}

void CheckLoops(const std::string& name, const Tuple& tuple, const std::vector<IterVar>& axes) {
  for (const Expr& v : tuple.values) {
    const std::shared_ptr<const ReduceData>& reduce = v.data().reduce;
    CheckLoops(name, v, axes, reduce ? reduce->axes : tuple.axes);
  }
  for (const Expr& v : tuple.identity) CheckLoops(name, v, axes, {});
}

}  // namespace

std::vector<Tensor> ComputeTuple(const std::vector<Expr>& shape,
                                 const std::function<Tuple(const std::vector<Var>&)>& element,
                                 const std::string& name,
                                 const std::vector<std::string>& axis_names) {
  CheckShape(name, shape);
  auto op = std::make_shared<OperationData>();
  op->name = name;
  op->shape = shape;
  op->computed = true;
  inner::te::Storage storage;
  std::vector<Var> vars;
  for (size_t i = 0; i < shape.size(); ++i) {
    bool named = i < axis_names.size() && !axis_names[i].empty();
    storage.axes.push_back(VarNode::Make(named ? axis_names[i] : fmt::format("i{}", i)));
    op->axis.push_back(Loop(storage.axes[i]->name, name, storage.axes[i], AsIndex(shape[i])));
    vars.emplace_back(std::make_shared<const ExprData>(op->axis.back().data()));
  }
  Tuple tuple;
  {
    Reading reading(&op->inputs);
    tuple = element(vars);
  }
  for (const Tensor& input : op->inputs) storage.inputs.push_back(Unwrap(input).node());
  if (tuple.values.empty()) ThrowValue(fmt::format("compute '{}': there is no value", name));
  CheckAxes(tuple.axes);
  CheckLoops(name, tuple, op->axis);
  op->values = tuple.values;
  if (tuple.values.size() == 1 && tuple.axes.empty()) {
    const Expr& value = tuple.values[0];
    if (value.data().reduce) op->reduce_axis = value.data().reduce->axes;
    op->outputs = {inner::te::Compute(
        name, Dims(shape), [&](const inner::te::Indices&) { return BodyOf(value); }, storage)};
  } else {
    op->reduce_axis = tuple.axes;
    op->outputs = inner::te::ComputeTuple(
        name, Dims(shape), [&](const inner::te::Indices&) { return TupleOf(name, tuple); },
        storage);
  }
  std::vector<Tensor> out;
  for (size_t k = 0; k < op->outputs.size(); ++k) out.emplace_back(op, static_cast<int>(k));
  return out;
}

Tensor ComputeIndexed(const std::vector<Expr>& shape,
                      const std::function<Expr(const std::vector<Var>&)>& element,
                      const std::string& name, const std::vector<std::string>& axis_names) {
  return ComputeTuple(
      shape, [&](const std::vector<Var>& i) { return Tuple{{element(i)}, {}, {}, {}}; }, name,
      axis_names)[0];
}

std::vector<Tensor> Scan(const std::vector<Tensor>& init, const std::vector<Tensor>& update,
                         const std::vector<Tensor>& state, const std::string& name, int axis) {
  auto all = [](const std::vector<Tensor>& tensors) {
    std::vector<inner::te::Tensor> out;
    for (const Tensor& t : tensors) out.push_back(Unwrap(t));
    return out;
  };
  if (axis < 0) ThrowValue(fmt::format("scan '{}': there is no axis {}", name, axis));
  auto op = std::make_shared<OperationData>();
  op->name = name;
  op->computed = true;
  op->outputs =
      Take(inner::te::Scan(name, all(init), all(update), all(state), static_cast<size_t>(axis)));
  op->shape = state[0].shape();
  op->inputs = init;
  op->inputs.insert(op->inputs.end(), update.begin(), update.end());
  for (const Tensor& t : state) op->scan_states.push_back(t.op().node());
  // Where a row is one update, its loop over the rows is the scan's.
  const bool alone = op->outputs[0].node()->scan->steps.size() == 1;
  op->scan_axis = alone ? update[0].op().axis()[static_cast<size_t>(axis)]
                        : Loop(name + ".row", name, nullptr, nullptr);
  std::vector<Tensor> out;
  for (size_t k = 0; k < state.size(); ++k) out.emplace_back(op, static_cast<int>(k));
  return out;
}

Tensor Scan(const Tensor& init, const Tensor& update, const Tensor& state, const std::string& name,
            int axis) {
  return Scan(std::vector{init}, {update}, {state}, name, axis)[0];
}

}  // namespace tenon::inline v0::te

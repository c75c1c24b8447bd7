// Tensors, operations and reductions.
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
    std::optional<int64_t> n = AsInt(AsIndex(d));
    if (n && *n < 0) ThrowValue(fmt::format("'{}': a dim of {} is negative", name, *n));
  }
}

std::vector<inner::Expr> Dims(const std::vector<Expr>& shape) {
  std::vector<inner::Expr> dims;
  for (const Expr& d : shape) dims.push_back(AsIndex(d));
  return dims;
}

IterVar Loop(const std::string& name, LoopKind kind, inner::Var var, inner::Expr extent) {
  auto data = std::make_shared<IterVarData>();
  data->name = name;
  data->kind = kind;
  data->var = std::move(var);
  data->extent = std::move(extent);
  return IterVar(data);
}

inner::te::Body BodyOf(const std::string& name, const Expr& value) {
  const ExprData& e = value.data();
  if (!e.reduce)
    return e.literal && !e.expr->dtype.IsFloat()
               ? inner::te::Body(MakeIntConst(DType::Int(32), *AsInt(e.expr)))
               : inner::te::Body(e.expr->dtype.IsIndex() ? CastExpr::Make(DType::Int(64), e.expr)
                                                         : e.expr);
  std::vector<inner::te::Axis> axes;
  for (const IterVar& a : e.reduce->axes) axes.push_back({a.node()->var, a.node()->extent});
  return {e.reduce->value, std::move(axes), e.reduce->combiner, e.reduce->identity};
}

Expr Reduce(const Expr& value, const std::vector<IterVar>& axes,
            inner::te::Body (*make)(const inner::Expr&)) {
  if (axes.empty()) ThrowValue("a reduction needs an axis; see reduce_axis");
  inner::Expr v = Unwrap(value);
  if (value.data().literal || v->dtype.IsIndex()) {
    v = CastExpr::Make(v->dtype.IsFloat() ? v->dtype : DType::Int(64), v);
  }
  auto reduce = std::make_shared<ReduceData>();
  for (const IterVar& a : axes) {
    if (!a.node() || a.node()->kind != LoopKind::kReduce) {
      ThrowValue(fmt::format("'{}' is no reduce axis", a.name()));
    }
    reduce->axes.push_back(a);
  }
  inner::te::Body body = make(v);
  reduce->value = body.value;
  reduce->identity = body.init;
  reduce->combiner = body.combiner;
  ExprData data;
  data.expr = v;
  data.reduce = reduce;
  return Expr(std::make_shared<const ExprData>(std::move(data)));
}

}  // namespace

IterVar ReduceAxis(const Expr& lo, const Expr& hi, const std::string& name) {
  inner::Expr low = AsIndex(lo);
  auto data = std::make_shared<IterVarData>();
  data->name = name;
  data->kind = LoopKind::kReduce;
  data->var = VarNode::Make(name);
  data->extent = IsZero(low) ? AsIndex(hi) : AsIndex(hi - lo);
  if (!IsZero(low)) data->min = low;
  return IterVar(data);
}

IterVar ThreadAxis(const std::string& tag) {
  auto data = std::make_shared<IterVarData>();
  data->name = tag;
  data->kind = LoopKind::kThread;
  data->tag = tag;
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
  return Wrap(t.At(Dims(indices)));
}
std::string Tensor::name() const { return Unwrap(*this).name(); }
std::vector<Expr> Tensor::shape() const {
  Unwrap(*this);
  return op_->shape;
}
DataType Tensor::dtype() const { return ToPublic(Unwrap(*this).dtype()); }

std::string Operation::name() const { return data_->name; }
std::vector<IterVar> Operation::axis() const { return data_->axis; }
std::vector<IterVar> Operation::reduce_axis() const { return data_->reduce_axis; }
std::vector<Tensor> Operation::input_tensors() const { return data_->inputs; }
int Operation::num_outputs() const { return static_cast<int>(data_->outputs.size()); }
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

Tensor ComputeIndexed(const std::vector<Expr>& shape,
                      const std::function<Expr(const std::vector<Var>&)>& element,
                      const std::string& name, const std::vector<std::string>& axis_names) {
  CheckShape(name, shape);
  auto op = std::make_shared<OperationData>();
  op->name = name;
  op->shape = shape;
  op->computed = true;
  std::shared_ptr<const ReduceData> reduce;
  inner::te::Storage storage;
  storage.axis_names = axis_names;
  auto body = [&](const inner::te::Indices& indices) {
    std::vector<Var> vars;
    for (const inner::Expr& i : indices) {
      ExprData data;
      data.expr = i;
      vars.emplace_back(std::make_shared<const ExprData>(std::move(data)));
    }
    Reading reading(&op->inputs);
    Expr value = element(vars);
    reduce = value.data().reduce;
    return BodyOf(name, value);
  };
  op->outputs = {inner::te::Compute(name, Dims(shape), body, storage)};
  const inner::te::TensorNode& node = *op->outputs[0].node();
  for (size_t i = 0; i < node.axes.size(); ++i) {
    op->axis.push_back(Loop(node.axes[i]->name, LoopKind::kSpatial, node.axes[i], node.shape[i]));
  }
  if (reduce) op->reduce_axis = reduce->axes;
  return {op, 0};
}

}  // namespace tenon::inline v0::te

#include "te/te.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/print.h"
#include "ir/visit.h"

namespace tenon::te {

Axis ReduceAxis(std::string name, Expr extent) {
  return {VarNode::Make(std::move(name)), std::move(extent)};
}

Body Sum(Expr value, std::vector<Axis> axes, Expr init) {
  if (!init) init = MakeConst(value->dtype, 0);
  return {std::move(value), std::move(axes), BinaryOp::kAdd, std::move(init)};
}
Body MaxOf(Expr value, std::vector<Axis> axes) {
  Expr init = LowestOf(value->dtype);
  return {std::move(value), std::move(axes), BinaryOp::kMax, std::move(init)};
}
Body MinOf(Expr value, std::vector<Axis> axes) {
  Expr init = HighestOf(value->dtype);
  return {std::move(value), std::move(axes), BinaryOp::kMin, std::move(init)};
}
Body Prod(Expr value, std::vector<Axis> axes) {
  Expr init = MakeConst(value->dtype, 1);
  return {std::move(value), std::move(axes), BinaryOp::kMul, std::move(init)};
}

// The tensors indexed while a Compute's lambda runs, innermost Compute last.
static thread_local std::vector<std::vector<TensorRef>*> g_recorders;

namespace {

/// Keeps g_recorders as it was, also when an element function throws (those of users may).
class Recording {
 public:
  explicit Recording(std::vector<TensorRef>* seen) { g_recorders.push_back(seen); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() { g_recorders.pop_back(); }
};

}  // namespace

static void Record(const TensorRef& t) {
  if (g_recorders.empty()) return;
  std::vector<TensorRef>& seen = *g_recorders.back();
  if (std::find(seen.begin(), seen.end(), t) == seen.end()) seen.push_back(t);
}

Expr Tensor::At(const Indices& indices) const {
  TN_CHECK(node_ && indices.size() == node_->shape.size(), "{} has rank {}, indexed with {}",
           node_ ? node_->name : "null tensor", node_ ? node_->shape.size() : 0, indices.size());
  Record(node_);
  return Load::Make(node_->buffer, node_->place ? node_->place(indices) : indices);
}
const std::string& Tensor::name() const { return node_->name; }
DType Tensor::dtype() const { return node_->dtype; }
const std::vector<Expr>& Tensor::shape() const { return node_->shape; }
const Buffer& Tensor::buffer() const { return node_->buffer; }

Tensor Placeholder(std::string name, std::vector<Expr> shape, DType dtype, Buffer buffer) {
  auto n = MakeRef<TensorNode>();
  n->buffer = buffer ? std::move(buffer) : BufferNode::Make(name, dtype, shape);
  n->name = std::move(name);
  n->dtype = dtype;
  n->shape = std::move(shape);
  return Tensor(n);
}

// The loops' variables, and what is known to be read before the body is.
static Indices Begin(size_t rank, Storage* storage, TensorNode* n) {
  n->axes = std::move(storage->axes);
  n->inputs = std::move(storage->inputs);
  for (size_t i = n->axes.size(); i < rank; ++i) {
    n->axes.push_back(VarNode::Make(fmt::format("i{}", i)));
  }
  return {n->axes.begin(), n->axes.end()};
}

Tensor Compute(std::string name, std::vector<Expr> shape,
               const std::function<Body(const Indices&)>& element, Storage storage) {
  auto n = MakeRef<TensorNode>();
  Indices indices = Begin(shape.size(), &storage, n.get());
  const Recording recording(&n->inputs);
  Body body = element(indices);
  n->dtype = body.value->dtype;
  n->buffer = storage.buffer ? storage.buffer : BufferNode::Make(name, n->dtype, shape);
  n->place = std::move(storage.place);
  n->name = std::move(name);
  n->shape = std::move(shape);
  n->computed = true;
  n->value = std::move(body.value);
  n->init = std::move(body.init);
  n->reduce_axes = std::move(body.axes);
  n->combiner = body.combiner;
  n->fp = storage.fp;
  n->attrs = std::move(storage.attrs);
  return Tensor(n);
}

// What both kinds of tensors that are computed in order have; `shape` is that of the tensor.
static Ref<TensorNode> InSteps(const std::string& name, std::vector<Expr> shape, StepsNode* steps,
                               const std::function<StepsBody(const Indices&)>& element,
                               Storage storage) {
  auto n = MakeRef<TensorNode>();
  const Indices indices = Begin(shape.size(), &storage, n.get());
  const Recording recording(&n->inputs);
  const StepsBody body = element(indices);
  steps->first = body.first;
  steps->before = VarNode::Make(name + ".before", body.first->dtype);
  steps->next = body.next(steps->before);
  steps->place = indices;
  n->name = name;
  n->dtype = body.first->dtype;
  n->place = std::move(storage.place);
  n->shape = std::move(shape);
  n->computed = true;
  n->fp = storage.fp;
  n->attrs = std::move(storage.attrs);
  return n;
}

Tensor AfterSteps(std::string name, std::vector<Expr> shape, const Axis& step,
                  const std::function<StepsBody(const Indices&)>& element, Storage storage) {
  auto steps = MakeRef<StepsNode>();
  const Buffer given = storage.buffer;
  const Ref<TensorNode> n =
      InSteps(name, std::move(shape), steps.get(), element, std::move(storage));
  n->buffer = given ? given : BufferNode::Make(name, n->dtype, n->shape);
  steps->step = step;
  steps->state = n->buffer;
  if (n->place) steps->place = n->place(steps->place);
  n->steps = steps;
  return Tensor(n);
}

Tensor WhileStepping(std::string name, std::vector<Expr> shape, size_t axis, bool before,
                     const std::function<StepsBody(const Indices&)>& element, Storage storage) {
  auto steps = MakeRef<StepsNode>();
  steps->axis = axis;
  std::vector<Expr> kept = shape;
  kept[axis] = IndexConst(1);
  const Buffer given = storage.buffer;
  const Ref<TensorNode> n =
      InSteps(name, std::move(shape), steps.get(), element, std::move(storage));
  steps->state = BufferNode::Make(name + ".state", n->dtype, std::move(kept));
  steps->place[axis] = IndexConst(0);
  steps->keeps_before = before;
  n->buffer = given ? given : BufferNode::Make(name, n->dtype, n->shape);
  n->steps = steps;
  return Tensor(n);
}

// The tensor after the steps, and one of what is there before each if that is `kept`.
static Scattered MakeScatter(const std::string& name, const Tensor& begun,
                             const std::vector<Expr>& apart, const Axis& step,
                             const std::function<ScatterBody(const Indices&)>& change, bool kept) {
  auto scatter = MakeRef<ScatterNode>();
  auto after = MakeRef<TensorNode>();
  Indices indices;
  for (const Expr& size : apart) {
    scatter->apart.push_back({VarNode::Make(fmt::format("u{}", indices.size())), size});
    indices.push_back(scatter->apart.back().var);
  }
  scatter->name = name;
  scatter->begun = begun.node();
  scatter->step = step;
  after->inputs = {begun.node()};
  const Recording recording(&after->inputs);
  ScatterBody body = change(indices);
  const TensorNode& first = *begun.node();
  scatter->place = first.place ? first.place(body.place) : std::move(body.place);
  scatter->where = std::move(body.where);
  scatter->next = body.next(Load::Make(first.buffer, scatter->place));
  after->name = name;
  after->dtype = first.dtype;
  after->shape = first.shape;
  after->buffer = first.buffer;
  after->place = first.place;
  after->computed = true;
  after->fp = first.fp;
  after->attrs = first.attrs;
  after->scatter = scatter;
  if (!kept) return {Tensor(after), Tensor()};
  TN_CHECK(!scatter->where, "a step of '{}' may change nothing", name);
  auto before = MakeRef<TensorNode>(*after);
  before->name = name + "_before";
  before->shape = apart;
  before->shape.push_back(step.extent);
  before->buffer = scatter->kept = BufferNode::Make(before->name, first.dtype, before->shape);
  before->place = nullptr;
  return {Tensor(after), Tensor(before)};
}

Tensor Scatter(const std::string& name, const Tensor& begun, const std::vector<Expr>& apart,
               const Axis& step, const std::function<ScatterBody(const Indices&)>& change) {
  return MakeScatter(name, begun, apart, step, change, false).after;
}

Scattered ScatterKeeping(const std::string& name, const Tensor& begun,
                         const std::vector<Expr>& apart, const Axis& step,
                         const std::function<ScatterBody(const Indices&)>& change) {
  return MakeScatter(name, begun, apart, step, change, true);
}

std::vector<Tensor> ComputeTuple(std::string name, std::vector<Expr> shape,
                                 const std::function<TupleBody(const Indices&)>& element,
                                 Storage storage) {
  auto shared = MakeRef<TensorNode>();
  Indices indices = Begin(shape.size(), &storage, shared.get());
  TupleBody body;
  {
    const Recording recording(&shared->inputs);
    body = element(indices);
  }
  auto tuple = MakeRef<TupleNode>();
  tuple->name = name;
  tuple->values = body.values;
  tuple->identity = body.identity;
  std::vector<Expr> old;
  for (size_t k = 0; k < body.values.size(); ++k) {
    tuple->buffers.push_back(
        BufferNode::Make(fmt::format("{}.v{}", name, k), body.values[k]->dtype, shape));
    old.push_back(Load::Make(tuple->buffers[k], indices));
  }
  if (!body.axes.empty()) {
    for (size_t k = 0; k < body.values.size(); ++k) {
      tuple->arguments.push_back(
          VarNode::Make(fmt::format("{}.x{}", name, k), body.values[k]->dtype));
    }
    tuple->combined = body.combine(old, {tuple->arguments.begin(), tuple->arguments.end()});
  }
  shared->shape = std::move(shape);
  shared->computed = true;
  shared->reduce_axes = std::move(body.axes);
  shared->fp = storage.fp;
  shared->attrs = std::move(storage.attrs);
  shared->tuple = tuple;
  std::vector<Tensor> out;
  for (const Buffer& b : tuple->buffers) {
    auto n = MakeRef<TensorNode>(*shared);
    n->name = b->name;
    n->dtype = b->dtype;
    n->buffer = b;
    out.emplace_back(n);
  }
  return out;
}

}  // namespace tenon::te

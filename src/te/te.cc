#include "te/te.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/visit.h"

namespace tenon::te {

Axis ReduceAxis(std::string name, Expr extent) {
  return {VarNode::Make(std::move(name)), std::move(extent)};
}

static Expr Lowest(DType type) {
  if (type.IsFloat()) return FloatConst::Make(type, -std::numeric_limits<double>::infinity());
  if (type.IsBool() || type.code == TypeCode::kUInt) return IntConst::Make(type, 0);
  return IntConst::Make(type, type.bits == 64 ? std::numeric_limits<int64_t>::min()
                                              : -(int64_t{1} << (type.bits - 1)));
}

static Expr Highest(DType type) {
  if (type.IsFloat()) return FloatConst::Make(type, std::numeric_limits<double>::infinity());
  if (type.IsBool()) return IntConst::Make(type, 1);
  if (type.code == TypeCode::kUInt) return IntConst::Make(type, -1);
  return IntConst::Make(type, type.bits == 64 ? std::numeric_limits<int64_t>::max()
                                              : (int64_t{1} << (type.bits - 1)) - 1);
}

Body Sum(Expr value, std::vector<Axis> axes, Expr init) {
  if (!init) init = MakeConst(value->dtype, 0);
  return {std::move(value), std::move(axes), BinaryOp::kAdd, std::move(init)};
}
Body MaxOf(Expr value, std::vector<Axis> axes) {
  Expr init = Lowest(value->dtype);
  return {std::move(value), std::move(axes), BinaryOp::kMax, std::move(init)};
}
Body MinOf(Expr value, std::vector<Axis> axes) {
  Expr init = Highest(value->dtype);
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

Tensor Compute(std::string name, std::vector<Expr> shape,
               const std::function<Body(const Indices&)>& element, Storage storage) {
  auto n = MakeRef<TensorNode>();
  Indices indices;
  for (size_t i = 0; i < shape.size(); ++i) {
    bool named = i < storage.axis_names.size() && !storage.axis_names[i].empty();
    n->axes.push_back(VarNode::Make(named ? storage.axis_names[i] : fmt::format("i{}", i)));
    indices.push_back(n->axes.back());
  }
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

namespace {

Region PointRegion(const Buffer& buffer, const Indices& indices) {
  std::vector<Range> ranges;
  for (const Expr& i : indices) ranges.push_back(RangeNode::Make(i, IndexConst(1)));
  return RegionNode::Make(buffer, std::move(ranges));
}

// The elements read by `e`, in the order of their first appearance, each place once.
std::vector<Region> Reads(const Expr& e) {
  std::vector<Region> reads;
  PreOrder(e, [&](const NodeRef& n) {
    if (const auto* load = As<Load>(n)) {
      Region r = PointRegion(load->buffer, load->indices);
      bool known = false;
      for (const Region& other : reads) known |= StructuralEqual(other, r);
      if (!known) reads.push_back(std::move(r));
    }
    return n->kind != NodeKind::kBuffer;
  });
  return reads;
}

// Builds the block of one computed tensor under its serial loops.
class BlockBuilder {
 public:
  BlockBuilder(const TensorNode& t, std::string name) : t_(t) { block_.name = std::move(name); }

  Stmt Build() {
    for (size_t i = 0; i < t_.axes.size(); ++i) {
      AddAxis(t_.axes[i], t_.shape[i], IterKind::kSpatial, t_.axes[i]->name);
    }
    for (const Axis& a : t_.reduce_axes) {
      AddAxis(a.var, a.extent, IterKind::kReduce, a.var->name);
    }
    Indices place;
    for (const Var& v : t_.axes) place.push_back(v);
    if (t_.place) place = t_.place(place);
    Expr value = t_.value;
    block_.reads = Reads(value);
    if (!t_.reduce_axes.empty()) {
      Expr old = Load::Make(t_.buffer, place);
      value = Binary::Make(t_.combiner, old, value);
      block_.init = Store::Make(t_.buffer, place, t_.init);
      for (Region& r : Reads(t_.init)) block_.reads.push_back(std::move(r));
    }
    block_.writes = {PointRegion(t_.buffer, place)};
    block_.body = Store::Make(t_.buffer, place, value);
    block_.fp = t_.fp;
    block_.attrs = t_.attrs;
    return Wrap();
  }

 private:
  void AddAxis(const Var& var, const Expr& extent, IterKind kind, const std::string& axis) {
    Var loop = VarNode::Make(block_.name + "." + axis);
    Var fresh = VarNode::Make("v" + axis);
    rename_[var.get()] = fresh;
    loops_.push_back({loop, extent});
    block_.iters.push_back(IterVarNode::Make(fresh, kind, IndexConst(0), extent, loop));
  }

  Stmt Wrap() {
    for (Region& r : block_.reads) r = Substitute(r, rename_);
    for (Region& r : block_.writes) r = Substitute(r, rename_);
    if (block_.init) block_.init = Substitute(block_.init, rename_);
    block_.body = Substitute(block_.body, rename_);
    Stmt body = Block::Make(std::move(block_));
    for (auto it = loops_.rbegin(); it != loops_.rend(); ++it) {
      body = For::Make(it->var, IndexConst(0), it->extent, ForKind::kSerial, body);
    }
    return body;
  }

  const TensorNode& t_;
  Block block_;
  std::vector<Axis> loops_;
  VarMap rename_;
};

std::string Unique(const std::string& wanted, std::set<std::string>* used) {
  std::string name = wanted;
  for (int i = 1; !used->insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
  return name;
}

}  // namespace

// Computed tensors that `outputs` need, producers first; `stop` are the function's inputs.
static std::vector<TensorRef> ProducersFirst(const std::vector<Tensor>& outputs,
                                             const std::unordered_set<const TensorNode*>& stop) {
  std::vector<TensorRef> order;
  std::unordered_set<const TensorNode*> done(stop);
  std::vector<std::pair<TensorRef, size_t>> stack;
  for (const Tensor& out : outputs) {
    stack.emplace_back(out.node(), 0);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (done.count(node.get())) {
        stack.pop_back();
      } else if (next < node->inputs.size()) {
        TensorRef input = node->inputs[next++];
        stack.emplace_back(std::move(input), 0);
      } else {
        done.insert(node.get());
        order.push_back(node);
        stack.pop_back();
      }
    }
  }
  return order;
}

Expected<Func> MakeFunc(const std::string& name, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& outputs, const FuncOptions& options) {
  PrimFunc f;
  std::unordered_set<const TensorNode*> stop;
  std::unordered_set<const BufferNode*> params, locals_seen;
  for (const Tensor& t : inputs) {
    stop.insert(t.node().get());
    if (params.insert(t.buffer().get()).second) f.buffers.push_back(t.buffer());
  }
  for (const Tensor& t : outputs) {
    if (locals_seen.insert(t.buffer().get()).second) {
      if (!params.insert(t.buffer().get()).second) {
        return MakeError(
            fmt::format("function '{}': '{}' is both an input and an output", name, t.name()));
      }
      f.buffers.push_back(t.buffer());
      ++f.num_outputs;
    }
  }
  std::set<std::string> used;
  std::vector<Stmt> blocks;
  std::vector<Buffer> locals;
  for (const TensorRef& t : ProducersFirst(outputs, stop)) {
    if (!t->computed) {
      return MakeError(
          fmt::format("function '{}': '{}' is read but is not an input", name, t->name));
    }
    blocks.push_back(BlockBuilder(*t, Unique(t->name, &used)).Build());
    if (!params.count(t->buffer.get()) && locals_seen.insert(t->buffer.get()).second) {
      locals.push_back(t->buffer);
    }
  }
  Stmt body = Seq::Make(std::move(blocks));
  for (auto it = locals.rbegin(); it != locals.rend(); ++it) body = Alloc::Make(*it, body);
  f.name = name;
  f.dims = options.dims;
  for (const DimRange& r : options.ranges) {
    f.dim_lo.push_back(r.lo);
    f.dim_hi.push_back(r.hi);
    f.dim_step.push_back(r.step);
  }
  f.target = options.target;
  f.attrs = options.attrs;
  f.body = body;
  return PrimFunc::Make(std::move(f));
}

}  // namespace tenon::te

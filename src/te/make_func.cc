// From tensors to a function: one block of loop IR per computed tensor.
//
// A computed tensor is an index map with a value: element (i, j) is this expression. That is a
// block already: spatial variables for the axes, reduce variables for those of a reduction, the
// identity as init, the value as the body, and as regions the single elements that it reads and
// writes. Around it stand serial loops over the shape, so that the definition runs as it stands;
// schedules do the rest. C[i, j] = sum of A[i, k] * B[k, j] over k is
//
//   for C.i in 0..7, C.j in 0..10, C.k in 0..6 {
//     block C(vi: spatial = C.i, vj: spatial = C.j, vk: reduce = C.k) {
//       reads A[vi, vk], B[vk, vj]; writes C[vi, vj]
//       init { C[vi, vj] = 0f32 }
//       C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
//     }
//   }
//
// Tensors come in the order in which they need each other; those that are not results are
// allocations around everything. A scan's tensors share one buffer with its first rows, and their
// variable over the rows is `ordered`, since each row reads what the one before it wrote. So is
// that over the steps of a tensor that is computed in order; what a step leaves is a buffer that
// the block writes beside the tensor. Steps that change elements of a tensor wherever these are
// write its buffer once more.

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "arith/analyzer.h"
#include "ir/visit.h"
#include "loop/edit.h"
#include "loop/fresh_names.h"
#include "loop/reducer.h"
#include "te/program.h"

namespace tenon::te {

namespace {

Region PointRegion(const Buffer& buffer, const Indices& indices) {
  std::vector<Range> ranges;
  for (const Expr& i : indices) ranges.push_back(RangeNode::Make(i, IndexConst(1)));
  return RegionNode::Make(buffer, std::move(ranges));
}

// The elements read by expressions, in the order of their first appearance, each place once.
std::vector<Region> Reads(const std::vector<Expr>& values) {
  std::vector<Region> reads;
  auto visit = [&](const NodeRef& n) {
    if (const auto* load = As<Load>(n)) {
      Region r = PointRegion(load->buffer, load->indices);
      bool known = false;
      for (const Region& other : reads) known |= StructuralEqual(other, r);
      if (!known) reads.push_back(std::move(r));
    }
    return n->kind != NodeKind::kBuffer;
  };
  for (const Expr& e : values) PreOrder(e, visit);
  return reads;
}

// Builds the block of one computed tensor under its serial loops. Every axis added has a variable
// of the block and is bound to a loop; rename_ has the block's variable for the tensor's.
class BlockBuilder {
 public:
  BlockBuilder(const TensorNode& t, std::string name) : t_(t) { block_.name = std::move(name); }
  /// A part of a scan: the rows from the first ones on, in order. `row`: a loop over them that is
  /// there; null: one of its own, outermost.
  BlockBuilder(const TensorNode& t, std::string name, const ScanNode& scan, Var row)
      : t_(t), scan_(&scan), row_(std::move(row)) {
    block_.name = std::move(name);
  }

  Stmt Build() {
    for (size_t i = 0; i < t_.axes.size(); ++i) {
      const bool steps = t_.steps && t_.steps->axis == i;
      AddAxis(t_.axes[i], t_.shape[i], steps ? IterKind::kOrdered : IterKind::kSpatial,
              t_.axes[i]->name);
    }
    for (const Axis& a : t_.reduce_axes) {
      AddAxis(a.var, a.extent, IterKind::kReduce, a.var->name);
    }
    Indices place;
    for (const Var& v : t_.axes) place.push_back(v);
    if (t_.tuple) return BuildTuple(place);
    if (t_.steps) return BuildSteps(*t_.steps, place);
    if (t_.scatter) return BuildScatter(*t_.scatter);
    if (t_.place) place = t_.place(place);
    Expr value = t_.value;
    block_.reads = Reads({value});
    if (!t_.reduce_axes.empty()) {
      Expr old = Load::Make(t_.buffer, place);
      value = Binary::Make(t_.combiner, old, value);
      block_.init = Store::Make(t_.buffer, place, t_.init);
      for (Region& r : Reads({t_.init})) block_.reads.push_back(std::move(r));
    }
    block_.writes = {PointRegion(t_.buffer, place)};
    block_.body = Store::Make(t_.buffer, place, value);
    block_.fp = t_.fp;
    block_.attrs = t_.attrs;
    return Wrap();
  }

 private:
  void AddAxis(const Var& var, const Expr& extent, IterKind kind, const std::string& axis) {
    std::string name = axis;
    for (int i = 1; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", axis, i);
    Var fresh = VarNode::Make("v" + name);
    rename_[var.get()] = fresh;
    const bool in_order =
        scan_ != nullptr && kind == IterKind::kSpatial && block_.iters.size() == scan_->axis;
    Expr min = in_order ? scan_->first : IndexConst(0);
    Expr count = in_order ? extent - scan_->first : extent;
    Var loop = in_order && row_ ? row_ : VarNode::Make(block_.name + "." + name);
    if (in_order && !row_) {
      loops_.insert(loops_.begin(), {loop, min, count});
    } else if (!in_order) {
      loops_.push_back({loop, min, count});
    }
    // What is between a state and an update is a function of the state: its place is what orders
    // it.
    const bool reads_own = in_order && IsUpdate();
    block_.iters.push_back(
        IterVarNode::Make(fresh, reads_own ? IterKind::kOrdered : kind, min, count, loop));
  }

  bool IsUpdate() const {
    return std::any_of(scan_->update.begin(), scan_->update.end(),
                       [&](const TensorRef& t) { return t.get() == &t_; });
  }

  Stmt BuildTuple(const Indices& place) {
    const TupleNode& tuple = *t_.tuple;
    const bool reduces = !t_.reduce_axes.empty();
    std::vector<Stmt> starts;
    std::vector<Expr> read = tuple.values;
    read.insert(read.end(), tuple.combined.begin(), tuple.combined.end());
    for (size_t k = 0; k < tuple.values.size(); ++k) {
      if (reduces) starts.push_back(Store::Make(tuple.buffers[k], place, tuple.identity[k]));
      block_.writes.push_back(PointRegion(tuple.buffers[k], place));
    }
    for (const Region& r : Reads(read)) {
      bool own =
          std::find(tuple.buffers.begin(), tuple.buffers.end(), r->buffer) != tuple.buffers.end();
      if (!own) block_.reads.push_back(r);
    }
    if (reduces) block_.init = Seq::Make(std::move(starts));
    block_.body = TupleBodyOf(tuple, place, reduces);
    block_.fp = t_.fp;
    block_.attrs = t_.attrs;
    return Wrap();
  }

  // What is kept is stored behind what a step leaves, or before it.
  Stmt BuildSteps(const StepsNode& steps, Indices place) {
    const bool kept = steps.axis != StepsNode::kNoAxis;
    if (!kept) AddAxis(steps.step.var, steps.step.extent, IterKind::kOrdered, steps.step.var->name);
    if (t_.place) place = t_.place(place);
    const Expr there = Load::Make(steps.state, steps.place);
    const Expr next = Substitute(steps.next, {{steps.before.get(), there}});
    block_.init = Store::Make(steps.state, steps.place, steps.first);
    block_.writes = {PointRegion(steps.state, steps.place)};
    block_.body = Store::Make(steps.state, steps.place, next);
    if (kept) {
      block_.writes.insert(block_.writes.begin(), PointRegion(t_.buffer, place));
      const Stmt keep = Store::Make(t_.buffer, place, there);
      block_.body = Seq::Make(steps.keeps_before ? std::vector{keep, block_.body}
                                                 : std::vector{block_.body, keep});
    }
    block_.reads = Reads({next, steps.first});
    std::erase_if(block_.reads, [&](const Region& r) { return r->buffer == steps.state; });
    block_.fp = t_.fp;
    block_.attrs = t_.attrs;
    return Wrap();
  }

  // What it writes is anywhere along an axis, unless the place there is a variable of the block.
  Stmt BuildScatter(const ScatterNode& scatter) {
    Indices step;  // in what is kept
    for (const Axis& a : scatter.apart) {
      AddAxis(a.var, a.extent, IterKind::kSpatial, a.var->name);
      step.push_back(a.var);
    }
    AddAxis(scatter.step.var, scatter.step.extent, IterKind::kOrdered, scatter.step.var->name);
    step.push_back(scatter.step.var);
    const Buffer& buffer = scatter.begun->buffer;
    std::vector<Range> places;
    for (size_t i = 0; i < scatter.place.size(); ++i) {
      const bool is_own = std::any_of(scatter.apart.begin(), scatter.apart.end(),
                                      [&](const Axis& a) { return a.var == scatter.place[i]; });
      places.push_back(is_own ? RangeNode::Make(scatter.place[i], IndexConst(1))
                              : RangeNode::Make(IndexConst(0), buffer->shape[i]));
    }
    block_.writes = {RegionNode::Make(buffer, std::move(places))};
    block_.body = Store::Make(buffer, scatter.place, scatter.next);
    std::vector<Expr> read = scatter.place;
    read.push_back(scatter.next);
    if (scatter.kept) {
      block_.writes.insert(block_.writes.begin(), PointRegion(scatter.kept, step));
      const Expr there = Load::Make(buffer, scatter.place);
      block_.body = Seq::Make({Store::Make(scatter.kept, step, there), block_.body});
    }
    if (scatter.where) {
      block_.body = If::Make(scatter.where, block_.body);
      read.push_back(scatter.where);
    }
    block_.reads = Reads(read);
    std::erase_if(block_.reads, [&](const Region& r) { return r->buffer == buffer; });
    block_.fp = t_.fp;
    block_.attrs = t_.attrs;
    return Wrap();
  }

  // All components are combined before the first is stored, for each may need the others' old
  // value. What is combined in is bound first: schedules tell it from the combination by that. A
  // single component that is a known reduction is an update like any other.
  Stmt TupleBodyOf(const TupleNode& tuple, const Indices& place, bool reduces) {
    const std::vector<Expr>& results = reduces ? tuple.combined : tuple.values;
    if (results.size() == 1) {
      VarMap value;
      if (reduces) value[tuple.arguments[0].get()] = tuple.values[0];
      Block plain = block_;
      plain.body = Store::Make(tuple.buffers[0], place, Substitute(results[0], value));
      if (!reduces || DetectReducer(plain)) return plain.body;
    }
    std::vector<Stmt> stores;
    std::vector<Var> held;
    for (size_t k = 0; k < results.size(); ++k) {
      held.push_back(VarNode::Make(fmt::format("{}.new{}", block_.name, k), results[k]->dtype));
      stores.push_back(Store::Make(tuple.buffers[k], place, held[k]));
    }
    Stmt body = Seq::Make(std::move(stores));
    for (size_t k = results.size(); k-- > 0;) body = Let::Make(held[k], results[k], body);
    for (size_t k = tuple.arguments.size(); k-- > 0;) {
      body = Let::Make(tuple.arguments[k], tuple.values[k], body);
    }
    return body;
  }

  Stmt Wrap() {
    for (Region& r : block_.reads) r = Substitute(r, rename_);
    for (Region& r : block_.writes) r = Substitute(r, rename_);
    if (block_.init) block_.init = Substitute(block_.init, rename_);
    block_.body = Substitute(block_.body, rename_);
    Stmt body = Block::Make(block_);
    for (auto it = loops_.rbegin(); it != loops_.rend(); ++it) {
      body = For::Make(it->var, it->min, it->extent, ForKind::kSerial, body);
    }
    return body;
  }

  struct Loop {
    Var var;
    Expr min, extent;
  };
  const TensorNode& t_;
  const ScanNode* const scan_ = nullptr;
  const Var row_;
  Block block_;
  std::vector<Loop> loops_;
  std::set<std::string> names_;
  VarMap rename_;
};

}  // namespace

std::vector<TensorRef> ProducersFirst(const std::vector<Tensor>& outputs,
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

namespace {

/// Builds the body: a block per computed tensor or tuple, and what they need allocated. A buffer is
/// known_ from when it is a parameter or allocated, and blocks_ are in an order in which producers
/// come first.
class FuncBuilder {
 public:
  FuncBuilder(const std::string& name, PrimFunc* f, BlockNames* names)
      : name_(name), f_(*f), names_(*names) {}

  Status Parameters(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
    for (const Tensor& t : inputs) {
      stop_.insert(t.node().get());
      if (known_.insert(t.buffer().get()).second) f_.buffers.push_back(t.buffer());
    }
    std::unordered_set<const BufferNode*> written;
    for (const Tensor& t : outputs) {
      if (!written.insert(t.buffer().get()).second) continue;
      if (!known_.insert(t.buffer().get()).second) {
        return MakeError(
            fmt::format("function '{}': '{}' is both an input and an output", name_, t.name()));
      }
      f_.buffers.push_back(t.buffer());
      ++f_.num_outputs;
    }
    return Ok();
  }

  Status Body(const std::vector<Tensor>& outputs) {
    for (const TensorRef& t : ProducersFirst(outputs, stop_)) {
      if (!t->computed) {
        return MakeError(
            fmt::format("function '{}': '{}' is read but is not an input", name_, t->name));
      }
      Add(*t);
      if (const RefCounted* both = Together(*t)) names_[t.get()] = together_.at(both);
    }
    Stmt body = Seq::Make(std::move(blocks_));
    for (auto it = locals_.rbegin(); it != locals_.rend(); ++it) body = Alloc::Make(*it, body);
    f_.body = body;
    return Ok();
  }

 private:
  void Add(const TensorNode& t) {
    if (t.scan) return AddScan(*t.scan);
    if (!t.tuple && !t.scatter) {
      blocks_.push_back(BlockBuilder(t, NameOf(t)).Build());
      if (t.steps) Need(t.steps->state);
      return Need(t.buffer);
    }
    Need(t.buffer);
    const auto [it, is_new] = together_.try_emplace(Together(t));
    if (!is_new) return;
    it->second = used_.Fresh(t.tuple ? t.tuple->name : t.scatter->name);
    blocks_.push_back(BlockBuilder(t, it->second).Build());
    if (t.scatter && t.scatter->kept) Need(t.scatter->kept);
    if (!t.tuple) return;
    for (const Buffer& b : t.tuple->buffers) Need(b);
  }

  // The first rows, then the others in order: of each tensor all in one buffer. What a row takes
  // stands in one loop over the rows.
  void AddScan(const ScanNode& scan) {
    if (!scans_.insert(&scan).second) return;
    BufferMap own;
    for (size_t k = 0; k < scan.buffers.size(); ++k) {
      for (const TensorRef& t : {scan.init[k], scan.update[k], scan.state[k]}) {
        own[t->buffer.get()] = scan.buffers[k];
      }
      Need(scan.buffers[k]);
    }
    const Expr rows = scan.state[0]->shape[scan.axis];
    for (const TensorRef& init : scan.init) {
      TensorNode begin = *init;  // as far as there are rows for it
      if (!AsInt(rows)) begin.shape[scan.axis] = Simplify(Min(scan.first, rows));
      blocks_.push_back(SubstituteBuffers(BlockBuilder(begin, NameOf(*init)).Build(), own));
    }
    const bool alone = scan.steps.size() == 1;
    const Var row = alone ? nullptr : VarNode::Make(used_.Fresh(scan.name) + ".row");
    std::vector<Stmt> steps;
    for (const TensorRef& step : scan.steps) {
      steps.push_back(BlockBuilder(*step, NameOf(*step), scan, row).Build());
      if (!own.count(step->buffer.get())) Need(step->buffer);
    }
    Stmt rest = Seq::Make(std::move(steps));
    if (row) rest = For::Make(row, scan.first, rows - scan.first, ForKind::kSerial, rest);
    blocks_.push_back(SubstituteBuffers(rest, own));
  }

  // What tensors that one block makes share.
  static const RefCounted* Together(const TensorNode& t) {
    if (t.tuple) return t.tuple.get();
    return t.scatter.get();
  }

  std::string NameOf(const TensorNode& t) { return names_[&t] = used_.Fresh(t.name); }

  void Need(const Buffer& buffer) {
    if (known_.insert(buffer.get()).second) locals_.push_back(buffer);
  }

  const std::string& name_;
  PrimFunc& f_;
  BlockNames& names_;
  std::unordered_set<const TensorNode*> stop_;
  std::unordered_set<const BufferNode*> known_;
  std::unordered_map<const RefCounted*, std::string> together_;  // names of blocks
  std::unordered_set<const ScanNode*> scans_;
  NameSupply used_{"_", 1};
  std::vector<Stmt> blocks_;
  std::vector<Buffer> locals_;
};

// Every product and sum of what may be contracted with a rounding of its own.
Stmt Uncontracted(const Stmt& body) {
  return MapStmts(body, [](const Stmt& stmt) -> Stmt {
    const auto* block = As<Block>(stmt);
    if (!block || block->fp != FpMode::kContract) return stmt;
    Block strict = *block;
    strict.fp = FpMode::kStrict;
    return Block::Make(std::move(strict));
  });
}

}  // namespace

Expected<Func> MakeFunc(const std::string& name, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& outputs, const FuncOptions& options,
                        BlockNames* blocks) {
  PrimFunc f;
  BlockNames names;
  FuncBuilder builder(name, &f, &names);
  TN_RETURN_IF_ERROR(builder.Parameters(inputs, outputs));
  TN_RETURN_IF_ERROR(builder.Body(outputs));
  if (!options.contract) f.body = Uncontracted(f.body);
  f.name = name;
  f.dims = options.dims;
  for (const DimRange& r : options.ranges) {
    f.dim_lo.push_back(r.lo);
    f.dim_hi.push_back(r.hi);
    f.dim_step.push_back(r.step);
  }
  f.target = options.target;
  f.attrs = options.attrs;
  *blocks = std::move(names);
  return PrimFunc::Make(f);
}

Expected<Func> MakeFunc(const std::string& name, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& outputs, const FuncOptions& options) {
  BlockNames blocks;
  return MakeFunc(name, inputs, outputs, options, &blocks);
}

}  // namespace tenon::te

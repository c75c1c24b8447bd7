// Tensors that primitives make: a stage of the schedule of stages gets an operation, by which
// people speak of it.
//
// Of an operation whose block has become another's the loops go where their work went: after
//
//   te::Tensor cache = s.CacheWrite(c, "local");
//
// the axes of C are those of the copy into it, and its reduce axes those of the cache, which is
// what is computed now.
#include <algorithm>

#include "api/ir_data.h"
#include "api/schedule_data.h"

namespace tenon::inline v0 {

using te::IterVar;
using te::Operation;
using te::OperationData;

namespace {

Buffer BufferCalled(const Func& func, const std::string& name) {
  Buffer found;
  for (const Buffer& b : func->buffers) {
    if (b->name == name) found = b;
  }
  PreOrder(func->body, [&](const NodeRef& n) {
    const auto* alloc = As<Alloc>(n);
    if (alloc && alloc->buffer->name == name) found = alloc->buffer;
    return !IsA<ExprNode>(n);
  });
  return found;
}

// The dim that the block writes by this variable; none: behind all.
size_t DimOf(const Block& block, const inner::Var& var) {
  const std::vector<Range>& ranges = block.writes[0]->ranges;
  auto dim =
      std::find_if(ranges.begin(), ranges.end(), [&](const Range& r) { return r->min == var; });
  return static_cast<size_t>(dim - ranges.begin());
}

std::vector<te::Expr> ShapeOf(const Buffer& buffer) {
  std::vector<te::Expr> shape;
  for (const inner::Expr& dim : buffer->shape) shape.push_back(te::Wrap(dim));
  return shape;
}

std::vector<IterVar> Concat(std::vector<IterVar> a, const std::vector<IterVar>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

std::shared_ptr<OperationData> ScheduleData::NewOperation(StageData* stage, const std::string& name,
                                                          std::vector<te::Expr> shape) {
  const stages::State& s = schedule.state();
  const stages::StageInfo& info = s[stage->id];
  const Func& func = s.base.func();
  auto op = std::make_shared<OperationData>();
  op->name = name;
  op->computed = true;
  for (const std::string& tensor : info.tensors) {
    const Buffer buffer = BufferCalled(func, tensor);
    op->outputs.push_back(inner::te::Placeholder(tensor, buffer->shape, buffer->dtype, buffer));
    tensors[buffer.get()] = tensor;
  }
  op->shape = shape.empty() ? ShapeOf(op->outputs[0].buffer()) : std::move(shape);
  const Block& block = *stages::FindBlock(func, info.block);
  op->block_body = block.body;
  std::vector<std::pair<size_t, IterVar>> axes;
  for (const stages::Root& root : info.roots) {
    const IterVar loop = HandleOf(stage, root.loop);
    if (s[root.loop].reduces) {
      op->reduce_axis.push_back(loop);
    } else {
      axes.emplace_back(DimOf(block, block.iters[root.iter]->var), loop);
    }
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [dim, loop] : axes) op->axis.push_back(loop);
  stage->op = Operation(op);
  by_op[op.get()] = stage;
  return op;
}

te::Tensor Schedule::CacheRead(const te::Tensor& tensor, const std::string& scope,
                               const std::vector<Operation>& readers) {
  std::vector<std::string> names;
  for (const Operation& op : readers) names.push_back(data_->NameOf(*data_->Find(op)));
  const stages::Made made = data_->Run("cache_read", {data_->NameOf(tensor), scope, names});
  StageData* copy = data_->AddStage(Operation(), made.stages[0]);
  auto op = data_->NewOperation(copy, data_->NameOf(*copy), {});
  op->inputs = {tensor};
  return {op, 0};
}

te::Tensor Schedule::CacheWrite(const te::Tensor& tensor, const std::string& scope) {
  return CacheWrite(std::vector{tensor}, scope)[0];
}

std::vector<te::Tensor> Schedule::CacheWrite(const std::vector<te::Tensor>& tensors,
                                             const std::string& scope) {
  if (tensors.empty()) ThrowValue("cache_write of no tensors");
  StageData* stage = data_->Find(tensors[0].op());
  const Operation whole = stage->op;
  std::vector<std::string> names;
  for (const te::Tensor& t : tensors) {
    if (data_->Find(t.op()) != stage) {
      ThrowValue(fmt::format("cache_write of '{}' and '{}': they are not of one operation",
                             tensors[0].name(), t.name()));
    }
    names.push_back(data_->NameOf(t));
  }
  if (tensors.size() > 1 && tensors.size() != static_cast<size_t>(whole.num_outputs())) {
    ThrowValue(fmt::format("cache_write of '{}': expected one output, or all {} of them",
                           whole.name(), whole.num_outputs()));
  }
  const stages::Made made = data_->Run("cache_write", {data_->NameOf(*stage), names, scope});
  StageData* cache = data_->AddStage(Operation(), made.stages[0]);
  data_->BindLoops(cache, Concat(std::vector<IterVar>(whole.axis().size()), whole.reduce_axis()));
  auto op = data_->NewOperation(cache, data_->NameOf(*cache), tensors[0].shape());
  op->inputs = whole.input_tensors();
  data_->BindLoops(stage, whole.axis());
  auto rest = data_->NewOperation(stage, whole.name(), tensors[0].shape());
  // What the copy reads for each of them.
  const stages::State& s = data_->schedule.state();
  const Block& copy = *stages::FindBlock(s.base.func(), s[stage->id].block);
  std::vector<te::Tensor> out;
  for (const std::string& name : names) {
    for (size_t k = 0; k < copy.writes.size(); ++k) {
      if (copy.writes[k]->buffer->name != name) continue;
      for (size_t i = 0; i < op->outputs.size(); ++i) {
        if (op->outputs[i].buffer() == copy.reads[k]->buffer)
          out.emplace_back(op, static_cast<int>(i));
      }
    }
  }
  rest->inputs = out;
  return out;
}

te::Tensor Schedule::RFactor(const te::Tensor& tensor, const IterVar& axis, int factor_axis) {
  StageData* stage = data_->Find(tensor.op());
  const Operation whole = stage->op;
  const stages::Made made = data_->Run("rfactor", *stage, axis, {int64_t{factor_axis}});
  StageData* partial = data_->AddStage(Operation(), made.stages[0]);
  data_->BindLoops(partial, {});
  std::vector<te::Expr> shape = tensor.shape();
  const auto rank = static_cast<int>(shape.size());
  const int at = factor_axis < 0 ? factor_axis + rank + 1 : factor_axis;
  auto op = data_->NewOperation(partial, data_->NameOf(*partial), {});
  shape.insert(shape.begin() + at, op->shape[static_cast<size_t>(at)]);
  op->shape = std::move(shape);
  op->inputs = whole.input_tensors();
  data_->BindLoops(stage, whole.axis());
  auto rest = data_->NewOperation(stage, whole.name(), tensor.shape());
  for (int k = 0; k < whole.num_outputs(); ++k) rest->inputs.emplace_back(op, k);
  return {op, 0};
}

std::vector<te::Tensor> Schedule::PadEinsum(const te::Tensor& tensor, const Values& multiples) {
  StageData* stage = data_->Find(tensor.op());
  const Operation whole = stage->op;
  const stages::Made made = data_->Run("pad_einsum", {data_->NameOf(*stage), ListOf(multiples)});
  std::vector<te::Tensor> out;
  // The stage computes the padded tensor still where nothing of it is padded.
  if (made.stages[0] != stage->id) {
    StageData* padded = data_->AddStage(Operation(), made.stages[0]);
    data_->BindLoops(padded,
                     Concat(std::vector<IterVar>(whole.axis().size()), whole.reduce_axis()));
    auto op = data_->NewOperation(padded, data_->NameOf(*padded), {});
    op->inputs = whole.input_tensors();
    out.emplace_back(op, 0);
    data_->BindLoops(stage, whole.axis());
    data_->NewOperation(stage, whole.name(), tensor.shape())->inputs = {out[0]};
  } else {
    out.push_back(whole.output(0));
  }
  for (size_t i = 1; i < made.stages.size(); ++i) {
    StageData* copy = data_->AddStage(Operation(), made.stages[i]);
    auto op = data_->NewOperation(copy, data_->NameOf(*copy), {});
    const stages::State& s = data_->schedule.state();
    const std::string& read =
        stages::FindBlock(s.base.func(), s[copy->id].block)->reads[0]->buffer->name;
    for (const te::Tensor& input : whole.input_tensors()) {
      if (data_->NameOf(input) == read) op->inputs = {input};
    }
    out.emplace_back(op, 0);
  }
  return out;
}

std::vector<IterVar> Stage::TransformBlockLayout(const std::string& map) {
  const stages::Made made =
      schedule_->Run("transform_block_layout", {schedule_->NameOf(*stage_), map});
  return schedule_->HandlesOf(stage_, made.loops);
}

}  // namespace tenon::inline v0

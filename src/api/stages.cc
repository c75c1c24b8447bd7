// Primitives that make new stages, or give a stage other loops: done at once, on loops as they were
// made.
//
// Each runs one primitive on a copy of the schedule's state, and keeps the copy if it went well; so
// a call that throws leaves the schedule as it was. Then the new block gets an operation and a
// stage at its place among the others: a copy of a tensor comes behind the tensor's stage, a cache
// before the stage whose results it takes over. After
//
//   te::Tensor tile = s.CacheRead(a, "shared", {c.op()});
//
// the state has block "A.shared" of the step
//
//   A.shared = cache_read("C", "A", "shared")
//
// and s[tile] has its loops, one for each dim. Steps on loops that a stage has been asked for
// before would be about loops that are gone, so such a stage is refused (RequireFresh).

#include <algorithm>

#include "api/ir_data.h"
#include "api/schedule_data.h"

namespace tenon::inline v0 {

namespace {

using te::IterVar;
using te::LoopKind;
using te::Operation;
using te::OperationData;

// The operation that a new block is.
std::shared_ptr<OperationData> NewOperation(const std::string& name, const Buffer& buffer,
                                            const std::vector<te::Expr>& shape) {
  auto op = std::make_shared<OperationData>();
  op->name = name;
  op->computed = true;
  op->shape = shape;
  op->outputs = {inner::te::Placeholder(name, buffer->shape, buffer->dtype, buffer)};
  return op;
}

void AddOutput(const Buffer& buffer, OperationData* op) {
  op->outputs.push_back(inner::te::Placeholder(buffer->name, buffer->shape, buffer->dtype, buffer));
}

// The operation of a block that copies: one loop for each dim.
std::shared_ptr<OperationData> CopyOperation(const std::string& block, const Buffer& buffer,
                                             const te::Tensor& from) {
  std::vector<te::Expr> shape;
  for (const inner::Expr& e : buffer->shape) shape.push_back(te::Wrap(e));
  auto op = NewOperation(block, buffer, shape);
  for (size_t i = 0; i < shape.size(); ++i) {
    op->axis.push_back(Derived(fmt::format("ax{}", i), LoopKind::kSpatial));
  }
  op->inputs = {from};
  return op;
}

void RequireFresh(const StageData& stage, const char* primitive) {
  if (stage.block.empty()) {
    ThrowValue(fmt::format("{} of '{}': it is an input", primitive, stage.op.name()));
  }
  if (stage.steps.empty() && stage.notes.empty()) return;
  ThrowValue(fmt::format("{} of '{}': it comes before other primitives of the stage", primitive,
                         stage.op.name()));
}

const StageData* StageAfter(const ScheduleData& data, const StageData* stage) {
  auto it = std::find_if(data.stages.begin(), data.stages.end(),
                         [&](const auto& s) { return s.get() == stage; });
  return it + 1 == data.stages.end() ? nullptr : (it + 1)->get();
}

// The stage of a new block, at its place among the others.
te::Tensor AddCopy(const std::string& block, const std::shared_ptr<OperationData>& op,
                   const StageData* before, ScheduleData* data) {
  StageData* stage = AddStage(data, Operation(op), before);
  stage->block = block;
  SetRoots(stage);
  return {op, 0};
}

}  // namespace

te::Tensor Schedule::CacheRead(const te::Tensor& tensor, const std::string& scope,
                               const std::vector<Operation>& readers) {
  std::vector<std::string> blocks;
  for (const Operation& op : readers) blocks.push_back(data_->Find(op)->block);
  if (blocks.empty()) ThrowValue(fmt::format("cache_read of '{}': no reader", tensor.name()));
  StageData* source = data_->Find(tensor.op());
  inner::Schedule next = data_->base;
  AttrValue names = blocks;
  if (blocks.size() == 1) names = blocks[0];
  std::vector<std::string> made =
      inner::Steps::ApplyByName(next, "cache_read", {names, data_->BufferOf(tensor)->name, scope});
  RequireOk(next);
  const Block* copy = FindBlock(next.func(), made[0]);
  auto op = CopyOperation(made[0], copy->writes[0]->buffer, tensor);
  data_->base = std::move(next);
  return AddCopy(made[0], op, StageAfter(*data_, source), data_.get());
}

te::Tensor Schedule::CacheWrite(const te::Tensor& tensor, const std::string& scope) {
  return CacheWrite(std::vector{tensor}, scope)[0];
}

std::vector<te::Tensor> Schedule::CacheWrite(const std::vector<te::Tensor>& tensors,
                                             const std::string& scope) {
  if (tensors.empty()) ThrowValue("cache_write of no tensors");
  StageData* stage = data_->Find(tensors[0].op());
  std::vector<std::string> buffers;
  for (const te::Tensor& t : tensors) {
    if (data_->Find(t.op()) != stage) {
      ThrowValue(fmt::format("cache_write of '{}' and '{}': they are not of one operation",
                             tensors[0].name(), t.name()));
    }
    buffers.push_back(data_->BufferOf(t)->name);
  }
  if (tensors.size() > 1 && tensors.size() != static_cast<size_t>(stage->op.num_outputs())) {
    ThrowValue(fmt::format("cache_write of '{}': expected one output, or all {} of them",
                           stage->op.name(), stage->op.num_outputs()));
  }
  RequireFresh(*stage, "cache_write");
  inner::Schedule next = data_->base;
  AttrValue names = buffers;
  if (buffers.size() == 1) names = buffers[0];
  const std::vector<std::string> made =
      inner::Steps::ApplyByName(next, "cache_write", {stage->block, names, scope});
  RequireOk(next);
  const std::string& block = made[0];
  const Block* copy = FindBlock(next.func(), block);
  auto op = NewOperation(block, copy->reads[0]->buffer, tensors[0].shape());
  for (const IterVar& v : stage->op.axis()) op->axis.push_back(CopyOf(v));
  op->reduce_axis = stage->op.reduce_axis();
  op->inputs = stage->op.input_tensors();
  auto rest = NewOperation(stage->op.name(), copy->writes[0]->buffer, tensors[0].shape());
  for (size_t k = 1; k < tensors.size(); ++k) {
    AddOutput(copy->reads[k]->buffer, op.get());
    AddOutput(copy->writes[k]->buffer, rest.get());
  }
  rest->axis = stage->op.axis();
  std::vector<te::Tensor> out;
  for (size_t k = 0; k < tensors.size(); ++k) out.emplace_back(op, static_cast<int>(k));
  rest->inputs = out;
  data_->base = std::move(next);
  StageData* cache = AddStage(data_.get(), Operation(op), stage);
  cache->block = stage->block;
  SetRoots(cache);
  stage->op = Operation(rest);
  stage->block = block;
  data_->by_op[rest.get()] = stage;
  SetRoots(stage);
  return out;
}

te::Tensor Schedule::RFactor(const te::Tensor& tensor, const IterVar& axis, int factor_axis) {
  StageData* stage = data_->Find(tensor.op());
  LeafOf(*stage, axis, "rfactor");
  if (axis.node()->kind != LoopKind::kReduce) {
    ThrowValue(fmt::format("rfactor of '{}': '{}' is no reduce loop", tensor.name(), axis.name()));
  }
  inner::Schedule next = data_->base;
  LoopNames names = RootNames(*stage, next, "");
  for (const LoopStep& step : stage->steps) {
    if (step.kind != LoopStep::Kind::kReorder && KindOf(step.from) == LoopKind::kReduce) {
      ApplyStep(step, &next, &names);
    }
  }
  RequireOk(next);
  std::string loop = names[axis.node().get()];
  if (loop.empty()) ThrowValue(fmt::format("rfactor: loop '{}' has one iteration", axis.name()));
  std::vector<std::string> reduce = next.GetReduceLoops(stage->block);
  std::string block = next.RFactor(loop, factor_axis);
  RequireOk(next);
  const Block* made = FindBlock(next.func(), block);
  auto rank = static_cast<int>(stage->op.axis().size());
  int at = factor_axis < 0 ? factor_axis + rank + 1 : factor_axis;
  std::vector<te::Expr> shape = tensor.shape();
  shape.insert(shape.begin() + at,
               te::Wrap(made->writes[0]->buffer->shape[static_cast<size_t>(at)]));
  auto op = NewOperation(block, made->writes[0]->buffer, shape);
  auto rest = NewOperation(stage->op.name(), data_->BufferOf(stage->op.output(0)), tensor.shape());
  for (int k = 1; k < stage->op.num_outputs(); ++k) {
    AddOutput(made->writes[static_cast<size_t>(k)]->buffer, op.get());
    AddOutput(data_->BufferOf(stage->op.output(k)), rest.get());
  }
  op->inputs = stage->op.input_tensors();
  StageData fresh;
  for (const IterVar& v : stage->op.axis()) {
    op->axis.push_back(CopyOf(v));
    fresh.roots.emplace_back(op->axis.back(), fresh.roots.size());
  }
  IterVar part;
  for (const std::string& l : reduce) {
    bool factored = l == loop;
    IterVar v = Derived(factored ? axis.name() : "k" + std::to_string(op->reduce_axis.size()),
                        factored ? LoopKind::kSpatial : LoopKind::kReduce);
    fresh.roots.emplace_back(v, fresh.roots.size());
    if (factored) {
      part = v;
    } else {
      op->reduce_axis.push_back(v);
    }
  }
  op->axis.insert(op->axis.begin() + at, part);
  rest->axis = stage->op.axis();
  rest->reduce_axis = {Derived(axis.name() + ".v", LoopKind::kReduce)};
  for (int k = 0; k < stage->op.num_outputs(); ++k) rest->inputs.emplace_back(op, k);
  data_->base = std::move(next);
  StageData* partial = AddStage(data_.get(), Operation(op), stage);
  partial->block = block;
  partial->roots = fresh.roots;
  for (const auto& [v, index] : partial->roots) partial->leaves.push_back(v);
  stage->op = Operation(rest);
  data_->by_op[rest.get()] = stage;
  SetRoots(stage);
  stage->notes.clear();
  return {op, 0};
}

namespace {

// A tensor among those that the operation reads, by its buffer.
te::Tensor InputOf(const ScheduleData& data, const Operation& op, const Buffer& buffer) {
  for (const te::Tensor& t : op.input_tensors()) {
    if (data.BufferOf(t)->name == buffer->name) return t;
  }
  return {};
}

}  // namespace

std::vector<te::Tensor> Schedule::PadEinsum(const te::Tensor& tensor, const Values& multiples) {
  StageData* stage = data_->Find(tensor.op());
  RequireFresh(*stage, "pad_einsum");
  inner::Schedule next = data_->base;
  std::vector<std::string> made =
      inner::Steps::ApplyByName(next, "pad_einsum", {stage->block, ListOf(multiples)});
  RequireOk(next);
  const std::string result = data_->BufferOf(tensor)->name;
  const Operation whole = stage->op;
  data_->base = next;
  std::vector<te::Tensor> out;
  // The operation computes the padded tensor now, or its own still where nothing of it is padded.
  const Block* block = FindBlock(next.func(), stage->block);
  const Buffer computed = block->writes[0]->buffer;
  StageData* padded = stage;
  if (computed->name != result) {
    std::vector<te::Expr> shape;
    for (const inner::Expr& e : computed->shape) shape.push_back(te::Wrap(e));
    auto op = NewOperation(computed->name, computed, shape);
    for (const IterVar& v : whole.axis()) op->axis.push_back(CopyOf(v));
    op->reduce_axis = whole.reduce_axis();
    op->inputs = whole.input_tensors();
    padded = AddStage(data_.get(), Operation(op), stage);
    padded->block = stage->block;
    SetRoots(padded);
  }
  out.push_back(padded->op.output(0));
  for (const std::string& name : made) {
    const Block* copy = FindBlock(next.func(), name);
    const Buffer written = copy->writes[0]->buffer;
    if (written->name != result) {
      te::Tensor from = InputOf(*data_, whole, copy->reads[0]->buffer);
      out.push_back(AddCopy(name, CopyOperation(name, written, from), padded, data_.get()));
      continue;
    }
    auto rest = NewOperation(whole.name(), written, tensor.shape());
    rest->axis = whole.axis();
    rest->inputs = {out[0]};
    stage->op = Operation(rest);
    stage->block = name;
    data_->by_op[rest.get()] = stage;
    SetRoots(stage);
  }
  return out;
}

std::vector<IterVar> Stage::TransformBlockLayout(const std::string& map) {
  RequireFresh(*stage_, "transform_block_layout");
  inner::Schedule next = schedule_->base;
  inner::Steps::ApplyByName(next, "transform_block_layout", {stage_->block, map});
  RequireOk(next);
  schedule_->base = std::move(next);
  const Block* block = FindBlock(schedule_->base.func(), stage_->block);
  stage_->roots.clear();
  stage_->leaves.clear();
  for (size_t i = 0; i < block->iters.size(); ++i) {
    LoopKind kind =
        block->iters[i]->iter_kind == IterKind::kReduce ? LoopKind::kReduce : LoopKind::kSpatial;
    stage_->leaves.push_back(Derived(fmt::format("ax{}", i), kind));
    stage_->roots.emplace_back(stage_->leaves.back(), i);
  }
  return stage_->leaves;
}

}  // namespace tenon::inline v0

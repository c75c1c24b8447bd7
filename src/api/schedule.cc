// Schedules as they are written: stages, their loops, and the primitives that make new stages.
//
// A stage only writes down what is asked of its loops: splits, fusions, orders and notes are kept
// in lists and become primitives when the schedule is carried out (carry_out.cc). That is what lets
// `s[C].split(...)` be written before or after `s[B].compute_at(s[C], …)`, as people do, though
// primitives have an order. What makes new tensors (cache_read, rfactor) or takes one away is done
// at once, on the loops as they were made, since the caller gets the tensor back. So
//
//   auto [outer, inner] = s[C].Split(i, 4);
//   s[C].Bind(outer, te::ThreadAxis("blockIdx.x"));
//
// leaves two entries at stage C, and later makes
//
//   i.0, i.1 = split("i", [-1, 4])
//   bind("i.0", "blockIdx.x")
//
// What is wrong with a call by itself (a loop that the stage does not have, a word that is no
// scope) is an exception of that call; what is wrong with the schedule is one where it is carried
// out.

#include <algorithm>
#include <set>

#include "api/ir_data.h"
#include "api/schedule_data.h"
#include "loop/promises.h"
#include "loop/warpgroup.h"

namespace tenon::inline v0 {

namespace {

using te::IterVar;
using te::LoopKind;
using te::Operation;
using te::OperationData;

// What primitives and passes read off loops.
std::vector<std::string> Pragmas() {
  return {kCooperativeAttr, kDependentAttr, kIndependentAttr, kProducerStagesAttr};
}

std::string Names(const std::vector<IterVar>& loops) {
  std::string text;
  for (const IterVar& l : loops) text += (text.empty() ? "" : ", ") + l.name();
  return text;
}

// Buffers and blocks get names of their own; people often call several tensors by one.
Func WithUniqueNames(const Func& func, std::map<const BufferNode*, Buffer>* renamed) {
  std::set<std::string> used;
  BufferMap map;
  auto visit = [&](const Buffer& b) {
    std::string name = b->name;
    for (int i = 1; !used.insert(name).second; ++i) name = fmt::format("{}_{}", b->name, i);
    Buffer own = name == b->name ? b
                                 : BufferNode::Make(name, b->dtype, b->shape, b->scope, b->layout,
                                                    b->strides, b->align);
    (*renamed)[b.get()] = own;
    if (own != b) map[b.get()] = own;
  };
  for (const Buffer& b : func->buffers) visit(b);
  PreOrder(func->body, [&](const NodeRef& n) {
    if (const auto* alloc = As<Alloc>(n)) visit(alloc->buffer);
    return !IsA<ExprNode>(n);
  });
  if (map.empty()) return func;
  PrimFunc fields(*func);
  for (Buffer& b : fields.buffers) b = renamed->at(b.get());
  fields.body = SubstituteBuffers(func->body, map);
  return PrimFunc::Make(fields);
}

// Sizes that are variables of their own, in the order of their first place.
void CollectDims(const std::vector<te::Expr>& shape, inner::te::FuncOptions* options) {
  for (const te::Expr& d : shape) {
    if (!As<VarNode>(te::Unwrap(d))) continue;
    auto var = Cast<VarNode>(te::Unwrap(d));
    if (std::find(options->dims.begin(), options->dims.end(), var) != options->dims.end()) continue;
    options->dims.push_back(var);
    options->ranges.push_back(d.data().range);
  }
}

std::vector<Operation> ProducersFirst(const std::vector<te::Tensor>& outputs) {
  std::vector<Operation> order;
  std::set<const OperationData*> done;
  std::vector<std::pair<Operation, size_t>> stack;
  for (const te::Tensor& out : outputs) {
    te::Unwrap(out);
    stack.emplace_back(out.op(), 0);
    while (!stack.empty()) {
      auto& [op, next] = stack.back();
      if (done.count(op.node().get())) {
        stack.pop_back();
      } else if (next < op.node()->inputs.size()) {
        Operation input = op.node()->inputs[next++].op();
        stack.emplace_back(std::move(input), 0);
      } else {
        done.insert(op.node().get());
        order.push_back(op);
        stack.pop_back();
      }
    }
  }
  return order;
}

}  // namespace

IterVar Derived(const std::string& name, LoopKind kind) {
  auto data = std::make_shared<te::IterVarData>();
  data->name = name;
  data->kind = kind;
  return IterVar(data);
}

IterVar CopyOf(const IterVar& axis) {
  auto data = std::make_shared<te::IterVarData>(*axis.node());
  return IterVar(data);
}

size_t LeafOf(const StageData& stage, const IterVar& loop, const char* primitive) {
  auto it = std::find(stage.leaves.begin(), stage.leaves.end(), loop);
  if (it == stage.leaves.end()) {
    const std::string name = loop ? fmt::format("'{}'", loop.name()) : "an empty loop";
    const bool same_name =
        std::any_of(stage.leaves.begin(), stage.leaves.end(),
                    [&](const IterVar& own) { return loop.node() && own.name() == loop.name(); });
    ThrowValue(fmt::format(
        "{} of '{}': {} is no loop of it now{}; its loops are {}", primitive, stage.op.name(), name,
        same_name ? ", but one of another tensor or schedule" : "", Names(stage.leaves)));
  }
  return static_cast<size_t>(it - stage.leaves.begin());
}

// What a value says that stands for a number: "$name" is what that choice gave.
static int64_t NumberOf(const ScheduleData& data, const StageData& stage, const char* primitive,
                        const Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value.data())) return *number;
  const auto* text = std::get_if<std::string>(&value.data());
  const std::map<std::string, int64_t> taken = data.base.trace().Decisions();
  auto choice = text && text->starts_with('$') ? taken.find(text->substr(1)) : taken.end();
  if (choice != taken.end()) return choice->second;
  ThrowValue(fmt::format("{} of '{}': expected a number or \"$\" and the name of a choice{}",
                         primitive, stage.op.name(),
                         text ? fmt::format(", but {} is none", QuoteJson(*text)) : ""));
}

static AttrValue PlainOf(const Value& value) {
  return std::visit([](const auto& v) -> AttrValue { return v; }, value.data());
}

// The one factor of a split; among several, -1 stands for what is left.
static void CheckFactor(const ScheduleData& data, const StageData& stage, const IterVar& parent,
                        const Value& given) {
  LeafOf(stage, parent, "split");
  const int64_t factor = NumberOf(data, stage, "split", given);
  if (factor >= 1) return;
  ThrowValue(fmt::format("split of '{}': the factor of '{}' is at least 1 but is {}",
                         stage.op.name(), parent.name(), factor));
}

LoopKind KindOf(const std::vector<IterVar>& loops) {
  for (const IterVar& l : loops) {
    if (l.node()->kind != LoopKind::kReduce) return LoopKind::kSpatial;
  }
  return LoopKind::kReduce;
}

StageData* AddStage(ScheduleData* data, const Operation& op, const StageData* before) {
  auto stage = std::make_unique<StageData>();
  stage->op = op;
  StageData* made = stage.get();
  auto at = std::find_if(data->stages.begin(), data->stages.end(),
                         [&](const auto& s) { return s.get() == before; });
  data->stages.insert(at, std::move(stage));
  data->by_op[op.node().get()] = made;
  return made;
}

void SetRoots(StageData* stage) {
  stage->roots.clear();
  stage->leaves.clear();
  stage->steps.clear();
  for (const IterVar& v : stage->op.axis()) stage->roots.emplace_back(v, stage->roots.size());
  for (const IterVar& v : stage->op.reduce_axis()) {
    stage->roots.emplace_back(v, stage->roots.size());
  }
  for (const auto& [v, index] : stage->roots) stage->leaves.push_back(v);
}

StageData* ScheduleData::Find(const Operation& op) const {
  auto it = op ? by_op.find(op.node().get()) : by_op.end();
  if (it == by_op.end()) {
    ThrowValue(fmt::format("the schedule has no operation '{}'", op ? op.name() : ""));
  }
  return it->second;
}

Buffer ScheduleData::BufferOf(const te::Tensor& tensor) const {
  const Buffer& buffer = te::Unwrap(tensor).buffer();
  auto it = buffers.find(buffer.get());
  return it == buffers.end() ? buffer : it->second;
}

void RequireOk(const inner::Schedule& schedule) {
  if (!schedule.ok()) ThrowValue(inner::Text(schedule.status().errors()));
}

Operation Stage::op() const { return stage_->op; }
std::vector<IterVar> Stage::leaf_iter_vars() const { return stage_->leaves; }

std::vector<IterVar> Stage::SplitFactors(const IterVar& parent, const Values& factors) {
  size_t at = LeafOf(*stage_, parent, "split");
  if (factors.empty()) ThrowValue(fmt::format("split of '{}': no factors", stage_->op.name()));
  for (const Value& given : factors) {
    const int64_t f = NumberOf(*schedule_, *stage_, "split", given);
    if (f >= 1 || f == -1) continue;
    ThrowValue(fmt::format("split of '{}': the factors of '{}' are at least 1 but one is {}",
                           stage_->op.name(), parent.name(), f));
  }
  std::vector<IterVar> parts;
  for (size_t i = 0; i < factors.size(); ++i) {
    std::string suffix = factors.size() == 2 ? (i == 0 ? "outer" : "inner") : std::to_string(i);
    parts.push_back(Derived(parent.name() + "." + suffix, parent.node()->kind));
  }
  auto place = stage_->leaves.erase(stage_->leaves.begin() + static_cast<long>(at));
  stage_->leaves.insert(place, parts.begin(), parts.end());
  stage_->steps.push_back({LoopStep::Kind::kSplit, {parent}, parts, ListOf(factors)});
  return parts;
}

std::pair<IterVar, IterVar> Stage::Split(const IterVar& parent, const Value& factor) {
  CheckFactor(*schedule_, *stage_, parent, factor);
  std::vector<IterVar> parts = SplitFactors(parent, {-1, factor});
  return {parts[0], parts[1]};
}
std::pair<IterVar, IterVar> Stage::SplitParts(const IterVar& parent, const Value& parts) {
  CheckFactor(*schedule_, *stage_, parent, parts);
  std::vector<IterVar> made = SplitFactors(parent, {parts, -1});
  return {made[0], made[1]};
}

std::array<IterVar, 4> Stage::Tile(const IterVar& x, const IterVar& y, const Value& x_factor,
                                   const Value& y_factor) {
  auto [xo, xi] = Split(x, x_factor);
  auto [yo, yi] = Split(y, y_factor);
  Reorder({xo, yo, xi, yi});
  return {xo, yo, xi, yi};
}

IterVar Stage::Fuse(const std::vector<IterVar>& loops) {
  if (loops.empty()) ThrowValue("fuse of no loops");
  size_t first = LeafOf(*stage_, loops[0], "fuse");
  std::string name;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (LeafOf(*stage_, loops[i], "fuse") != first + i) {
      ThrowValue(fmt::format("fuse of '{}': {} are not neighbours in this order; its loops are {}",
                             stage_->op.name(), Names(loops), Names(stage_->leaves)));
    }
    name += loops[i].name() + ".";
  }
  if (loops.size() == 1) return loops[0];
  IterVar fused = Derived(name + "fused", KindOf(loops));
  auto begin = stage_->leaves.begin() + static_cast<long>(first);
  stage_->leaves.erase(begin, begin + static_cast<long>(loops.size()));
  stage_->leaves.insert(stage_->leaves.begin() + static_cast<long>(first), fused);
  stage_->steps.push_back({LoopStep::Kind::kFuse, loops, {fused}, {}});
  return fused;
}

void Stage::Reorder(const std::vector<IterVar>& order) {
  std::vector<size_t> places;
  for (const IterVar& l : order) places.push_back(LeafOf(*stage_, l, "reorder"));
  std::sort(places.begin(), places.end());
  if (std::adjacent_find(places.begin(), places.end()) != places.end()) {
    ThrowValue(fmt::format("reorder of '{}': a loop is named twice", stage_->op.name()));
  }
  for (size_t i = 0; i < order.size(); ++i) stage_->leaves[places[i]] = order[i];
  stage_->steps.push_back({LoopStep::Kind::kReorder, order, {}, {}});
}

void Stage::Vectorize(const IterVar& loop) {
  LeafOf(*stage_, loop, "vectorize");
  stage_->notes.push_back({LoopNote::Kind::kVectorize, loop, "", {}});
}
void Stage::Parallel(const IterVar& loop) {
  LeafOf(*stage_, loop, "parallel");
  stage_->notes.push_back({LoopNote::Kind::kParallel, loop, "", {}});
}
void Stage::Unroll(const IterVar& loop) {
  LeafOf(*stage_, loop, "unroll");
  stage_->notes.push_back({LoopNote::Kind::kUnroll, loop, "", {}});
}
void Stage::Bind(const IterVar& loop, const IterVar& thread_axis) {
  LeafOf(*stage_, loop, "bind");
  if (!thread_axis.node() || thread_axis.node()->kind != LoopKind::kThread) {
    ThrowValue(
        fmt::format("bind of '{}': expected a thread axis; see thread_axis", stage_->op.name()));
  }
  const auto& axis = *thread_axis.node();
  stage_->notes.push_back({LoopNote::Kind::kBind, loop, "", {}, axis.thread, axis.extent});
}
void Stage::Pragma(const IterVar& loop, const std::string& key, const Value& value) {
  LeafOf(*stage_, loop, "pragma");
  const std::vector<std::string> known = Pragmas();
  if (std::find(known.begin(), known.end(), key) == known.end()) {
    ThrowValue(fmt::format("pragma of '{}': nothing reads the key '{}'; expected {}",
                           stage_->op.name(), key, Join(known, ", ")));
  }
  stage_->notes.push_back({LoopNote::Kind::kPragma, loop, key, PlainOf(value)});
}

void Stage::ComputeAt(const Stage& consumer, const IterVar& loop) {
  if (consumer.schedule_ != schedule_) ThrowValue("the stages are of different schedules");
  if (consumer.stage_ == stage_) ThrowValue("a stage cannot be computed inside itself");
  LeafOf(*consumer.stage_, loop, "compute_at");
  stage_->attach = Attach::kAt;
  stage_->at_stage = consumer.stage_;
  stage_->at_loop = loop;
}
void Stage::ComputeInline() {
  if (stage_->block.empty()) ThrowValue(fmt::format("'{}' is an input", stage_->op.name()));
  stage_->attach = Attach::kInline;
}
void Stage::ComputeRoot() { stage_->attach = Attach::kRoot; }
void Stage::ReverseComputeAt(const Stage& producer, const IterVar& loop) {
  ComputeAt(producer, loop);
  stage_->attach = Attach::kReverseAt;
}
// At once, for the block that is left is the producer's in all but its name.
void Stage::ReverseComputeInline() {
  if (stage_->block.empty()) ThrowValue(fmt::format("'{}' is an input", stage_->op.name()));
  inner::Schedule next = schedule_->base;
  next.ReverseComputeInline(stage_->block);
  RequireOk(next);
  schedule_->base = std::move(next);
  for (const auto& producer : schedule_->stages) {
    if (producer->block.empty() || schedule_->base.HasBlock(producer->block)) continue;
    producer->block = stage_->block;
  }
  stage_->block.clear();
}
void Stage::SetScope(const std::string& scope) {
  auto named = primitive::ScopeArg(scope);
  if (!named) ThrowValue("set_scope of '" + stage_->op.name() + "'" + named.errors()[0].message);
  stage_->scope = *named;
}

static int64_t DimOf(const StageData& stage, const IterVar& axis) {
  std::vector<IterVar> axes = stage.op.axis();
  auto it = std::find(axes.begin(), axes.end(), axis);
  if (it == axes.end()) {
    ThrowValue(fmt::format("storage_align of '{}': '{}' is no axis of it, which are {}",
                           stage.op.name(), axis.name(), Names(axes)));
  }
  return it - axes.begin();
}

using Late = LateStep::Kind;
void Stage::StorageAlign(const IterVar& axis, const Value& factor, const Value& offset) {
  for (const Value& v : {factor, offset}) NumberOf(*schedule_, *stage_, "storage_align", v);
  schedule_->late.push_back({Late::kStorageAlign,
                             stage_,
                             {},
                             "",
                             {DimOf(*stage_, axis), PlainOf(factor), PlainOf(offset)}});
}
void Stage::TransformLayout(const std::string& layout) {
  schedule_->late.push_back({Late::kLayout, stage_, {}, layout, {}});
}
void Stage::DecomposeReduction(const IterVar& loop) {
  LeafOf(*stage_, loop, "decompose_reduction");
  schedule_->late.push_back({Late::kDecompose, stage_, loop, "", {}});
}
void Stage::Tensorize(const IterVar& loop, const std::string& intrinsic) {
  LeafOf(*stage_, loop, "tensorize");
  schedule_->late.push_back({Late::kTensorize, stage_, loop, intrinsic, {}});
}
void Stage::Blockize(const IterVar& loop) {
  LeafOf(*stage_, loop, "blockize");
  schedule_->late.push_back({Late::kBlockize, stage_, loop, "", {}});
}
void Stage::RollingBuffer() { stage_->rolling = true; }
void Stage::DoubleBuffer() { schedule_->late.push_back({Late::kDoubleBuffer, stage_, {}, "", {}}); }
void Stage::SoftwarePipeline(const IterVar& loop, const Values& stages, const Values& order) {
  LeafOf(*stage_, loop, "software_pipeline");
  schedule_->late.push_back({Late::kPipeline, stage_, loop, "", {ListOf(stages), ListOf(order)}});
}
void Stage::Prefetch(const te::Tensor& tensor, const IterVar& loop, const Value& distance) {
  LeafOf(*stage_, loop, "prefetch");
  NumberOf(*schedule_, *stage_, "prefetch", distance);
  schedule_->late.push_back(
      {Late::kPrefetch, stage_, loop, schedule_->BufferOf(tensor)->name, {PlainOf(distance)}});
}
void Stage::Partition(const IterVar& loop, const Values& points) {
  LeafOf(*stage_, loop, "partition");
  schedule_->late.push_back({Late::kPartition, stage_, loop, "", {ListOf(points)}});
}
void Stage::Outline(const IterVar& loop, const std::string& name) {
  LeafOf(*stage_, loop, "outline");
  schedule_->late.push_back({Late::kOutline, stage_, loop, name, {}});
}

void Schedule::Specialize(const te::Expr& condition) {
  data_->late.push_back({Late::kSpecialize, nullptr, {}, condition.str(), {}});
}
int64_t Schedule::Decide(const std::string& name, const std::vector<int64_t>& domain,
                         int64_t guess) {
  RequireInDomain(name, domain, data_->wanted);
  inner::Schedule next = data_->base;
  int64_t chosen = next.Decide(name, domain, guess);
  RequireOk(next);
  data_->base = std::move(next);
  return chosen;
}
int64_t Schedule::SampleCategorical(const std::string& name, const std::vector<int64_t>& candidates,
                                    const std::vector<double>& probabilities) {
  RequireInDomain(name, candidates, data_->wanted);
  inner::Schedule next = data_->base;
  int64_t chosen = next.SampleCategorical(name, candidates, probabilities);
  RequireOk(next);
  data_->base = std::move(next);
  return chosen;
}
std::vector<int64_t> Schedule::SamplePerfectTile(const std::string& name, const IterVar& loop,
                                                 int64_t parts, int64_t max_innermost) {
  std::string found;
  for (const auto& stage : data_->stages) {
    if (stage->block.empty() || !stage->Has(loop)) continue;
    found = RootNames(*stage, data_->base, "")[loop.node().get()];
  }
  if (found.empty()) {
    ThrowValue(fmt::format("sample_perfect_tile: '{}' is no loop that an operation was made with",
                           loop.name()));
  }
  inner::Schedule next = data_->base;
  std::vector<int64_t> chosen = next.SamplePerfectTile(name, found, parts, max_innermost);
  RequireOk(next);
  data_->base = std::move(next);
  return chosen;
}
void Schedule::UseDecisions(const std::map<std::string, int64_t>& choices) {
  GiveDecisions(choices, &data_->base);
  data_->wanted = choices;
}
Trace Schedule::trace() const { return WrapTrace(CarryOut(*data_).trace()); }

Stage Schedule::operator[](const Operation& op) const { return {data_.get(), data_->Find(op)}; }
std::vector<Stage> Schedule::stages() const {
  std::vector<Stage> out;
  for (const auto& s : data_->stages) out.emplace_back(data_.get(), s.get());
  return out;
}
std::vector<te::Tensor> Schedule::outputs() const { return data_->outputs; }

namespace {

// Variables that nothing in the function gives a value, in the order of their first use.
std::vector<inner::Var> FreeVars(const PrimFunc& func) {
  std::set<const Node*> bound;
  std::vector<inner::Var> used;
  auto visit = [&](const NodeRef& n) {
    if (const auto* loop = As<For>(n)) bound.insert(loop->var.get());
    if (const auto* let = As<Let>(n)) bound.insert(let->var.get());
    if (const auto* block = As<Block>(n)) {
      for (const auto& iter : block->iters) bound.insert(iter->var.get());
    }
    if (IsA<VarNode>(n)) used.push_back(Cast<VarNode>(n));
    return true;
  };
  for (const inner::Var& dim : func.dims) bound.insert(dim.get());
  for (const Buffer& b : func.buffers) PreOrder(b, visit);
  PreOrder(func.body, visit);
  std::erase_if(used, [&](const inner::Var& v) { return !bound.insert(v.get()).second; });
  return used;
}

// The function with a parameter for each of them: sizes are dims, of which nothing is known yet but
// that they are none below 0.
Func WithNumbers(const Func& func) {
  PrimFunc fields(*func);
  for (const inner::Var& var : FreeVars(*func)) {
    if (!var->dtype.IsIndex()) {
      fields.scalars.push_back(var);
      continue;
    }
    const DimRange size;
    fields.dims.push_back(var);
    fields.dim_lo.push_back(size.lo);
    fields.dim_hi.push_back(size.hi);
    fields.dim_step.push_back(size.step);
  }
  return PrimFunc::Make(std::move(fields));
}

std::vector<std::string> BlocksWriting(const Func& func, const std::string& buffer) {
  std::vector<std::string> names;
  PreOrder(func->body, [&](const NodeRef& n) {
    const auto* block = As<Block>(n);
    if (!block) return !IsA<ExprNode>(n);
    for (const Region& w : block->writes) {
      if (w->buffer->name == buffer) names.push_back(block->name);
    }
    return false;
  });
  return names;
}

// A step of a row has all its loops but the one over the rows, which is the scan's.
void StandInRows(const Operation& scan, StageData* rows, ScheduleData* data) {
  const inner::te::ScanNode& node = *scan.node()->outputs[0].node()->scan;
  for (const auto& stage : data->stages) {
    const inner::te::TensorRef& tensor = stage->op.node()->outputs[0].node();
    if (std::find(node.steps.begin(), node.steps.end(), tensor) == node.steps.end()) continue;
    const IterVar row = stage->op.axis()[node.axis];
    std::erase_if(stage->roots, [&](const auto& root) { return root.first == row; });
    std::erase(stage->leaves, row);
    stage->scan = rows;
  }
  rows->block = data->Find(scan.input_tensors()[node.init.size()].op())->block;
  rows->roots = {{scan.scan_axis(), node.axis}};
  rows->leaves = {scan.scan_axis()};
}

// The parts of a scan write its buffers, the first rows before the others.
void FindScanBlocks(const Operation& scan, ScheduleData* data) {
  const inner::te::ScanNode& node = *scan.node()->outputs[0].node()->scan;
  const size_t count = node.init.size();
  for (size_t k = 0; k < count; ++k) {
    const Buffer buffer = data->BufferOf(scan.output(static_cast<int>(k)));
    std::vector<std::string> blocks = BlocksWriting(data->base.func(), buffer->name);
    const Operation parts[] = {scan.input_tensors()[k].op(), scan.input_tensors()[count + k].op()};
    for (size_t i = 0; i < 2 && i < blocks.size(); ++i) data->Find(parts[i])->block = blocks[i];
    for (const auto& part : {node.init[k], node.update[k], node.state[k]}) {
      data->buffers[part->buffer.get()] = buffer;
    }
  }
  StageData* stage = data->Find(scan);
  if (node.steps.size() > 1) return StandInRows(scan, stage, data);
  StageData* update = data->Find(scan.input_tensors()[1].op());
  data->by_op[scan.node().get()] = update;
  // The loop over the rows is the outermost, whichever dim it is of.
  auto row = std::find(update->leaves.begin(), update->leaves.end(), scan.scan_axis());
  std::rotate(update->leaves.begin(), row, row + 1);
}

}  // namespace

Schedule CreateSchedule(const std::vector<te::Tensor>& outputs) {
  if (outputs.empty()) ThrowValue("a schedule needs an output");
  std::vector<Operation> order = ProducersFirst(outputs);
  std::vector<inner::te::Tensor> inputs, results;
  inner::te::FuncOptions options;
  std::set<const OperationData*> states;  // of scans, which are no inputs
  for (const Operation& op : order) {
    for (const auto& state : op.node()->scan_states) states.insert(state.get());
  }
  std::erase_if(order, [&](const Operation& op) { return states.count(op.node().get()) != 0; });
  for (const Operation& op : order) {
    if (op.node()->computed) continue;
    inputs.push_back(op.node()->outputs[0]);
    CollectDims(op.node()->shape, &options);
  }
  for (const te::Tensor& out : outputs) {
    if (!out.op().node()->computed) {
      ThrowValue(fmt::format("'{}' is an input, which nothing computes", out.name()));
    }
    results.push_back(te::Unwrap(out));
    CollectDims(out.shape(), &options);
  }
  CheckReads(order);
  Func func = WithNumbers(Take(inner::te::MakeFunc("main", inputs, results, options)));
  std::map<const BufferNode*, Buffer> buffers;
  func = WithUniqueNames(func, &buffers);
  inner::Module module = WithExterns(func, order, buffers);
  Take(Verify(module, inner::kSchedulable));
  module.Add(Take(WithRequirements(module.Find("main"), module)));
  auto data = std::make_shared<ScheduleData>(inner::Schedule(module, "main"));
  data->outputs = outputs;
  data->buffers = std::move(buffers);
  for (const Operation& op : order) {
    StageData* stage = AddStage(data.get(), op, nullptr);
    if (!op.node()->computed || !op.node()->scan_states.empty()) continue;
    const std::string buffer = data->BufferOf(op.output(0))->name;
    std::vector<std::string> blocks = BlocksWriting(data->base.func(), buffer);
    if (!blocks.empty()) stage->block = blocks[0];
    if (!op.node()->extern_body) SetRoots(stage);
  }
  for (const Operation& op : order) {
    if (!op.node()->scan_states.empty()) FindScanBlocks(op, data.get());
  }
  RequireOk(data->base);
  return Schedule(std::move(data));
}

}  // namespace tenon::inline v0

// Schedules as they are written: stages, their loops, and what is asked of them.
//
// Every method is one step of the schedule of stages (src/stages), which knows what it means: the
// handles that it gets become names, and what the step made becomes handles. Here are those that
// are more than that; the others are rows of stage_primitives.def, which all go through Step. So
//
//   auto [outer, inner] = s[C].Split(i, 4);
//   s[C].Bind(outer, te::ThreadAxis("blockIdx.x"));
//
// are the steps
//
//   i.outer, i.inner = split("C", "i", [-1, 4])
//   bind("C", "i.outer", "blockIdx.x")
//
// which are carried out when the schedule is lowered. What is wrong with a call by itself (a loop
// that the stage does not have, a word that is no scope) is an exception of that call; what is
// wrong with the schedule is one where it is carried out.
#include "api/schedule_data.h"

#include <algorithm>
#include <set>

#include "api/ir_data.h"

namespace tenon::inline v0 {

using te::IterVar;
using te::LoopKind;
using te::Operation;

// ---- Handles ----

StageData* ScheduleData::Find(const Operation& op) const {
  auto it = op ? by_op.find(op.node().get()) : by_op.end();
  if (it == by_op.end()) {
    ThrowValue(fmt::format("the schedule has no operation '{}'", op ? op.name() : ""));
  }
  return it->second;
}

const std::string& ScheduleData::NameOf(const te::Tensor& tensor) const {
  auto it = tensors.find(te::Unwrap(tensor).buffer().get());
  if (it != tensors.end()) return it->second;
  ThrowValue(fmt::format("the schedule has no tensor '{}'", tensor.name()));
}

const std::string& ScheduleData::NameOf(const StageData& stage) const {
  return schedule.state()[stage.id].name;
}

const std::string& ScheduleData::NameOf(const StageData& stage, const IterVar& loop,
                                        const char* primitive) const {
  const stages::State& s = schedule.state();
  auto known = stage.loops.find(loop.node().get());
  if (known != stage.loops.end() && s[known->second].stage == stage.id) {
    return s[known->second].name;
  }
  const std::vector<stages::LoopId>& leaves = s[stage.id].leaves;
  const bool same_name = std::any_of(leaves.begin(), leaves.end(), [&](stages::LoopId own) {
    return loop.node() && s[own].name == loop.name();
  });
  ThrowValue(
      fmt::format("{} of '{}': {} is no loop of it now{}; its loops are {}", primitive,
                  NameOf(stage), loop.node() ? fmt::format("'{}'", loop.name()) : "an empty loop",
                  same_name ? ", but one of another tensor or schedule" : "", s.Names(leaves)));
}

std::vector<std::string> ScheduleData::NamesOf(const StageData& stage,
                                               const std::vector<IterVar>& of,
                                               const char* primitive) const {
  std::vector<std::string> names;
  for (const IterVar& loop : of) names.push_back(NameOf(stage, loop, primitive));
  return names;
}

IterVar ScheduleData::HandleOf(StageData* stage, stages::LoopId loop) {
  IterVar& handle = loops[loop];
  if (!handle.node()) {
    const stages::LoopInfo& info = schedule.state()[loop];
    auto data = std::make_shared<te::IterVarData>();
    data->name = info.name;
    data->kind = info.reduces ? LoopKind::kReduce : LoopKind::kSpatial;
    handle = IterVar(data);
  }
  stage->loops[handle.node().get()] = loop;
  return handle;
}

std::vector<IterVar> ScheduleData::HandlesOf(StageData* stage,
                                             const std::vector<stages::LoopId>& of) {
  std::vector<IterVar> handles;
  for (stages::LoopId loop : of) handles.push_back(HandleOf(stage, loop));
  return handles;
}

stages::Made ScheduleData::Run(const char* primitive, std::vector<AttrValue> args) {
  return Take(schedule.Apply(primitive, std::move(args)));
}

stages::Made ScheduleData::Run(const char* primitive, const StageData& stage, const IterVar& loop,
                               std::vector<AttrValue> more) {
  std::vector<AttrValue> args = {NameOf(stage), NameOf(stage, loop, primitive)};
  args.insert(args.end(), more.begin(), more.end());
  return Run(primitive, std::move(args));
}

StageData* ScheduleData::AddStage(const Operation& op, stages::StageId id) {
  std::unique_ptr<StageData>& stage = held[id];
  stage = std::make_unique<StageData>(StageData{op, id, {}});
  if (op) by_op[op.node().get()] = stage.get();
  return stage.get();
}

void ScheduleData::BindLoops(StageData* stage, const std::vector<IterVar>& vars) {
  stage->loops.clear();
  for (const stages::Root& root : schedule.state()[stage->id].roots) {
    if (root.iter < vars.size() && vars[root.iter].node()) loops[root.loop] = vars[root.iter];
    HandleOf(stage, root.loop);
  }
}

static AttrValue PlainOf(const Value& value) {
  return std::visit([](const auto& v) -> AttrValue { return v; }, value.data());
}

// ---- Steps ----

Operation Stage::op() const { return stage_->op; }
std::vector<IterVar> Stage::leaf_iter_vars() const {
  return schedule_->HandlesOf(stage_, schedule_->schedule.state()[stage_->id].leaves);
}

// A loop is one of the stage that was named last before it.
void Stage::Step(const char* primitive, const std::vector<StepArgument>& arguments) {
  const StageData* of = stage_;
  std::vector<AttrValue> args = {schedule_->NameOf(*of)};
  struct Taker {
    const char* primitive;
    ScheduleData* schedule;
    const StageData** of;

    AttrValue operator()(const IterVar* loop) const {
      return schedule->NameOf(**of, *loop, primitive);
    }
    AttrValue operator()(const te::Tensor* tensor) const { return schedule->NameOf(*tensor); }
    AttrValue operator()(const Stage* other) const {
      if (other->schedule_ != schedule) ThrowValue("the stages are of different schedules");
      *of = other->stage_;
      return schedule->NameOf(**of);
    }
    AttrValue operator()(const Value* value) const { return PlainOf(*value); }
    AttrValue operator()(const Values* values) const { return ListOf(*values); }
    AttrValue operator()(const std::string* text) const { return *text; }
  };
  for (const StepArgument& a : arguments)
    args.push_back(std::visit(Taker{primitive, schedule_, &of}, a));
  schedule_->Run(primitive, std::move(args));
}

std::vector<IterVar> Stage::SplitFactors(const IterVar& parent, const Values& factors) {
  return schedule_->HandlesOf(stage_,
                              schedule_->Run("split", *stage_, parent, {ListOf(factors)}).loops);
}
std::pair<IterVar, IterVar> Stage::Split(const IterVar& parent, const Value& factor) {
  std::vector<IterVar> parts = SplitFactors(parent, {-1, factor});
  return {parts[0], parts[1]};
}
std::pair<IterVar, IterVar> Stage::SplitParts(const IterVar& parent, const Value& parts) {
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
  const stages::Made made = schedule_->Run(
      "fuse", {schedule_->NameOf(*stage_), schedule_->NamesOf(*stage_, loops, "fuse")});
  return schedule_->HandleOf(stage_, made.loops[0]);
}
void Stage::Reorder(const std::vector<IterVar>& order) {
  schedule_->Run("reorder",
                 {schedule_->NameOf(*stage_), schedule_->NamesOf(*stage_, order, "reorder")});
}

void Stage::Bind(const IterVar& loop, const IterVar& thread_axis) {
  schedule_->NameOf(*stage_, loop, "bind");
  if (!thread_axis.node() || thread_axis.node()->kind != LoopKind::kThread) {
    ThrowValue(
        fmt::format("bind of '{}': expected a thread axis; see thread_axis", stage_->op.name()));
  }
  const auto& axis = *thread_axis.node();
  std::vector<AttrValue> more = {std::string(Name(axis.thread))};
  if (axis.extent) more.emplace_back(inner::Text(Simplify(axis.extent)));
  schedule_->Run("bind", *stage_, loop, std::move(more));
}
void Stage::Pragma(const IterVar& loop, const std::string& key, const Value& value) {
  if (key == stages::kAutoUnrollPragma && !std::holds_alternative<int64_t>(value.data())) {
    ThrowType(
        fmt::format("pragma of '{}': expected a number of steps for {}", stage_->op.name(), key));
  }
  schedule_->Run("pragma", *stage_, loop, {key, PlainOf(value)});
}

static void OfStage(ScheduleData* schedule, const StageData& stage, const char* primitive,
                    std::vector<AttrValue> args = {}) {
  args.insert(args.begin(), schedule->NameOf(stage));
  schedule->Run(primitive, std::move(args));
}
void Stage::TransformLayout(const std::string& layout) {
  OfStage(schedule_, *stage_, "transform_layout", {layout});
}
void Stage::StorageAlign(const IterVar& axis, const Value& factor, const Value& offset) {
  const std::vector<IterVar> axes = stage_->op.axis();
  auto it = std::find(axes.begin(), axes.end(), axis);
  if (it == axes.end()) {
    std::vector<std::string> names;
    for (const IterVar& own : axes) names.push_back(own.name());
    ThrowValue(fmt::format("storage_align of '{}': '{}' is no axis of it, which are {}",
                           stage_->op.name(), axis.name(), Join(names, ", ")));
  }
  OfStage(schedule_, *stage_, "storage_align",
          {int64_t{it - axes.begin()}, PlainOf(factor), PlainOf(offset)});
}
void Stage::SetStorePredicate(const te::Expr& condition) {
  OfStage(schedule_, *stage_, "set_store_predicate", {condition.str()});
}
void Stage::Tensorize(const IterVar& loop, const std::string& intrinsic) {
  for (const auto& [name, func] : Registered(intrinsic)) schedule_->schedule.AddIntrinsic(func);
  schedule_->Run("tensorize", *stage_, loop, {intrinsic});
}
void Schedule::Specialize(const te::Expr& condition) {
  data_->Run("specialize", {condition.str()});
}
int64_t Schedule::Decide(const std::string& name, const std::vector<int64_t>& domain,
                         int64_t guess) {
  RequireInDomain(name, domain, data_->wanted);
  return Take(data_->schedule.Decide(name, domain, guess));
}
int64_t Schedule::SampleCategorical(const std::string& name, const std::vector<int64_t>& candidates,
                                    const std::vector<double>& probabilities) {
  RequireInDomain(name, candidates, data_->wanted);
  return Take(data_->schedule.SampleCategorical(name, candidates, probabilities));
}
std::vector<int64_t> Schedule::SamplePerfectTile(const std::string& name, const IterVar& loop,
                                                 int64_t parts, int64_t max_innermost) {
  const stages::State& s = data_->schedule.state();
  for (const auto& [id, stage] : data_->held) {
    auto known = stage->loops.find(loop.node().get());
    if (known == stage->loops.end() || s[known->second].stage != id) continue;
    const std::vector<stages::Root>& roots = s[id].roots;
    const bool is_root = std::any_of(roots.begin(), roots.end(), [&](const stages::Root& root) {
      return root.loop == known->second;
    });
    if (!is_root) continue;
    return Take(data_->schedule.SamplePerfectTile(name, known->second, parts, max_innermost));
  }
  ThrowValue(fmt::format("sample_perfect_tile: '{}' is no loop that an operation was made with",
                         loop.name()));
}
void Schedule::UseDecisions(const std::map<std::string, int64_t>& choices) {
  RequireNotMade(choices, data_->schedule.state().base.trace());
  data_->schedule.UseDecisions(choices);
  data_->wanted = choices;
}
Trace Schedule::trace() const { return WrapTrace(Take(data_->schedule.CarryOut()).trace()); }
std::string Schedule::str() const {
  std::string text = Print(data_->schedule.program());
  for (const std::string& line : Split(data_->schedule.steps().ToString(), '\n')) {
    if (!line.empty()) text += "//> " + line + "\n";
  }
  return text;
}

Stage Schedule::operator[](const Operation& op) const { return {data_.get(), data_->Find(op)}; }
std::vector<Stage> Schedule::stages() const {
  std::vector<Stage> out;
  for (stages::StageId id : data_->schedule.state().order) {
    auto stage = data_->held.find(id);
    if (stage != data_->held.end()) out.emplace_back(data_.get(), stage->second.get());
  }
  return out;
}
std::vector<te::Tensor> Schedule::outputs() const { return data_->outputs; }

}  // namespace tenon::inline v0

// Loop IR, its schedules and their traces.
//
// A method of a schedule is a step by name: its arguments become the trace's values, and the engine
// checks, applies and records it, as it does a step that is read from a trace's text. So a call and
// its replay cannot differ. The calls
//
//   s.Split("c.k", {-1, 4});  s.Reorder({"c.k.1", "c.k.0"});  s.Vectorize("c.k.0")
//
// leave the trace
//
//   c.k.0, c.k.1 = split("c.k", [-1, 4])
//   reorder(["c.k.1", "c.k.0"])
//
// and an exception, "vectorize(c.k.0) of block c: loop c.k.0 runs over its reduction": a step that
// fails leaves the schedule as it was (Check takes the engine's errors away).
#include <algorithm>
#include <set>

#include "api/bridge.h"
#include "api/ir_data.h"

namespace tenon::inline v0 {

using Names = IrSchedule::Names;

IrModule WrapModule(inner::Module module) {
  return IrModule(std::make_shared<const IrData>(IrData{std::move(module)}));
}
IrModule WrapScheduled(inner::Module module, stages::UsersNames names) {
  return IrModule(
      std::make_shared<const IrData>(IrData{std::move(module), true, std::move(names)}));
}

inner::Module WithRequirements(const IrData& data) {
  if (data.has_requirements) return data.module;
  inner::Module out = data.module;
  for (const auto& [name, f] : data.module.funcs) {
    if (f->func_kind == FuncKind::kKernel) out.Add(Take(WithRequirements(f, data.module)));
  }
  return out;
}

Trace WrapTrace(inner::Trace trace) {
  return Trace(std::make_shared<const TraceData>(TraceData{std::move(trace)}));
}

namespace {

// The function that is meant where none is named: for doing what is said to it.
std::string OnlyFunction(const inner::Module& module, const char* what) {
  Names candidates;
  for (const auto& [name, f] : module.funcs) {
    if (f->func_kind != FuncKind::kDevice) candidates.push_back(name);
  }
  if (candidates.size() != 1) {
    ThrowValue(fmt::format("which function to {} must be said: the module has {}", what,
                           candidates.empty() ? "none" : Join(candidates, ", ")));
  }
  return candidates[0];
}

Names CalledBy(const PrimFunc& f) {
  Names out;
  PreOrder(f.body, [&](const NodeRef& n) {
    if (const auto* call = As<CallFunc>(n)) out.push_back(call->callee);
    if (const auto* launch = As<Launch>(n)) out.push_back(launch->kernel);
    return !IsA<ExprNode>(n);
  });
  return out;
}

}  // namespace

IrModule IrModule::Parse(const std::string& text) { return WrapModule(Take(ParseModule(text))); }
IrModule IrModule::Joined(const std::vector<IrModule>& modules) {
  inner::Module out;
  stages::UsersNames names;
  std::set<std::string> unclear;  // names of loops that are others in another module
  for (const IrModule& module : modules) {
    for (const auto& [loop, name] : module.data().names) {
      if (names.try_emplace(loop, name).first->second != name) unclear.insert(loop);
    }
    const inner::Module own = WithRequirements(module.data());
    for (const auto& [name, f] : own.funcs) {
      const Func known = out.Find(name);
      if (known && !StructuralEqual(known, f)) {
        ThrowValue(fmt::format(
            "two of the modules have a function '{}'; give them names of their own", name));
      }
      out.Add(f);
    }
  }
  for (const std::string& loop : unclear) names.erase(loop);
  return WrapScheduled(std::move(out), std::move(names));
}
std::string IrModule::str() const { return Print(data_->module); }
Names IrModule::functions() const {
  Names names;
  for (const auto& [name, f] : data_->module.funcs) names.push_back(name);
  return names;
}

IrModule IrModule::Function(const std::string& name) const {
  const inner::Module& all = data_->module;
  if (!all.Find(name)) {
    ThrowValue(fmt::format("the module has no function '{}'; it has {}", name,
                           all.funcs.empty() ? "none" : Join(functions(), ", ")));
  }
  inner::Module out;
  std::vector<Func> todo = {all.Find(name)};
  while (!todo.empty()) {
    const Func f = todo.back();
    todo.pop_back();
    if (!f || out.Find(f->name)) continue;
    out.Add(f);
    for (const std::string& callee : CalledBy(*f)) todo.push_back(all.Find(callee));
  }
  return IrModule(std::make_shared<const IrData>(
      IrData{std::move(out), data_->has_requirements, data_->names}));
}

IrModule IrModule::With(const std::string& name, const IrModule& of) const {
  const std::string own = OnlyFunction(of.data().module, "add");
  inner::Module more = WithRequirements(of.data());
  if (own != name) {
    if (more.Find(name)) {
      ThrowValue(fmt::format("'{0}' is the name of a function that '{1}' calls", name, own));
    }
    PrimFunc fields(*more.Find(own));
    fields.name = name;
    more.funcs.erase(own);
    more.Add(PrimFunc::Make(std::move(fields)));
  }
  inner::Module out = WithRequirements(*data_);
  out.funcs.erase(name);
  return Joined({WrapScheduled(std::move(out), data_->names),
                 WrapScheduled(std::move(more), of.data().names)});
}

Trace Trace::Parse(const std::string& text) { return WrapTrace(Take(inner::Trace::Parse(text))); }
Trace Trace::FromJson(const std::string& text) {
  return WrapTrace(Take(inner::Trace::FromJson(text)));
}
std::string Trace::str() const { return data_->trace.ToString(); }
std::string Trace::ToJson() const { return data_->trace.ToJson(); }
std::map<std::string, int64_t> Trace::decisions() const { return data_->trace.Decisions(); }
int Trace::size() const { return static_cast<int>(data_->trace.steps.size()); }

namespace {

// After a step: its errors as an exception, and the schedule goes on as it was.
void Check(IrScheduleData* data) {
  if (data->schedule.ok()) return;
  ThrowValue(inner::Text(TakeErrors(&data->schedule)));
}

template <class T>
T Checked(IrScheduleData* data, T result) {
  Check(data);
  return result;
}

}  // namespace

AttrValue ListOf(const Values& values) {
  std::vector<int64_t> numbers;
  Names texts;
  for (const Value& v : values) {
    if (const auto* n = std::get_if<int64_t>(&v.data())) {
      numbers.push_back(*n);
      texts.push_back(std::to_string(*n));
    } else if (const auto* text = std::get_if<std::string>(&v.data())) {
      texts.push_back(*text);
    } else {
      ThrowType("expected a list of integers, or of names of choices such as \"$tile\"");
    }
  }
  if (numbers.size() == texts.size()) return numbers;
  return texts;
}

namespace {

Names Run(IrScheduleData* data, const char* primitive, std::vector<AttrValue> args) {
  return Checked(data, ApplyByName(&data->schedule, primitive, std::move(args)));
}

// The one result of a primitive that makes one thing.
std::string RunOne(IrScheduleData* data, const char* primitive, std::vector<AttrValue> args) {
  return Run(data, primitive, std::move(args)).at(0);
}

}  // namespace

IrSchedule::IrSchedule(const IrModule& module, const std::string& func) {
  Take(Verify(module.data().module, inner::kSchedulable));
  const inner::Module m = WithRequirements(module.data());
  std::string name = func.empty() ? OnlyFunction(m, "schedule") : func;
  data_ = std::make_shared<IrScheduleData>(inner::Schedule(m, name));
  data_->func = name;
  Check(data_.get());
}
IrModule IrSchedule::module() const {
  return WrapScheduled(WithImplementations(data_->schedule.module()));
}
std::string IrSchedule::function() const { return data_->func; }
Trace IrSchedule::trace() const { return WrapTrace(data_->schedule.trace()); }
IrSchedule IrSchedule::Copy() const { return IrSchedule(std::make_shared<IrScheduleData>(*data_)); }

Names IrSchedule::GetBlocks() const { return data_->schedule.GetBlocks(); }
Names IrSchedule::GetLoops(const std::string& block) const {
  return Checked(data_.get(), data_->schedule.GetLoops(block));
}
Names IrSchedule::GetChildBlocks(const std::string& loop) const {
  return Checked(data_.get(), data_->schedule.GetChildBlocks(loop));
}
Names IrSchedule::GetProducers(const std::string& block) const {
  return Checked(data_.get(), data_->schedule.GetProducers(block));
}
Names IrSchedule::GetConsumers(const std::string& block) const {
  return Checked(data_.get(), data_->schedule.GetConsumers(block));
}
std::string IrSchedule::GetBlockOf(const std::string& buffer) const {
  return Checked(data_.get(), data_->schedule.GetBlockOf(buffer));
}
namespace {

const Block& BlockOf(IrScheduleData* data, const std::string& name) {
  data->schedule.GetLoops(name);  // which says what is wrong with the name
  Check(data);
  const Block* found = nullptr;
  PreOrder(data->schedule.func()->body, [&](const NodeRef& n) {
    const auto* block = As<Block>(n);
    if (block && block->name == name) found = block;
    return !found && !IsA<ExprNode>(n);
  });
  return *found;
}

Names BuffersOf(const std::vector<Region>& regions) {
  Names out;
  for (const Region& r : regions) {
    if (std::find(out.begin(), out.end(), r->buffer->name) == out.end())
      out.push_back(r->buffer->name);
  }
  return out;
}

}  // namespace

Names IrSchedule::GetReads(const std::string& block) const {
  return BuffersOf(BlockOf(data_.get(), block).reads);
}
Names IrSchedule::GetWrites(const std::string& block) const {
  return BuffersOf(BlockOf(data_.get(), block).writes);
}
Names IrSchedule::GetSpatialLoops(const std::string& block) const {
  return Checked(data_.get(), data_->schedule.GetSpatialLoops(block));
}
Names IrSchedule::GetReduceLoops(const std::string& block) const {
  return Checked(data_.get(), data_->schedule.GetReduceLoops(block));
}
int64_t IrSchedule::GetExtent(const std::string& loop) const {
  return Checked(data_.get(), data_->schedule.GetExtent(loop));
}
bool IrSchedule::HasBlock(const std::string& block) const {
  return data_->schedule.HasBlock(block);
}
bool IrSchedule::HasLoop(const std::string& loop) const { return data_->schedule.HasLoop(loop); }

Names IrSchedule::Split(const std::string& loop, const Values& factors) {
  return Run(data_.get(), "split", {loop, ListOf(factors)});
}
Names IrSchedule::Tile(const Names& loops, const Values& factors) {
  return Run(data_.get(), "tile", {loops, ListOf(factors)});
}
Names IrSchedule::Partition(const std::string& loop, const Values& points) {
  return Run(data_.get(), "partition", {loop, ListOf(points)});
}
Names IrSchedule::PartitionEqual(const std::string& loop, const Value& parts) {
  return Run(data_.get(), "partition_equal", {loop, parts.data()});
}
std::string IrSchedule::Fuse(const Names& loops) { return RunOne(data_.get(), "fuse", {loops}); }
void IrSchedule::Reorder(const Names& loops) { Run(data_.get(), "reorder", {loops}); }
void IrSchedule::Parallel(const std::string& loop) { Run(data_.get(), "parallel", {loop}); }
void IrSchedule::Vectorize(const std::string& loop) { Run(data_.get(), "vectorize", {loop}); }
void IrSchedule::Unroll(const std::string& loop) { Run(data_.get(), "unroll", {loop}); }
void IrSchedule::Bind(const std::string& loop, const std::string& thread_axis) {
  Run(data_.get(), "bind", {loop, thread_axis});
}

void IrSchedule::ComputeAt(const std::string& block, const std::string& loop) {
  Run(data_.get(), "compute_at", {block, loop});
}
void IrSchedule::ReverseComputeAt(const std::string& block, const std::string& loop) {
  Run(data_.get(), "reverse_compute_at", {block, loop});
}
void IrSchedule::ComputeRoot(const std::string& block) {
  Run(data_.get(), "compute_root", {block});
}
void IrSchedule::ComputeInline(const std::string& block) {
  Run(data_.get(), "compute_inline", {block});
}
void IrSchedule::ReverseComputeInline(const std::string& block) {
  Run(data_.get(), "reverse_compute_inline", {block});
}

std::string IrSchedule::CacheRead(const std::string& block, const std::string& buffer,
                                  const std::string& scope) {
  return RunOne(data_.get(), "cache_read", {block, buffer, scope});
}
std::string IrSchedule::CacheWrite(const std::string& block, const std::string& buffer,
                                   const std::string& scope) {
  return RunOne(data_.get(), "cache_write", {block, buffer, scope});
}
void IrSchedule::SetScope(const std::string& buffer, const std::string& scope) {
  Run(data_.get(), "set_scope", {buffer, scope});
}
void IrSchedule::TransformLayout(const std::string& buffer, const std::string& layout) {
  Run(data_.get(), "transform_layout", {buffer, layout});
}
void IrSchedule::StorageAlign(const std::string& buffer, const Value& axis, const Value& factor,
                              const Value& offset) {
  Run(data_.get(), "storage_align", {buffer, axis.data(), factor.data(), offset.data()});
}
void IrSchedule::TransformBlockLayout(const std::string& block, const std::string& map) {
  Run(data_.get(), "transform_block_layout", {block, map});
}
Names IrSchedule::PadEinsum(const std::string& block, const Values& multiples) {
  return Run(data_.get(), "pad_einsum", {block, ListOf(multiples)});
}

std::string IrSchedule::DecomposeReduction(const std::string& block, const std::string& loop) {
  return RunOne(data_.get(), "decompose_reduction", {block, loop});
}
void IrSchedule::SetStorePredicate(const std::string& block, const std::string& condition) {
  Run(data_.get(), "set_store_predicate", {block, condition});
}
std::string IrSchedule::RFactor(const std::string& loop, const Value& axis) {
  return RunOne(data_.get(), "rfactor", {loop, axis.data()});
}

std::string IrSchedule::Prefetch(const std::string& block, const std::string& buffer,
                                 const std::string& loop, const Value& distance) {
  return RunOne(data_.get(), "prefetch", {block, buffer, loop, distance.data()});
}
std::string IrSchedule::SpreadPrefetch(const std::string& block, const std::string& buffer,
                                       const std::string& loop, const Value& distance,
                                       const std::string& over) {
  return RunOne(data_.get(), "spread_prefetch", {block, buffer, loop, distance.data(), over});
}
std::string IrSchedule::SoftwarePipeline(const std::string& loop, const Values& stages,
                                         const Values& order) {
  return RunOne(data_.get(), "software_pipeline", {loop, ListOf(stages), ListOf(order)});
}
std::string IrSchedule::DoubleBuffer(const std::string& block) {
  return RunOne(data_.get(), "double_buffer", {block});
}
void IrSchedule::RollingBuffer(const std::string& block, const std::string& loop) {
  Run(data_.get(), "rolling_buffer", {block, loop});
}

std::string IrSchedule::Blockize(const std::string& loop) {
  return RunOne(data_.get(), "blockize", {loop});
}
std::string IrSchedule::Tensorize(const std::string& loop, const std::string& intrinsic) {
  return Checked(data_.get(),
                 stages::Tensorize(loop, intrinsic, Registered(intrinsic), &data_->schedule));
}
void IrSchedule::Specialize(const std::string& condition) {
  Run(data_.get(), "specialize", {condition});
}
std::string IrSchedule::Outline(const std::string& loop_or_block, const std::string& name) {
  return RunOne(data_.get(), "outline", {loop_or_block, name});
}
void IrSchedule::Annotate(const std::string& loop_or_block, const std::string& key,
                          const Value& value) {
  Run(data_.get(), "annotate", {loop_or_block, key, value.data()});
}

int64_t IrSchedule::Decide(const std::string& name, const std::vector<int64_t>& domain,
                           int64_t guess) {
  RequireInDomain(name, domain, data_->wanted);
  return Checked(data_.get(), data_->schedule.Decide(name, domain, guess));
}
int64_t IrSchedule::SampleCategorical(const std::string& name,
                                      const std::vector<int64_t>& candidates,
                                      const std::vector<double>& probabilities) {
  RequireInDomain(name, candidates, data_->wanted);
  return Checked(data_.get(), data_->schedule.SampleCategorical(name, candidates, probabilities));
}
std::vector<int64_t> IrSchedule::SamplePerfectTile(const std::string& name, const std::string& loop,
                                                   int64_t parts, int64_t max_innermost) {
  return Checked(data_.get(), data_->schedule.SamplePerfectTile(name, loop, parts, max_innermost));
}

void RequireNotMade(const std::map<std::string, int64_t>& choices, const inner::Trace& trace) {
  const std::map<std::string, int64_t> made = trace.Decisions();
  for (const auto& [name, value] : choices) {
    auto known = made.find(name);
    if (known == made.end() || known->second == value) continue;
    ThrowValue(fmt::format(
        "use_decisions: the choice '{}' is made already, as {}; its value is given before", name,
        known->second));
  }
}

void RequireInDomain(const std::string& choice, const std::vector<int64_t>& domain,
                     const std::map<std::string, int64_t>& wanted) {
  auto given = wanted.find(choice);
  if (given == wanted.end() ||
      std::find(domain.begin(), domain.end(), given->second) != domain.end()) {
    return;
  }
  std::vector<std::string> values;
  for (int64_t v : domain) values.push_back(std::to_string(v));
  ThrowValue(fmt::format("use_decisions: the choice '{}' is among {}, but was given as {}", choice,
                         Join(values, ", "), given->second));
}

void RequireMade(const inner::Schedule& schedule, const std::map<std::string, int64_t>& wanted) {
  const std::map<std::string, int64_t> made = schedule.trace().Decisions();
  std::vector<std::string> names;
  for (const auto& [name, value] : made) names.push_back(name);
  for (const auto& [name, value] : wanted) {
    if (made.count(name) != 0) continue;
    ThrowValue(fmt::format("use_decisions: the schedule has no choice '{}'; it has {}", name,
                           names.empty() ? "none" : Join(names, ", ")));
  }
}

void IrSchedule::UseDecisions(const std::map<std::string, int64_t>& choices) {
  RequireNotMade(choices, data_->schedule.trace());
  data_->schedule.UseDecisions(choices);
  data_->wanted = choices;
}
void IrSchedule::CheckDecisions() const { RequireMade(data_->schedule, data_->wanted); }

Names IrSchedule::Apply(const std::string& primitive, const Values& args) {
  std::vector<AttrValue> values;
  for (const Value& v : args) values.push_back(v.data());
  if (primitive == "tensorize" && values.size() == 2 &&
      std::holds_alternative<std::string>(values[0]) &&
      std::holds_alternative<std::string>(values[1])) {
    return {Tensorize(std::get<std::string>(values[0]), std::get<std::string>(values[1]))};
  }
  return Checked(data_.get(), ApplyByName(&data_->schedule, primitive, std::move(values)));
}

void IrSchedule::Replay(const Trace& trace) {
  IrScheduleData next = *data_;
  AddIntrinsicsOf(trace.data().trace, &next.schedule);
  Take(next.schedule.Replay(trace.data().trace));
  RequireMade(next.schedule, next.wanted);
  *data_ = std::move(next);
}

}  // namespace tenon::inline v0

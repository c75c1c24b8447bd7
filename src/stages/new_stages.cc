// Primitives that make new stages, or give a stage other loops: done at once, on loops as they were
// made.
//
// Each applies one primitive of the engine to State::base. Then the new block gets a stage at its
// place among the others: a copy of a tensor comes behind the tensor's stage, a cache before the
// stage whose results it takes over. After
//
//   A.shared = cache_read("A", "shared", ["C"])
//
// the function has block "A.shared" of the engine's step
//
//   A.shared = cache_read("C", "A", "shared")
//
// and its stage has the loops ax0, ax1, …, one for each dim. Steps on loops that a stage has been
// asked for before would be about loops that are gone, so such a stage is refused (Fresh).
#include <fmt/format.h>

#include <algorithm>

#include "stages/primitives.h"

namespace tenon::stages {

namespace {

using Names = std::vector<std::string>;

bool IsMarkOf(const Waiting& step, StageId stage) {
  return step.phase == Phase::kMark && step.stage == stage;
}

Status Fresh(const Call& c, StageId id) {
  const StageInfo& stage = c.s[id];
  if (stage.block.empty()) return c.Wrong(id, "it is an input");
  const bool marked = std::any_of(c.s.waiting.begin(), c.s.waiting.end(),
                                  [&](const Waiting& step) { return IsMarkOf(step, id); });
  if (stage.steps.empty() && !marked) return Ok();
  return c.Wrong(id, "it comes before other primitives of the stage");
}

// What the loops that the stage was made with are called, by the variables of its block: of all, or
// of those that do not reduce. "": the variable's loop is one over rows.
Names RootsOf(const State& s, StageId id, bool all) {
  const StageInfo& stage = s[id];
  const Block* block = FindBlock(s.base.func(), stage.block);
  Names names;
  for (size_t i = 0; i < block->iters.size(); ++i) {
    if (!all && block->iters[i]->iter_kind == IterKind::kReduce) continue;
    auto root = std::find_if(stage.roots.begin(), stage.roots.end(),
                             [&](const Root& r) { return r.iter == i; });
    names.push_back(root == stage.roots.end() ? "" : s[root->loop].name);
  }
  return names;
}

// Applies a primitive of the engine to the function with loops as they were made.
Expected<Names> Change(const Call& c, std::vector<AttrValue> args) {
  Names made = ApplyByName(&c.s.base, c.name, std::move(args));
  TN_RETURN_IF_ERROR(c.s.base.status());
  return made;
}

StageId AddStageOf(State* s, const std::string& name, const std::string& block, const Names& loops,
                   std::optional<StageId> before) {
  const StageId id = s->AddStage(name, before);
  s->SetBlock(id, block, loops);
  return id;
}

}  // namespace

Expected<Made> CacheRead(const Call& c, const Tensor& tensor, const Text& scope,
                         const Stages& readers) {
  if (readers.empty()) {
    return MakeError(fmt::format("cache_read of '{}': no reader", tensor.name));
  }
  Names blocks;
  for (StageId reader : readers) blocks.push_back(c.s[reader].block);
  AttrValue by = blocks;
  if (blocks.size() == 1) by = blocks[0];
  TN_ASSIGN_OR_RETURN(const Names made, Change(c, {by, tensor.name, scope}));
  std::optional<StageId> source;
  for (StageId id : c.s.order) {
    const Names& own = c.s[id].tensors;
    if (std::find(own.begin(), own.end(), tensor.name) != own.end()) source = id;
  }
  const auto before = source ? c.s.After(*source) : std::nullopt;
  return Made{{}, {AddStageOf(&c.s, made[0], made[0], {}, before)}};
}

Expected<Made> CacheWrite(const Call& c, const Stage& stage, const Tensors& tensors,
                          const Text& scope) {
  TN_RETURN_IF_ERROR(Fresh(c, stage));
  const std::string computes = c.s[stage].block;
  const Names all = RootsOf(c.s, stage, true), spatial = RootsOf(c.s, stage, false);
  Names names;
  for (const Tensor& t : tensors) names.push_back(t.name);
  AttrValue of = names;
  if (names.size() == 1) of = names[0];
  TN_ASSIGN_OR_RETURN(const Names made, Change(c, {computes, of, scope}));
  c.s.SetBlock(stage, made[0], spatial);
  return Made{{}, {AddStageOf(&c.s, made[0], computes, all, stage)}};
}

Expected<Made> RFactor(const Call& c, const Stage& stage, const Loop& loop, const Number& axis) {
  const LoopInfo factored = c.s[loop.id];
  if (!factored.reduces) {
    return c.Wrong(stage, fmt::format("'{}' is no reduce loop", factored.name));
  }
  Schedule& base = c.s.base;
  TN_ASSIGN_OR_RETURN(LoopNames names, RootNames(c.s[stage], base, ""));
  for (const LoopStep& step : c.s[stage].steps) {
    const bool reduces = std::all_of(step.from.begin(), step.from.end(),
                                     [&](LoopId from) { return c.s[from].reduces; });
    if (step.kind != LoopStep::Kind::kReorder && reduces) ApplyLoopStep(step, &base, &names);
  }
  TN_RETURN_IF_ERROR(base.status());
  const std::string own = names[loop.id];
  if (own.empty()) {
    return MakeError(fmt::format("rfactor: loop '{}' has one iteration", factored.name));
  }
  const std::string block = c.s[stage].block;
  const Names spatial = RootsOf(c.s, stage, false), reduce = base.GetReduceLoops(block);
  TN_ASSIGN_OR_RETURN(const Names made, Change(c, {own, axis.given}));
  Names partial = spatial, rest = spatial;
  size_t others = 0;
  for (const std::string& l : reduce) {
    partial.push_back(l == own ? factored.name : fmt::format("k{}", others++));
  }
  rest.push_back(factored.name + ".v");
  std::erase_if(c.s.waiting, [&](const Waiting& step) { return IsMarkOf(step, stage); });
  c.s.SetBlock(stage, block, rest);
  return Made{{}, {AddStageOf(&c.s, made[0], made[0], partial, stage)}};
}

Expected<Made> PadEinsum(const Call& c, const Stage& stage, const Numbers& multiples) {
  TN_RETURN_IF_ERROR(Fresh(c, stage));
  const std::string block = c.s[stage].block, result = c.s[stage].tensors[0];
  const Names all = RootsOf(c.s, stage, true), spatial = RootsOf(c.s, stage, false);
  TN_ASSIGN_OR_RETURN(const Names made, Change(c, {block, multiples.given}));
  const Func& func = c.s.base.func();
  // The block computes the padded tensor now, or its own still where nothing of it is padded.
  const std::string computed = FindBlock(func, block)->writes[0]->buffer->name;
  StageId padded = stage;
  if (computed != result) padded = AddStageOf(&c.s, computed, block, all, stage);
  Made out{{}, {padded}};
  for (const std::string& name : made) {
    if (FindBlock(func, name)->writes[0]->buffer->name == result) {
      c.s.SetBlock(stage, name, spatial);
    } else {
      out.stages.push_back(AddStageOf(&c.s, name, name, {}, padded));
    }
  }
  return out;
}

Expected<Made> TransformBlockLayout(const Call& c, const Stage& stage, const Text& map) {
  TN_RETURN_IF_ERROR(Fresh(c, stage));
  const std::string block = c.s[stage].block;
  TN_RETURN_IF_ERROR(Change(c, {block, map}));
  c.s.SetBlock(stage, block, {});
  return Made{c.s[stage].leaves, {}};
}

// The block that is left is the producer's in all but its name.
Expected<Made> ReverseComputeInline(const Call& c, const Stage& stage) {
  StageInfo& consumer = c.s[stage];
  if (consumer.block.empty()) return MakeError(fmt::format("'{}' is an input", consumer.name));
  TN_RETURN_IF_ERROR(Change(c, {consumer.block}));
  for (StageInfo& producer : c.s.stages) {
    if (producer.block.empty() || c.s.base.HasBlock(producer.block)) continue;
    producer.block = consumer.block;
    producer.tensors = consumer.tensors;
  }
  consumer.block.clear();
  return Made{};
}

}  // namespace tenon::stages

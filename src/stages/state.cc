#include "stages/state.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/visit.h"
#include "stages/nests.h"
#include "support/strings.h"

namespace tenon::stages {

std::optional<StageId> State::FindStage(const std::string& name) const {
  auto it = std::find_if(order.begin(), order.end(),
                         [&](StageId id) { return (*this)[id].name == name; });
  return it == order.end() ? std::nullopt : std::optional(*it);
}

std::optional<StageId> State::StageOf(const std::string& block) const {
  auto it = std::find_if(order.begin(), order.end(),
                         [&](StageId id) { return (*this)[id].block == block; });
  return it == order.end() ? std::nullopt : std::optional(*it);
}

std::optional<LoopId> State::FindLoop(StageId stage, const std::string& name) const {
  for (size_t i = loops.size(); i-- > 0;) {
    if (loops[i].stage == stage && loops[i].name == name) return LoopId(i);
  }
  return std::nullopt;
}

std::string State::Names(const std::vector<LoopId>& of) const {
  std::vector<std::string> names;
  for (LoopId loop : of) names.push_back((*this)[loop].name);
  return Join(names, ", ");
}

LoopId State::AddLoop(StageId stage, const std::string& name, bool reduces) {
  std::string own = name;
  for (int i = 1; FindLoop(stage, own); ++i) own = fmt::format("{}_{}", name, i);
  loops.push_back({own, stage, reduces});
  return LoopId(loops.size() - 1);
}

StageId State::AddStage(const std::string& name, std::optional<StageId> before) {
  StageInfo stage;
  stage.name = name;
  for (int i = 1; FindStage(stage.name); ++i) stage.name = fmt::format("{}_{}", name, i);
  stages.push_back(std::move(stage));
  const StageId id{stages.size() - 1};
  order.insert(before ? std::find(order.begin(), order.end(), *before) : order.end(), id);
  return id;
}

std::optional<StageId> State::After(StageId stage) const {
  auto it = std::find(order.begin(), order.end(), stage);
  return it == order.end() || it + 1 == order.end() ? std::nullopt : std::optional(*(it + 1));
}

std::optional<StageId> State::RowsOf(const std::string& loop) const {
  auto it = std::find_if(order.begin(), order.end(), [&](StageId id) {
    const StageInfo& stage = (*this)[id];
    return stage.tensors.empty() && !stage.leaves.empty() && (*this)[stage.leaves[0]].name == loop;
  });
  return it == order.end() ? std::nullopt : std::optional(*it);
}

void State::SetBlock(StageId id, const std::string& name, const std::vector<std::string>& names) {
  const std::vector<Nest> nests = NestsOf(base.func());
  const std::map<const For*, int> blocks_under = BlocksUnder(nests);
  const Nest& nest = *std::find_if(nests.begin(), nests.end(),
                                   [&](const Nest& n) { return n.block->name == name; });
  for (LoopInfo& loop : loops) {
    if (loop.stage == id) loop.stage = kNoStage;
  }
  StageInfo stage = (*this)[id];
  stage.block = name;
  stage.tensors.clear();
  for (const Region& w : nest.block->writes) stage.tensors.push_back(w->buffer->name);
  stage.roots.clear();
  stage.leaves.clear();
  stage.steps.clear();
  for (size_t i = 0; i < nest.block->iters.size(); ++i) {
    const For* loop = nest.LoopOf(i);
    if (loop && blocks_under.at(loop) > 1) {
      stage.rows = RowsOf(loop->var->name);
      continue;
    }
    const bool named = i < names.size() && !names[i].empty();
    const LoopId made = AddLoop(id, named ? names[i] : fmt::format("ax{}", i),
                                nest.block->iters[i]->iter_kind == IterKind::kReduce);
    stage.roots.push_back({made, i});
    stage.leaves.push_back(made);
  }
  (*this)[id] = std::move(stage);
}

Diagnostic Wrong(const char* primitive, const StageInfo& stage, const std::string& reason) {
  return MakeError(fmt::format("{} of '{}': {}", primitive, stage.name, reason));
}

const Block* FindBlock(const Func& func, const std::string& name) {
  const Block* found = nullptr;
  PreOrder(func->body, [&](const NodeRef& n) {
    const auto* block = As<Block>(n);
    if (block && block->name == name) found = block;
    return !IsA<ExprNode>(n);
  });
  return found;
}

Expected<LoopNames> RootNames(const StageInfo& stage, const Schedule& schedule,
                              const std::string& at) {
  Schedule look = schedule;
  std::vector<std::string> loops = look.GetLoops(stage.block);
  TN_RETURN_IF_ERROR(look.status());
  auto first = std::find(loops.begin(), loops.end(), at);
  loops.erase(loops.begin(), first == loops.end() ? loops.begin() : first + 1);
  const Block* block = FindBlock(schedule.func(), stage.block);
  LoopNames names;
  for (const Root& root : stage.roots) {
    std::string& name = names[root.loop];
    PreOrder(block->iters[root.iter]->binding, [&](const NodeRef& n) {
      const auto* var = As<VarNode>(n);
      if (var && std::find(loops.begin(), loops.end(), var->name) != loops.end()) name = var->name;
      return true;
    });
  }
  return names;
}

}  // namespace tenon::stages

// The stages of a function as te makes it: of
//
//   for C.i in 0..7, C.k in 0..6 { block C(vi: spatial = C.i, vk: reduce = C.k) { … } }
//
// one stage, C, with the loops i and k. The loop over the rows of a scan is around several blocks,
// so it is no loop of theirs: it has a stage of its own, which stands after them, and it is there
// from the start that they are computed.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "ir/visit.h"
#include "stages/nests.h"
#include "stages/stage_schedule.h"
#include "support/strings.h"

namespace tenon::stages {

namespace {

// The loop's name in its stage: the block's is in front of it in the function, where names are
// unique.
std::string NameIn(const Block& block, const For& loop) {
  const std::string &name = loop.var->name, head = block.name + ".";
  return name.starts_with(head) ? name.substr(head.size()) : name;
}

class StageFinder {
 public:
  explicit StageFinder(State* state) : s_(*state) {}

  Status Run() {
    const std::vector<Nest> nests = NestsOf(s_.base.func());
    blocks_under_ = BlocksUnder(nests);
    for (const Nest& nest : nests) TN_RETURN_IF_ERROR(Add(nest));
    for (const Buffer& b : s_.base.func()->buffers) AddInput(b, std::nullopt);
    return Ok();
  }

 private:
  // Inputs come in front of the first block that reads them.
  void AddInput(const Buffer& buffer, std::optional<StageId> before) {
    const std::vector<Buffer>& all = s_.base.func()->buffers;
    auto param = std::find(all.begin(), all.end(), buffer);
    if (all.end() - param <= s_.base.func()->num_outputs || !inputs_.insert(buffer.get()).second) {
      return;
    }
    const StageId id = s_.AddStage(buffer->name, before);
    s_[id].tensors = {buffer->name};
  }

  Status Add(const Nest& nest) {
    const StageId id = s_.AddStage(nest.block->name, std::nullopt);
    StageInfo stage = s_[id];
    stage.block = nest.block->name;
    for (const Region& w : nest.block->writes) stage.tensors.push_back(w->buffer->name);
    std::vector<std::pair<size_t, LoopId>> places;
    for (size_t i = 0; i < nest.block->iters.size(); ++i) {
      const IterVarNode& iter = *nest.block->iters[i];
      const For* loop = nest.LoopOf(i);
      if (!loop) {
        return MakeError(fmt::format(
            "stages: variable {} of block {} is bound to no loop; expected a function of tensors "
            "that was not scheduled",
            iter.var->name, nest.block->name));
      }
      if (blocks_under_.at(loop) > 1) {
        stage.rows = Rows(*loop, nest.block->name, i);
        continue;
      }
      const LoopId made =
          s_.AddLoop(id, NameIn(*nest.block, *loop), iter.iter_kind == IterKind::kReduce);
      stage.roots.push_back({made, i});
      const auto place = std::find(nest.loops.begin(), nest.loops.end(), loop);
      places.emplace_back(static_cast<size_t>(place - nest.loops.begin()), made);
    }
    std::sort(places.begin(), places.end());
    for (const auto& [place, loop] : places) stage.leaves.push_back(loop);
    s_[id] = std::move(stage);
    for (const Region& r : nest.block->reads) AddInput(r->buffer, id);
    return Ok();
  }

  // The stage of a loop over rows, which the last block in it stands for.
  StageId Rows(const For& loop, const std::string& block, size_t iter) {
    auto known = rows_.find(&loop);
    if (known == rows_.end()) {
      const StageId id = s_.AddStage(loop.var->name, std::nullopt);
      const LoopId made = s_.AddLoop(id, loop.var->name, false);
      s_[id].leaves = {made};
      s_[id].roots = {{made, 0}};
      known = rows_.emplace(&loop, id).first;
    }
    const StageId id = known->second;
    s_[id].block = block;
    s_[id].roots[0].iter = iter;
    std::erase(s_.order, id);
    s_.order.push_back(id);
    return id;
  }

  State& s_;
  std::map<const For*, int> blocks_under_;
  std::map<const For*, StageId> rows_;
  std::unordered_set<const BufferNode*> inputs_;
};

}  // namespace

Expected<StageSchedule> StageSchedule::Of(Module module, const std::string& func) {
  State state{Schedule(std::move(module), func), {}, {}, {}, {}, {}};
  TN_RETURN_IF_ERROR(state.base.status());
  TN_RETURN_IF_ERROR(StageFinder(&state).Run());
  return StageSchedule(std::move(state));
}

Module StageSchedule::program() const {
  Module out = program_;
  for (const auto& [name, func] : state_.intrinsics) out.Add(func);
  return out;
}

}  // namespace tenon::stages

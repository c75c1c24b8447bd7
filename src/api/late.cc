// The end of carrying a schedule out: initial values of reductions, and the primitives that need
// all loops in their places.
#include <algorithm>

#include "api/ir_data.h"
#include "api/schedule_data.h"

namespace tenon::inline v0 {

namespace {

using te::IterVar;
using Late = LateStep::Kind;

constexpr const char* kNames[] = {"storage_align",     "transform_layout", "decompose_reduction",
                                  "tensorize",         "blockize",         "double_buffer",
                                  "software_pipeline", "prefetch",         "partition",
                                  "outline",           "specialize"};

const char* NameOf(Late kind) { return kNames[static_cast<size_t>(kind)]; }

bool Has(const ScheduleData& data, const StageData& stage, Late kind) {
  return std::any_of(data.late.begin(), data.late.end(), [&](const LateStep& step) {
    return step.stage == &stage && step.kind == kind;
  });
}

bool HasInit(const inner::Schedule& schedule, const std::string& block) {
  const Block* found = FindBlock(schedule.func(), block);
  return found && found->init;
}

// A reduction starts outside its reduce loops, so that they run without a test. Where that is not
// legal it stays inside; where it was said where, or follows from an intrinsic, that comes later.
void MoveInits(const ScheduleData& data, inner::Schedule* schedule) {
  for (const auto& stage : data.stages) {
    if (stage->block.empty() || !HasInit(*schedule, stage->block)) continue;
    if (Has(data, *stage, Late::kDecompose) || Has(data, *stage, Late::kTensorize) ||
        Has(data, *stage, Late::kBlockize)) {
      continue;
    }
    std::vector<std::string> loops = schedule->GetReduceLoops(stage->block);
    if (loops.empty()) continue;
    inner::Schedule next = *schedule;
    next.DecomposeReduction(stage->block, loops[0]);
    if (next.ok()) *schedule = std::move(next);
  }
}

/// Carries out one late step after the other.
class LateSteps {
 public:
  LateSteps(const ScheduleData& data, StageNames* names, inner::Schedule* schedule)
      : data_(data), names_(*names), s_(*schedule) {}

  void Run(const LateStep& step) {
    const std::string buffer = step.stage ? data_.BufferOf(step.stage->op.output(0))->name : "";
    switch (step.kind) {
      case Late::kStorageAlign:
        Apply("storage_align", {buffer, step.numbers[0], step.numbers[1], step.numbers[2]});
        break;
      case Late::kLayout: Apply("transform_layout", {buffer, step.text}); break;
      case Late::kDecompose: s_.DecomposeReduction(step.stage->block, LoopOf(step)); break;
      case Late::kTensorize: Tensorize(step); break;
      case Late::kBlockize: s_.Blockize(LoopOf(step)); break;
      case Late::kDoubleBuffer: Renamed(s_.DoubleBuffer(step.stage->block)); break;
      case Late::kPipeline:
        Renamed(Apply("software_pipeline", {LoopOf(step), step.numbers[0], step.numbers[1]}));
        break;
      case Late::kPrefetch:
        Apply("prefetch", {step.stage->block, step.text, LoopOf(step), step.numbers[0]});
        break;
      case Late::kPartition: Apply("partition", {LoopOf(step), step.numbers[0]}); break;
      case Late::kOutline: s_.Outline(LoopOf(step), step.text); break;
      case Late::kSpecialize: Apply("specialize", {step.text}); break;
    }
    RequireOk(s_);
  }

 private:
  // The first result, or "".
  std::string Apply(const char* primitive, std::vector<AttrValue> args) {
    std::vector<std::string> made = inner::Steps::ApplyByName(s_, primitive, std::move(args));
    return made.empty() ? "" : made[0];
  }

  // The loop, or, where it has one iteration and was not made, the next one inside.
  std::string LoopOf(const LateStep& step) const {
    const StageData& stage = *step.stage;
    auto own = names_.find(&stage);
    auto leaf = std::find(stage.leaves.begin(), stage.leaves.end(), step.loop);
    if (own == names_.end() || leaf == stage.leaves.end()) {
      ThrowValue(fmt::format("{} of '{}': '{}' is no loop of it any more", NameOf(step.kind),
                             stage.op.name(), step.loop.name()));
    }
    for (; leaf != stage.leaves.end(); ++leaf) {
      const std::string& name = own->second.at(leaf->node().get());
      if (!name.empty()) return name;
    }
    ThrowValue(fmt::format("{} of '{}': loop '{}' has one iteration and is not there",
                           NameOf(step.kind), stage.op.name(), step.loop.name()));
  }

  // A pipelined loop has a new name: the old one and ".pipe".
  void Renamed(const std::string& loop) {
    constexpr std::string_view kSuffix = ".pipe";
    size_t end = loop.rfind(kSuffix);
    if (end == std::string::npos) return;
    for (auto& [stage, loops] : names_) {
      for (auto& [var, name] : loops) {
        if (name == loop.substr(0, end)) name = loop;
      }
    }
  }

  // The whole reduction where it lies in the tile, else a part of it that starts outside.
  void Tensorize(const LateStep& step) {
    const std::string loop = LoopOf(step), &block = step.stage->block;
    std::vector<std::string> made;
    inner::Schedule whole = s_;
    TensorizeWith(loop, step.text, &whole, &made);
    if (whole.ok() || !HasInit(s_, block)) {
      s_ = std::move(whole);
      return;
    }
    inner::Schedule part = s_;
    part.DecomposeReduction(block, StartOf(block, loop));
    if (part.ok()) TensorizeWith(loop, step.text, &part, &made);
    s_ = std::move(part);
    const TileIntrinsic* row = BuiltinTileIntrinsics().Find(step.text);
    if (s_.ok() && row && !row->start.empty()) TensorizeStart(block + ".init", row->start);
  }

  // The initial value, by the intrinsic that goes with the one of the sums.
  void TensorizeStart(const std::string& block, const std::string& intrinsic) {
    std::vector<std::string> loops = s_.GetLoops(block);
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
      inner::Schedule next = s_;
      next.Tensorize(*loop, intrinsic);
      if (!next.ok()) continue;
      s_ = std::move(next);
      return;
    }
  }

  // The outermost reduce loop around the tile, or the tile's own outermost loop.
  std::string StartOf(const std::string& block, const std::string& tile) {
    std::vector<std::string> reduce = s_.GetReduceLoops(block);
    for (const std::string& loop : s_.GetLoops(block)) {
      bool reduces = std::find(reduce.begin(), reduce.end(), loop) != reduce.end();
      if (reduces || loop == tile) return loop;
    }
    return tile;
  }

  const ScheduleData& data_;
  StageNames& names_;
  inner::Schedule& s_;
};

}  // namespace

void ApplyLate(const ScheduleData& data, StageNames* names, inner::Schedule* schedule) {
  MoveInits(data, schedule);
  std::vector<LateStep> steps = data.late;
  std::stable_sort(steps.begin(), steps.end(),
                   [](const LateStep& a, const LateStep& b) { return a.kind < b.kind; });
  LateSteps late(data, names, schedule);
  for (const LateStep& step : steps) late.Run(step);
}

}  // namespace tenon::inline v0

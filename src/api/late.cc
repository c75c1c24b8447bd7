// The end of carrying a schedule out: initial values of reductions, and the primitives that need
// all loops in their places.
//
// What arranges iterations in time comes before what looks at memory and machine operations: a
// pipeline gives buffers versions, which have other strides, and parts of a loop have copies of
// what is inside. So a stage that is tensorized has its copies tensorized one by one. Asked for in
// any order, after a cache of A that is computed at ko,
//
//   s[AA].storage_align(AA.op.axis[0], 8, 4)
//   s[AA].double_buffer()
//
// become, behind the reduction's initial value,
//
//   C.init = decompose_reduction("C", "C.k.0")
//   C.k.0.pipe = double_buffer("A.shared")
//   storage_align("A.shared", 1, 8, 4)
//
// where the axis is 1, not 0, since the buffer has one dim more: its version.
#include <algorithm>
#include <limits>

#include "api/ir_data.h"
#include "api/schedule_data.h"

namespace tenon::inline v0 {

namespace {

using te::IterVar;
using Late = LateStep::Kind;
using Names = std::vector<std::string>;

constexpr const char* kNames[] = {"transform_layout", "decompose_reduction", "blockize",
                                  "double_buffer",    "software_pipeline",   "prefetch",
                                  "partition",        "storage_align",       "tensorize",
                                  "outline",          "specialize"};

const char* NameOf(Late kind) { return kNames[static_cast<size_t>(kind)]; }

bool ArrangesTime(Late kind) { return kind >= Late::kDoubleBuffer && kind <= Late::kPartition; }

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
    Names loops = schedule->GetReduceLoops(stage->block);
    if (loops.empty()) continue;
    inner::Schedule next = *schedule;
    next.DecomposeReduction(stage->block, loops[0]);
    if (next.ok()) *schedule = std::move(next);
  }
}

/// Carries out one late step after the other. names_ has the name that each loop of a stage has
/// now, and parts_ what became of names that a partition made several of, so that a step finds its
/// loops whatever came before it.
class LateSteps {
 public:
  LateSteps(const ScheduleData& data, StageNames* names, inner::Schedule* schedule)
      : data_(data), names_(*names), s_(*schedule) {}

  void Run(const LateStep& step) {
    const std::string buffer = step.stage ? data_.BufferOf(step.stage->op.output(0))->name : "";
    switch (step.kind) {
      case Late::kLayout: Apply("transform_layout", {buffer, step.text}); break;
      case Late::kDecompose: s_.DecomposeReduction(step.stage->block, LoopOf(step)); break;
      case Late::kBlockize: s_.Blockize(LoopOf(step)); break;
      case Late::kDoubleBuffer: Renamed(s_.DoubleBuffer(step.stage->block)); break;
      case Late::kPipeline:
        Renamed(Apply("software_pipeline", {LoopOf(step), step.numbers[0], step.numbers[1]}));
        break;
      case Late::kPrefetch:
        for (const std::string& block : PartsOf(step.stage->block))
          Apply("prefetch", {block, step.text, LoopOf(step), step.numbers[0]});
        break;
      case Late::kPartition: Partition(step); break;
      case Late::kStorageAlign: StorageAlign(step, buffer); break;
      case Late::kTensorize: Tensorize(step); break;
      case Late::kOutline: s_.Outline(LoopOf(step), step.text); break;
      case Late::kSpecialize: Apply("specialize", {step.text}); break;
    }
    if (!s_.ok()) ThrowValue(refused_ + inner::Text(s_.status().errors()));
  }

  // A tensorized stage whose operation is a part of its reduction starts outside, before iterations
  // are arranged. What stands in the way of the operation already is told where arranging fails.
  void Start(const LateStep& step) {
    const std::string &block = step.stage->block, loop = LoopOf(step);
    inner::Schedule tried = Tensorized(loop, step.text);
    if (HasInit(s_, block) && !tried.ok()) {
      s_.DecomposeReduction(block, StartOf(*step.stage, loop));
      RequireOk(s_);
      started_.push_back(&step);
      tried = Tensorized(loop, step.text);
    }
    if (!tried.ok()) refused_ += inner::Text(tried.status().errors()) + "\n";
  }

  // How many loops there are around the step's.
  size_t DepthOf(const LateStep& step) {
    const Names loops = s_.GetLoops(step.stage->block);
    RequireOk(s_);
    return static_cast<size_t>(std::find(loops.begin(), loops.end(), LoopOf(step)) - loops.begin());
  }

  void Unroll(const StageData& stage, const IterVar& loop) {
    auto own = names_.find(&stage);
    if (own == names_.end() || own->second.at(loop.node().get()).empty()) return;
    for (const std::string& part : PartsOf(own->second.at(loop.node().get()))) s_.Unroll(part);
    RequireOk(s_);
  }

 private:
  // The first result, or "".
  std::string Apply(const char* primitive, std::vector<AttrValue> args) {
    Names made = inner::Steps::ApplyByName(s_, primitive, std::move(args));
    return made.empty() ? "" : made[0];
  }

  // The loop, or, where it has one iteration and was not made, the next one inside; of several
  // parts, all.
  Names LoopsOf(const LateStep& step) const {
    const StageData& stage = *step.stage;
    auto own = names_.find(&stage);
    auto leaf = std::find(stage.leaves.begin(), stage.leaves.end(), step.loop);
    if (own == names_.end() || leaf == stage.leaves.end()) {
      ThrowValue(fmt::format("{} of '{}': '{}' is no loop of it any more", NameOf(step.kind),
                             stage.op.name(), step.loop.name()));
    }
    for (; leaf != stage.leaves.end(); ++leaf) {
      const std::string& name = own->second.at(leaf->node().get());
      if (!name.empty()) return PartsOf(name);
    }
    ThrowValue(fmt::format("{} of '{}': loop '{}' has one iteration and is not there",
                           NameOf(step.kind), stage.op.name(), step.loop.name()));
  }

  std::string LoopOf(const LateStep& step) const {
    Names loops = LoopsOf(step);
    if (loops.size() == 1) return loops[0];
    ThrowValue(fmt::format("{} of '{}': loop '{}' is in {} parts, which partition made of it",
                           NameOf(step.kind), step.stage->op.name(), step.loop.name(),
                           loops.size()));
  }

  // What became of a loop or block where loops around it were divided.
  Names PartsOf(const std::string& name) const {
    Names out, todo = {name};
    while (!todo.empty()) {
      const std::string next = std::move(todo.back());
      todo.pop_back();
      auto it = parts_.find(next);
      if (it == parts_.end()) {
        out.push_back(next);
      } else {
        todo.insert(todo.end(), it->second.rbegin(), it->second.rend());
      }
    }
    return out;
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

  // What is in part i has the names of what is copied, and ".p" and i.
  void Partition(const LateStep& step) {
    const std::string loop = LoopOf(step);
    const Names inside = NamesUnder(s_.func(), loop);
    const Names made = inner::Steps::ApplyByName(s_, "partition", {loop, step.numbers[0]});
    RequireOk(s_);
    const Names now = NamesUnder(s_.func(), "");
    for (const std::string& name : inside) {
      for (size_t i = 0; i < made.size(); ++i) {
        const std::string part = fmt::format("{}.p{}", name, i);
        if (std::find(now.begin(), now.end(), part) != now.end()) parts_[name].push_back(part);
      }
    }
  }

  // Loops and blocks in the loop, itself among them; all of the function for "".
  static Names NamesUnder(const Func& func, const std::string& loop) {
    Names out;
    auto collect = [&](const NodeRef& n) {
      if (const auto* l = As<For>(n)) out.push_back(l->var->name);
      if (const auto* block = As<Block>(n)) out.push_back(block->name);
      return !IsA<ExprNode>(n);
    };
    if (loop.empty()) {
      PreOrder(func->body, collect);
      return out;
    }
    PreOrder(func->body, [&](const NodeRef& n) {
      const auto* l = As<For>(n);
      if (!l || l->var->name != loop) return !IsA<ExprNode>(n);
      PreOrder(n, collect);
      return false;
    });
    return out;
  }

  // A buffer that has versions has one more dim, its first.
  void StorageAlign(const LateStep& step, const std::string& buffer) {
    const size_t dims = step.stage->op.output(0).shape().size();
    size_t rank = dims;
    PreOrder(s_.func()->body, [&](const NodeRef& n) {
      const auto* alloc = As<Alloc>(n);
      if (alloc && alloc->buffer->name == buffer) rank = alloc->buffer->shape.size();
      return !IsA<ExprNode>(n);
    });
    const int64_t axis = std::get<int64_t>(step.numbers[0]) + static_cast<int64_t>(rank - dims);
    Apply("storage_align", {buffer, axis, step.numbers[1], step.numbers[2]});
  }

  inner::Schedule Tensorized(const std::string& loop, const std::string& intrinsic) const {
    inner::Schedule out = s_;
    Names made;
    TensorizeWith(loop, intrinsic, &out, &made);
    return out;
  }

  // The whole reduction where it lies in the tile, else a part of it that starts outside.
  void Tensorize(const LateStep& step) {
    const std::string& block = step.stage->block;
    const bool started = std::find(started_.begin(), started_.end(), &step) != started_.end();
    const bool starts = !started && HasInit(s_, block) && !Tensorized(LoopOf(step), step.text).ok();
    if (starts) s_.DecomposeReduction(block, StartOf(*step.stage, LoopOf(step)));
    RequireOk(s_);
    Names made;
    for (const std::string& loop : LoopsOf(step)) {
      TensorizeWith(loop, step.text, &s_, &made);
      RequireOk(s_);
    }
    const TileIntrinsic* row = BuiltinTileIntrinsics().Find(step.text);
    if ((starts || started) && row && !row->start.empty())
      TensorizeStart(block + ".init", row->start);
  }

  // The initial value, by the intrinsic that goes with the one of the sums.
  void TensorizeStart(const std::string& block, const std::string& intrinsic) {
    Names loops = s_.GetLoops(block);
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
      inner::Schedule next = s_;
      next.Tensorize(*loop, intrinsic);
      if (!next.ok()) continue;
      s_ = std::move(next);
      return;
    }
  }

  // The outermost loop around the tile that the reduction runs over, of one iteration too, or the
  // tile's own outermost loop.
  std::string StartOf(const StageData& stage, const std::string& tile) {
    Names reduce = s_.GetReduceLoops(stage.block);
    for (const IterVar& leaf : stage.leaves) {
      if (leaf.node()->kind == te::LoopKind::kReduce)
        reduce.push_back(names_.at(&stage).at(leaf.node().get()));
    }
    for (const std::string& loop : s_.GetLoops(stage.block)) {
      bool reduces = std::find(reduce.begin(), reduce.end(), loop) != reduce.end();
      if (reduces || loop == tile) return loop;
    }
    return tile;
  }

  const ScheduleData& data_;
  StageNames& names_;
  inner::Schedule& s_;
  std::map<std::string, Names> parts_;
  std::vector<const LateStep*> started_;
  std::string refused_;
};

// Pipelines, and partitions inside them, come to inner loops first; other partitions last.
void InnerFirst(std::vector<LateStep>::iterator begin, std::vector<LateStep>::iterator end,
                LateSteps* late) {
  std::map<const te::IterVarData*, size_t> depths;
  size_t outermost = std::numeric_limits<size_t>::max();  // of the pipelined loops
  auto depth = [&](const LateStep& step) { return depths[step.loop.node().get()]; };
  for (auto step = begin; step != end; ++step) {
    depths[step->loop.node().get()] = late->DepthOf(*step);
    if (step->kind == Late::kPipeline) outermost = std::min(outermost, depth(*step));
  }
  auto is_early = [&](const LateStep& step) {
    return step.kind == Late::kPipeline ||
           (step.kind == Late::kPartition && depth(step) > outermost);
  };
  auto others = std::stable_partition(begin, end, is_early);
  std::stable_sort(begin, others,
                   [&](const LateStep& a, const LateStep& b) { return depth(a) > depth(b); });
}

}  // namespace

bool IsArranged(const ScheduleData& data, const IterVar& loop) {
  return std::any_of(data.late.begin(), data.late.end(), [&](const LateStep& step) {
    return (step.kind == Late::kPipeline || step.kind == Late::kPartition) && step.loop == loop;
  });
}

void ApplyLate(const ScheduleData& data, StageNames* names, inner::Schedule* schedule) {
  MoveInits(data, schedule);
  std::vector<LateStep> steps = data.late;
  auto less = [](const LateStep& a, const LateStep& b) { return a.kind < b.kind; };
  std::stable_sort(steps.begin(), steps.end(), less);
  LateSteps late(data, names, schedule);
  auto step = steps.begin();
  for (; step != steps.end() && step->kind < Late::kDoubleBuffer; ++step) late.Run(*step);
  auto end =
      std::find_if(step, steps.end(), [](const LateStep& s) { return !ArrangesTime(s.kind); });
  for (auto other = end; step != end && other != steps.end(); ++other) {
    if (other->kind == Late::kTensorize) late.Start(*other);
  }
  for (; step != end && step->kind == Late::kDoubleBuffer; ++step) late.Run(*step);
  InnerFirst(step, end, &late);
  for (; step != end; ++step) late.Run(*step);
  for (const auto& stage : data.stages) {
    for (const LoopNote& note : stage->notes) {
      if (note.kind == LoopNote::Kind::kUnroll && IsArranged(data, note.loop))
        late.Unroll(*stage, note.loop);
    }
  }
  for (; step != steps.end(); ++step) late.Run(*step);
}

}  // namespace tenon::inline v0

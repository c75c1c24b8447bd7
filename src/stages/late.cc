// The end of carrying a schedule out: where reductions start, and the primitives that need all
// loops in their places, in the order of Phase.
//
// What arranges iterations in time comes before what looks at memory and machine operations: a
// pipeline gives buffers versions, which have other strides, and parts of a loop have copies of
// what is inside. So a stage that is tensorized has its copies tensorized one by one. Asked for in
// any order, after a cache of A that is computed at ko,
//
//   storage_align("A.shared", 0, 8, 4)
//   double_buffer("A.shared")
//
// become, behind the reduction's initial value,
//
//   C.init = decompose_reduction("C", "C.k.0")
//   C.k.0.pipe = double_buffer("A.shared")
//   storage_align("A.shared", 1, 8, 4)
//
// where the axis is 1, not 0, since the buffer has one dim more: its version.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "intrin/tile_intrinsic.h"
#include "ir/visit.h"
#include "loop/thread_reduction.h"
#include "stages/carry_out.h"
#include "stages/nests.h"
#include "stages/tensorize.h"

namespace tenon::stages {

namespace {

using Names = std::vector<std::string>;

bool Has(const State& s, StageId stage, Phase phase, const std::string& primitive) {
  return std::any_of(s.waiting.begin(), s.waiting.end(), [&](const Waiting& step) {
    return step.stage == stage && step.phase == phase && step.primitive == primitive;
  });
}

bool HasInit(const Schedule& schedule, const std::string& block) {
  const Block* found = FindBlock(schedule.func(), block);
  return found && found->init;
}

const std::string& TextOf(const AttrValue& value) { return std::get<std::string>(value); }

/// Carries out one late step after the other. Carried::names has the name that each loop of a stage
/// had in its place, and Carried::copies what became of it, so that a step finds its loops whatever
/// came before it.
class LateSteps {
 public:
  explicit LateSteps(Carried* c) : c_(*c), s_(c->schedule) {}

  // A reduction starts outside its reduce loops, so that they run without a test. Where that is not
  // legal, or threads make parts of it, which each have a start, it stays inside; where it was said
  // where, or follows from an intrinsic, that comes later.
  void MoveInits() {
    for (StageId id : c_.s.order) {
      const std::string& block = c_.s[id].block;
      if (block.empty() || !HasInit(s_, block)) continue;
      if (Has(c_.s, id, Phase::kStart, "decompose_reduction") ||
          Has(c_.s, id, Phase::kOperations, "tensorize") ||
          Has(c_.s, id, Phase::kBlocks, "blockize")) {
        continue;
      }
      const Names loops = s_.GetReduceLoops(block);
      if (loops.empty() || IsSharedOut(block)) continue;
      Schedule next = s_;
      next.DecomposeReduction(block, loops[0]);
      if (next.ok()) s_ = std::move(next);
    }
  }

  Status Run(const Waiting& step) {
    TN_RETURN_IF_ERROR(RunOne(step));
    if (s_.ok()) return Ok();
    Diagnostics errors = refused_;
    const Diagnostics own = s_.status().errors();
    errors.insert(errors.end(), own.begin(), own.end());
    return errors;
  }

  // A tensorized stage whose operation is a part of its reduction starts outside, before iterations
  // are arranged. What stands in the way of the operation already is told where arranging fails.
  Status Start(const Waiting& step) {
    TN_ASSIGN_OR_RETURN(const std::string loop, LoopOf(step));
    const std::string& block = c_.s[*step.stage].block;
    Schedule tried = Tensorized(loop, TextOf(step.args[0]));
    if (HasInit(s_, block) && !tried.ok()) {
      s_.DecomposeReduction(block, StartOf(*step.stage, loop));
      TN_RETURN_IF_ERROR(s_.status());
      started_.insert(&step);
      tried = Tensorized(loop, TextOf(step.args[0]));
    }
    if (tried.ok()) return Ok();
    const Diagnostics errors = tried.status().errors();
    refused_.insert(refused_.end(), errors.begin(), errors.end());
    return Ok();
  }

  // How many loops there are around the step's.
  Expected<size_t> DepthOf(const Waiting& step) {
    TN_ASSIGN_OR_RETURN(const std::string loop, LoopOf(step));
    const Names loops = s_.GetLoops(c_.s[*step.stage].block);
    TN_RETURN_IF_ERROR(s_.status());
    return static_cast<size_t>(std::find(loops.begin(), loops.end(), loop) - loops.begin());
  }

  Status Unroll(LoopId loop) {
    const auto name = c_.names.find(loop);
    if (name == c_.names.end() || name->second.empty()) return Ok();
    for (const std::string& part : c_.CopiesOf(name->second)) s_.Unroll(part);
    return s_.status();
  }

 private:
  bool IsSharedOut(const std::string& block) const {
    const std::vector<Nest> nests = NestsOf(s_.func());
    return std::any_of(nests.begin(), nests.end(), [&](const Nest& nest) {
      return nest.block->name == block && ReducesOverThreads(*nest.block, nest.loops);
    });
  }

  Status RunOne(const Waiting& step) {
    if (!step.stage) return Apply(step, {});
    const StageInfo& stage = c_.s[*step.stage];
    if (step.primitive == "transform_layout") return Apply(step, {stage.tensors[0]});
    if (step.primitive == "storage_align") return StorageAlign(step);
    if (step.primitive == "prefetch") return Prefetch(step);
    if (step.primitive == "tensorize") return Tensorize(step);
    if (!step.loop) return Apply(step, {stage.block});
    TN_ASSIGN_OR_RETURN(const std::string loop, LoopOf(step));
    if (step.primitive == "decompose_reduction") return Apply(step, {stage.block, loop});
    return Apply(step, {loop});
  }

  // The engine's primitive of these arguments and the step's own.
  Status Apply(const Waiting& step, std::vector<AttrValue> args) {
    args.insert(args.end(), step.args.begin(), step.args.end());
    Call(step.primitive, std::move(args));
    return Ok();
  }

  void Call(const std::string& primitive, std::vector<AttrValue> args) {
    Renames renamed;
    ApplyByName(&s_, primitive, std::move(args), &renamed);
    if (!s_.ok()) return;
    for (const auto& [name, copy] : renamed) {
      // What never runs in a part of a loop has no copy there.
      if (s_.HasLoop(copy) || s_.HasBlock(copy)) c_.copies[name].push_back(copy);
    }
  }

  // The loop, or, where it has one iteration and was not made, the next one inside; of several
  // copies, all.
  Expected<Names> LoopsOf(const Waiting& step) const {
    const StageInfo& stage = c_.s[*step.stage];
    const char* primitive = step.primitive.c_str();
    auto leaf = std::find(stage.leaves.begin(), stage.leaves.end(), *step.loop);
    if (c_.placed.count(*step.stage) == 0 || leaf == stage.leaves.end()) {
      return Wrong(primitive, stage,
                   fmt::format("'{}' is no loop of it any more", c_.s[*step.loop].name));
    }
    for (; leaf != stage.leaves.end(); ++leaf) {
      const std::string& name = c_.names.at(*leaf);
      if (!name.empty()) return c_.CopiesOf(name);
    }
    return Wrong(
        primitive, stage,
        fmt::format("loop '{}' has one iteration and is not there", c_.s[*step.loop].name));
  }

  Expected<std::string> LoopOf(const Waiting& step) const {
    TN_ASSIGN_OR_RETURN(const Names loops, LoopsOf(step));
    if (loops.size() == 1) return loops[0];
    return Wrong(step.primitive.c_str(), c_.s[*step.stage],
                 fmt::format("loop '{}' is in {} parts, which partition made of it",
                             c_.s[*step.loop].name, loops.size()));
  }

  // A hint stands before each copy of its reader.
  Status Prefetch(const Waiting& step) {
    TN_ASSIGN_OR_RETURN(const std::string loop, LoopOf(step));
    for (const std::string& block : c_.CopiesOf(c_.s[*step.stage].block)) {
      Call(step.primitive, {block, step.args[0], loop, step.args[1]});
    }
    return Ok();
  }

  // A buffer that has versions has one more dim, its first.
  Status StorageAlign(const Waiting& step) {
    const std::string& name = c_.s[*step.stage].tensors[0];
    const auto rank_in = [&](const Func& func) {
      size_t rank = 0;
      PreOrder(func->body, [&](const NodeRef& n) {
        const auto* alloc = As<Alloc>(n);
        if (alloc && alloc->buffer->name == name) rank = alloc->buffer->shape.size();
        return !IsA<ExprNode>(n);
      });
      return static_cast<int64_t>(rank);
    };
    const int64_t versions = rank_in(s_.func()) - rank_in(c_.s.base.func());
    std::vector<AttrValue> args = step.args;
    if (versions != 0) {
      const auto* axis = std::get_if<int64_t>(&args[0]);
      if (!axis) return Wrong("storage_align", c_.s[*step.stage], "expected the number of a dim");
      args[0] = *axis + versions;
    }
    args.insert(args.begin(), name);
    Call("storage_align", std::move(args));
    return Ok();
  }

  Schedule Tensorized(const std::string& loop, const std::string& intrinsic) const {
    Schedule out = s_;
    stages::Tensorize(loop, intrinsic, c_.s.intrinsics, &out);
    return out;
  }

  // The whole reduction where it lies in the tile, else a part of it that starts outside.
  Status Tensorize(const Waiting& step) {
    const std::string &block = c_.s[*step.stage].block, &intrinsic = TextOf(step.args[0]);
    bool starts = started_.count(&step) != 0;
    if (!starts && HasInit(s_, block)) {
      TN_ASSIGN_OR_RETURN(const std::string loop, LoopOf(step));
      starts = !Tensorized(loop, intrinsic).ok();
      if (starts) s_.DecomposeReduction(block, StartOf(*step.stage, loop));
    }
    TN_RETURN_IF_ERROR(s_.status());
    TN_ASSIGN_OR_RETURN(const Names loops, LoopsOf(step));
    for (const std::string& loop : loops) {
      stages::Tensorize(loop, intrinsic, c_.s.intrinsics, &s_);
      TN_RETURN_IF_ERROR(s_.status());
    }
    const TileIntrinsic* row = BuiltinTileIntrinsics().Find(intrinsic);
    if (starts && row && !row->start.empty()) TensorizeStart(block + ".init", row->start);
    return Ok();
  }

  // The initial value, by the intrinsic that goes with the one of the sums.
  void TensorizeStart(const std::string& block, const std::string& intrinsic) {
    const Names loops = s_.GetLoops(block);
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
      Schedule next = s_;
      next.Tensorize(*loop, intrinsic);
      if (!next.ok()) continue;
      s_ = std::move(next);
      return;
    }
  }

  // The outermost loop around the tile that the reduction runs over, of one iteration too, or the
  // tile's own outermost loop.
  std::string StartOf(StageId id, const std::string& tile) {
    const StageInfo& stage = c_.s[id];
    Names reduce = s_.GetReduceLoops(stage.block);
    for (LoopId leaf : stage.leaves) {
      if (!c_.s[leaf].reduces) continue;
      const Names own = c_.CopiesOf(c_.names.at(leaf));
      reduce.insert(reduce.end(), own.begin(), own.end());
    }
    for (const std::string& loop : s_.GetLoops(stage.block)) {
      const bool reduces = std::find(reduce.begin(), reduce.end(), loop) != reduce.end();
      if (reduces || loop == tile) return loop;
    }
    return tile;
  }

  Carried& c_;
  Schedule& s_;
  std::set<const Waiting*> started_;
  Diagnostics refused_;
};

using Steps = std::vector<const Waiting*>;

// Pipelines, and partitions inside them, come to inner loops first; other partitions last.
Status InnerFirst(Steps::iterator begin, Steps::iterator end, LateSteps* late) {
  std::map<LoopId, size_t> depths;
  size_t outermost = std::numeric_limits<size_t>::max();  // of the pipelined loops
  auto depth = [&](const Waiting* step) { return depths.at(*step->loop); };
  for (auto step = begin; step != end; ++step) {
    TN_ASSIGN_OR_RETURN(depths[*(*step)->loop], late->DepthOf(**step));
    if ((*step)->phase == Phase::kPipelines) outermost = std::min(outermost, depth(*step));
  }
  auto is_early = [&](const Waiting* step) {
    return step->phase == Phase::kPipelines ||
           (step->phase == Phase::kParts && depth(step) > outermost);
  };
  auto others = std::stable_partition(begin, end, is_early);
  std::stable_sort(begin, others,
                   [&](const Waiting* a, const Waiting* b) { return depth(a) > depth(b); });
  return Ok();
}

}  // namespace

std::vector<std::string> Carried::CopiesOf(const std::string& name) const {
  Names out, todo = {name};
  while (!todo.empty()) {
    const std::string next = std::move(todo.back());
    todo.pop_back();
    auto it = copies.find(next);
    if (it == copies.end()) {
      out.push_back(next);
    } else {
      todo.insert(todo.end(), it->second.rbegin(), it->second.rend());
    }
  }
  return out;
}

bool IsArranged(const State& s, LoopId loop) {
  return std::any_of(s.waiting.begin(), s.waiting.end(), [&](const Waiting& step) {
    return (step.phase == Phase::kPipelines || step.phase == Phase::kParts) && step.loop == loop;
  });
}

Status CarryOutLate(Carried* c) {
  LateSteps late(c);
  late.MoveInits();
  Steps steps;
  for (const Waiting& step : c->s.waiting) {
    if (step.phase >= Phase::kLayout) steps.push_back(&step);
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Waiting* a, const Waiting* b) { return a->phase < b->phase; });
  auto first = [&](Phase phase) {
    return std::find_if(steps.begin(), steps.end(),
                        [&](const Waiting* step) { return step->phase >= phase; });
  };
  auto run = [&](Phase from, Phase to) -> Status {
    for (auto step = first(from); step != first(to); ++step) TN_RETURN_IF_ERROR(late.Run(**step));
    return Ok();
  };
  TN_RETURN_IF_ERROR(run(Phase::kLayout, Phase::kHalves));
  const auto arranging = first(Phase::kHalves), arranged = first(Phase::kStorage);
  for (auto step = arranged; arranging != arranged && step != steps.end(); ++step) {
    if ((*step)->primitive == "tensorize") TN_RETURN_IF_ERROR(late.Start(**step));
  }
  TN_RETURN_IF_ERROR(run(Phase::kHalves, Phase::kPipelines));
  const auto pipelines = first(Phase::kPipelines);
  TN_RETURN_IF_ERROR(InnerFirst(pipelines, arranged, &late));
  for (auto step = pipelines; step != arranged; ++step) TN_RETURN_IF_ERROR(late.Run(**step));
  for (const Waiting& step : c->s.waiting) {
    if (step.primitive == "unroll" && IsArranged(c->s, *step.loop)) {
      TN_RETURN_IF_ERROR(late.Unroll(*step.loop));
    }
  }
  for (auto step = arranged; step != steps.end(); ++step) TN_RETURN_IF_ERROR(late.Run(**step));
  return Ok();
}

}  // namespace tenon::stages

// Carrying a schedule out: the noted primitives, applied to the loops that there are.
#include <algorithm>

#include "api/schedule_data.h"
#include "loop/promises.h"

namespace tenon::inline v0 {

namespace {

using te::IterVar;

// The loop that a stage hangs on: where its own has one iteration and is not there, the next one
// outside; "" where there is none.
std::string LoopToHangOn(const StageData& stage, const StageNames& names) {
  const StageData* at = stage.at_stage;
  IterVar loop = stage.at_loop;
  auto leaf = std::find(at->leaves.begin(), at->leaves.end(), loop);
  if (leaf == at->leaves.end()) {
    ThrowValue(fmt::format("compute_at of '{}': '{}' is no loop of '{}' any more", stage.op.name(),
                           loop.name(), at->op.name()));
  }
  const LoopNames& theirs = names.at(at);
  for (;; --leaf) {
    const std::string& name = theirs.at(leaf->node().get());
    if (!name.empty()) return name;
    if (leaf == at->leaves.begin()) break;
  }
  return at->attach == Attach::kAt || at->attach == Attach::kReverseAt ? LoopToHangOn(*at, names)
                                                                       : "";
}

// An axis of a size of its own takes loops of that size. Sizes that callers give are compared where
// both are known; "" is a loop of one iteration.
void CheckExtent(const LoopNote& note, const std::string& loop, const inner::Schedule& s) {
  if (!note.extent) return;
  inner::Expr own = IndexConst(1);
  PreOrder(s.func()->body, [&](const NodeRef& n) {
    const auto* f = As<For>(n);
    if (f && !loop.empty() && f->var->name == loop) own = f->extent;
    return !IsA<ExprNode>(n);
  });
  const inner::Expr wanted = Simplify(note.extent);
  own = Simplify(own);
  const bool known = AsInt(own) || AsInt(wanted);
  if (!known || ToString(NodeRef(own)) == ToString(NodeRef(wanted))) return;
  ThrowValue(fmt::format("bind of '{}': the axis {} has {} threads, but the loop has {} iterations",
                         note.loop.name(), Name(note.axis), ToString(NodeRef(wanted)),
                         ToString(NodeRef(own))));
}

void ApplyNote(const LoopNote& note, const std::string& loop, inner::Schedule* s) {
  if (note.kind == LoopNote::Kind::kBind) CheckExtent(note, loop, *s);
  if (loop.empty()) return;
  switch (note.kind) {
    case LoopNote::Kind::kParallel: return s->Parallel(loop);
    case LoopNote::Kind::kVectorize: return s->Vectorize(loop);
    case LoopNote::Kind::kUnroll: return s->Unroll(loop);
    case LoopNote::Kind::kBind: return s->Bind(loop, note.axis);
    case LoopNote::Kind::kPragma: return s->Annotate(loop, note.key, note.value);
  }
}

// Threads are bound where the stage is placed, and what is promised of their loops is known by
// then.
bool IsEarly(const LoopNote& note) {
  return note.kind == LoopNote::Kind::kBind ||
         (note.kind == LoopNote::Kind::kPragma && note.key == kIndependentAttr);
}

// Puts a stage where it is asked to be, and its loops into the form that is asked for.
void Place(const StageData& stage, StageNames* names, inner::Schedule* s) {
  const bool reverse = stage.attach == Attach::kReverseAt;
  std::string at;
  if (stage.at_stage && stage.attach != Attach::kRoot) {
    if (!names->count(stage.at_stage)) {
      ThrowValue(fmt::format("{} of '{}': '{}' is {}, or inline",
                             reverse ? "reverse_compute_at" : "compute_at", stage.op.name(),
                             stage.at_stage->op.name(),
                             reverse ? "placed after it" : "computed earlier"));
    }
    at = LoopToHangOn(stage, *names);
    if (!at.empty() && reverse) s->ReverseComputeAt(stage.block, at);
    const bool is_there = stage.scan != nullptr && stage.scan == stage.at_stage;
    if (!at.empty() && !reverse && !is_there) s->ComputeAt(stage.block, at);
    if (!at.empty() && stage.rolling) s->RollingBuffer(stage.block, at);
    RequireOk(*s);
  }
  if (stage.rolling && at.empty()) {
    ThrowValue(
        fmt::format("rolling_buffer of '{}': it is not inside a loop of its consumer; "
                    "compute_at puts it there",
                    stage.op.name()));
  }
  LoopNames& own = (*names)[&stage];
  own = RootNames(stage, *s, at);
  for (const LoopStep& step : stage.steps) ApplyStep(step, s, &own);
  // Producers that come under these loops see which of them are threads.
  for (const LoopNote& note : stage.notes) {
    if (IsEarly(note)) ApplyNote(note, own.at(note.loop.node().get()), s);
  }
  RequireOk(*s);
}

}  // namespace

const Block* FindBlock(const Func& func, const std::string& name) {
  const Block* found = nullptr;
  PreOrder(func->body, [&](const NodeRef& n) {
    const auto* block = As<Block>(n);
    if (block && block->name == name) found = block;
    return !IsA<ExprNode>(n);
  });
  return found;
}

LoopNames RootNames(const StageData& stage, const inner::Schedule& schedule,
                    const std::string& at) {
  LoopNames names;
  inner::Schedule look = schedule;
  std::vector<std::string> loops = look.GetLoops(stage.block);
  RequireOk(look);
  auto first = std::find(loops.begin(), loops.end(), at);
  loops.erase(loops.begin(), first == loops.end() ? loops.begin() : first + 1);
  const Block* block = FindBlock(schedule.func(), stage.block);
  for (const auto& [loop, index] : stage.roots) {
    std::string& name = names[loop.node().get()];
    PreOrder(block->iters[index]->binding, [&](const NodeRef& n) {
      const auto* var = As<VarNode>(n);
      if (var && std::find(loops.begin(), loops.end(), var->name) != loops.end()) name = var->name;
      return true;
    });
  }
  return names;
}

void ApplyStep(const LoopStep& step, inner::Schedule* schedule, LoopNames* names) {
  std::vector<std::string> from;
  for (const IterVar& l : step.from) {
    const std::string& name = (*names)[l.node().get()];
    if (!name.empty()) from.push_back(name);
  }
  switch (step.kind) {
    case LoopStep::Kind::kSplit: {
      // A loop that is not there has one iteration, and so have its parts.
      std::vector<std::string> parts(step.to.size());
      if (!from.empty()) {
        parts = inner::Steps::ApplyByName(*schedule, "split", {from[0], step.factors});
        parts.resize(step.to.size());
      }
      for (size_t i = 0; i < parts.size(); ++i) (*names)[step.to[i].node().get()] = parts[i];
      return;
    }
    case LoopStep::Kind::kFuse: {
      std::string fused;
      if (!from.empty()) fused = from.size() == 1 ? from[0] : schedule->Fuse(from);
      (*names)[step.to[0].node().get()] = fused;
      return;
    }
    case LoopStep::Kind::kReorder:
      if (from.size() > 1) schedule->Reorder(from);
      return;
  }
}

inner::Schedule CarryOut(const ScheduleData& data) {
  inner::Schedule s = data.base;
  for (const auto& stage : data.stages) {
    for (int i = 0; stage->scope && i < stage->op.num_outputs(); ++i) {
      s.SetScope(data.BufferOf(stage->op.output(i))->name, *stage->scope);
    }
    if (stage->attach == Attach::kInline) s.ComputeInline(stage->block);
  }
  RequireOk(s);
  StageNames names;
  for (auto it = data.stages.rbegin(); it != data.stages.rend(); ++it) {
    const StageData& stage = **it;
    if (stage.block.empty() || stage.attach == Attach::kInline ||
        stage.attach == Attach::kReverseAt) {
      continue;
    }
    Place(stage, &names, &s);
  }
  for (const auto& stage : data.stages) {
    if (stage->attach == Attach::kReverseAt) Place(*stage, &names, &s);
  }
  for (const auto& stage : data.stages) {
    for (const LoopNote& note : stage->notes) {
      auto own = names.find(stage.get());
      if (own == names.end() || IsEarly(note)) continue;
      if (note.kind == LoopNote::Kind::kUnroll && IsArranged(data, note.loop)) continue;
      ApplyNote(note, own->second.at(note.loop.node().get()), &s);
    }
  }
  RequireOk(s);
  ApplyLate(data, &names, &s);
  return s;
}

}  // namespace tenon::inline v0

// What a schedule of stages holds until it is carried out.
//
// Loops and stages are told apart by what they are (LoopId, StageId), whatever they are called:
// ids stay when a step gives a stage other loops, and LoopNames says during carrying out which loop
// of the engine each is at the moment.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedule/apply.h"
#include "schedule/schedule.h"
#include "stages/tensorize.h"

namespace tenon::stages {

enum class StageId : size_t {};
enum class LoopId : size_t {};

inline constexpr StageId kNoStage{~size_t{0}};

/// A loop that a stage has, or had before its loops were split and fused: no other of these has its
/// name. One that a stage had before it was given other loops is of no stage.
struct LoopInfo {
  std::string name;
  StageId stage{};
  bool reduces = false;
};

/// When a step is carried out. Those from kLayout on are asked of loops in their places, one kind
/// after the other.
enum class Phase : uint8_t {
  kNow,         // it makes stages, or gives one other loops: at once, on loops as they were made
  kPlace,       // where stages are computed, consumers first
  kLoops,       // their loops, in the order of the calls
  kMark,        // how loops run
  kLayout,      // how tensors are stored
  kStart,       // where reductions start
  kBlocks,      // nests become blocks
  kHalves,      // what arranges iterations in time: double buffers,
  kPipelines,   //   pipelines, inner loops first, with the parts of loops in them,
  kPrefetches,  //   prefetches
  kParts,       //   and parts of other loops
  kStorage,     // memory is padded, of which there are as many versions now as pipelines need
  kOperations,  // nests become operations of the machine,
  kCalls,       //   calls of functions
  kVersions     //   and versions for some sizes
};

/// A change of a stage's loops: `from` become `to`.
struct LoopStep {
  enum class Kind : uint8_t { kSplit, kFuse, kReorder } kind = Kind::kSplit;
  std::vector<LoopId> from, to;
  AttrValue factors;  // of a split, outermost first; -1: derived
};

/// A step that waits: `args` are what the engine's primitive of this name takes besides the loop,
/// or the block, that the ids stand for.
struct Waiting {
  std::string primitive;
  Phase phase = Phase::kMark;
  std::optional<StageId> stage;
  std::optional<LoopId> loop;
  std::vector<AttrValue> args;
};

enum class Attach : uint8_t { kRoot, kInline, kAt, kReverseAt };

/// A loop that a stage was made with, and which of its block's variables it is bound to.
struct Root {
  LoopId loop{};
  size_t iter = 0;
};

struct StageInfo {
  std::string name;                  // unique; mostly its tensor's
  std::string block;                 // in State::base; "": an input, or one that is no more
  std::vector<std::string> tensors;  // the buffers that it writes, or is
  std::vector<Root> roots;           // in the order of the block's variables
  std::vector<LoopId> leaves;        // the loops there are now, outermost first
  std::vector<LoopStep> steps;
  std::optional<Scope> scope;  // to be set; none: as made
  Attach attach = Attach::kRoot;
  bool rolling = false;
  std::optional<StageId> at_stage;
  LoopId at_loop{};
  std::optional<StageId> rows;  // in whose loop, over the rows of a scan, it stands from the start
};

/// What a step made.
struct Made {
  std::vector<LoopId> loops;
  std::vector<StageId> stages;
};

struct State {
  Schedule base;  // with all loops as they were made
  std::vector<StageInfo> stages;
  std::vector<StageId> order;  // producers first
  std::vector<LoopInfo> loops;
  std::vector<Waiting> waiting;  // as asked for
  Intrinsics intrinsics;

  StageInfo& operator[](StageId id) { return stages[static_cast<size_t>(id)]; }
  const StageInfo& operator[](StageId id) const { return stages[static_cast<size_t>(id)]; }
  LoopInfo& operator[](LoopId id) { return loops[static_cast<size_t>(id)]; }
  const LoopInfo& operator[](LoopId id) const { return loops[static_cast<size_t>(id)]; }

  std::optional<StageId> FindStage(const std::string& name) const;
  /// The stage of a block, or of a buffer that is an input.
  std::optional<StageId> StageOf(const std::string& block) const;
  std::optional<LoopId> FindLoop(StageId stage, const std::string& name) const;
  /// The names of loops, for messages.
  std::string Names(const std::vector<LoopId>& of) const;
  std::vector<std::string> LeafNames(StageId stage) const;

  /// A loop, or stage, by this name or one near it; a stage stands before `before` in the order.
  LoopId AddLoop(StageId stage, const std::string& name, bool reduces);
  StageId AddStage(const std::string& name, std::optional<StageId> before);
  std::optional<StageId> After(StageId stage) const;
  /// The stage of a loop over rows, by the loop's name in the function.
  std::optional<StageId> RowsOf(const std::string& loop) const;
  /// The stage computes this block now, whose variables have loops of these names; nothing was done
  /// to them. Where a name is "" or missing, it is ax and the variable's number.
  void SetBlock(StageId stage, const std::string& block, const std::vector<std::string>& names);
};

/// The loop of the engine that each loop is at the moment; "" for one of one iteration that was not
/// made.
using LoopNames = std::map<LoopId, std::string>;

/// "compute_at of 'C': …"
Diagnostic Wrong(const char* primitive, const StageInfo& stage, const std::string& reason);
/// The block of this name, or null.
const Block* FindBlock(const Func& func, const std::string& name);
/// The engine's names of a stage's first loops: those under `at` ("" for all) in the bindings of
/// its block.
Expected<LoopNames> RootNames(const StageInfo& stage, const Schedule& schedule,
                              const std::string& at);
/// Applies one step to the loops of a stage.
void ApplyLoopStep(const LoopStep& step, Schedule* schedule, LoopNames* names);

}  // namespace tenon::stages

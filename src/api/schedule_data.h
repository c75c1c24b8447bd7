// What a schedule holds until it is lowered.
//
// The inner schedule applies every primitive at once, and moving a block renames its loops; people
// write the primitives of several stages in any order. So loop primitives are noted per stage and
// carried out by Lower, consumers first: a stage is put inside its consumer's loop when that loop
// is there, and then gets its own loops changed. What makes new stages (caches, partial
// reductions) is done at once, on `base`, in which all other loops are as they were made.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/bridge.h"

namespace tenon::inline v0 {

/// A change of a stage's loops: `from` become `to`.
struct LoopStep {
  enum class Kind : uint8_t { kSplit, kFuse, kReorder } kind = Kind::kSplit;
  std::vector<te::IterVar> from, to;
  AttrValue factors;  // of a split, outermost first; -1: derived
};

/// Pragmas that carrying out reads: the loops from this one inwards are unrolled while that comes
/// to at most so many steps; and false where they are left to the compiler behind.
inline constexpr char kAutoUnrollPragma[] = "auto_unroll_max_step";
inline constexpr char kUnrollExplicitPragma[] = "unroll_explicit";

/// A mark on a loop.
struct LoopNote {
  enum class Kind : uint8_t {
    kParallel,
    kVectorize,
    kUnroll,
    kBind,
    kPragma
  } kind = Kind::kParallel;
  te::IterVar loop;
  std::string key;  // of a pragma
  AttrValue value;
  tenon::ThreadAxis axis = tenon::ThreadAxis::kNone;  // of a bind
  inner::Expr extent = nullptr;  // that the axis of a bind has; null: that of the loop
};

/// What is done last, once all loops are there: in the order of the kinds, then as called.
/// Pipelines, with the partitions inside of them, come to inner loops first.
struct LateStep {
  enum class Kind : uint8_t {
    kLayout,
    kDecompose,
    kBlockize,
    kDoubleBuffer,
    kPipeline,
    kPrefetch,
    kPartition,
    kStorageAlign,
    kTensorize,
    kOutline,
    kSpecialize
  } kind = Kind::kLayout;
  const struct StageData* stage = nullptr;
  te::IterVar loop;
  std::string text;                // an intrinsic, a layout, a buffer, a name, a condition
  std::vector<AttrValue> numbers;  // points; stages and order; axis, factor and offset; distance
};

enum class Attach : uint8_t { kRoot, kInline, kAt, kReverseAt };

struct StageData {
  te::Operation op;
  std::string block;                  // in ScheduleData::base; "" for an input
  std::optional<tenon::Scope> scope;  // to be set; none: as made
  /// The loops that the block was made with, by the number of the block's variable.
  std::vector<std::pair<te::IterVar, size_t>> roots;
  std::vector<te::IterVar> leaves;
  std::vector<LoopStep> steps;
  std::vector<LoopNote> notes;
  Attach attach = Attach::kRoot;
  bool rolling = false;
  const StageData* at_stage = nullptr;
  const StageData* scan = nullptr;  // in whose loop over the rows it stands from the start
  te::IterVar at_loop;

  /// Whether the operation was made with this loop.
  bool Has(const te::IterVar& loop) const {
    for (const auto& [root, index] : roots) {
      if (root == loop) return true;
    }
    return false;
  }
};

struct ScheduleData {
  explicit ScheduleData(inner::Schedule schedule) : base(std::move(schedule)) {}

  inner::Schedule base;
  std::vector<std::unique_ptr<StageData>> stages;  // producers first
  /// Stages by operation; one that a primitive replaced is found by its old operation too.
  std::map<const te::OperationData*, StageData*> by_op;
  std::vector<LateStep> late;
  std::vector<te::Tensor> outputs;
  std::map<std::string, int64_t> wanted;  // decisions that were given
  /// A tensor's buffer in `base`, whose names are unique.
  std::map<const BufferNode*, Buffer> buffers;

  StageData* Find(const te::Operation& op) const;
  Buffer BufferOf(const te::Tensor& tensor) const;
};

/// Names that the inner schedule gave to the loops of each stage; "" for a loop of one iteration
/// that was not made.
using LoopNames = std::map<const te::IterVarData*, std::string>;

using StageNames = std::map<const StageData*, LoopNames>;

/// Loops of schedules, and stages of operations.
te::IterVar Derived(const std::string& name, te::LoopKind kind);
te::IterVar CopyOf(const te::IterVar& axis);
size_t LeafOf(const StageData& stage, const te::IterVar& loop, const char* primitive);
te::LoopKind KindOf(const std::vector<te::IterVar>& loops);
StageData* AddStage(ScheduleData* data, const te::Operation& op, const StageData* before);
/// The loops that the operation has now, and nothing done to them.
void SetRoots(StageData* stage);

/// Whether the loop stays as it is until its iterations have been arranged in time, which marks on
/// it would stand in the way of.
bool IsArranged(const ScheduleData& data, const te::IterVar& loop);
/// Initial values and LateSteps, once every stage has its loops; and what is to be unrolled of
/// loops that are arranged.
void ApplyLate(const ScheduleData& data, StageNames* names, inner::Schedule* schedule);

/// Throws where an operation is certain to read outside a tensor.
void CheckReads(const std::vector<te::Operation>& order);
/// The function with calls in the places of extern operations, and the functions that they call.
inner::Module WithExterns(const Func& func, const std::vector<te::Operation>& order,
                          const std::map<const BufferNode*, Buffer>& buffers);

/// Applies one step to the loops of a stage.
void ApplyStep(const LoopStep& step, inner::Schedule* schedule, LoopNames* names);
/// The names of the stage's first loops: those under `at` ("" for all) in the bindings of its
/// block.
LoopNames RootNames(const StageData& stage, const inner::Schedule& schedule, const std::string& at);
/// The block of this name, or null.
const Block* FindBlock(const Func& func, const std::string& name);
/// Throws the inner schedule's diagnostics.
void RequireOk(const inner::Schedule& schedule);
/// The schedule carried out.
inner::Schedule CarryOut(const ScheduleData& data);

}  // namespace tenon::inline v0

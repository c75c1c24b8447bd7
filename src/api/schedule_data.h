// What a schedule holds: the schedule of stages (src/stages), and the handles by which people speak
// of them.
//
// Handles are told apart by what they are. An operation has a stage; a loop that a person holds is
// one of the stage's, which gets others when a primitive gives it another block; a tensor of te is
// a buffer of the function. Only steps that are written down, and messages, have names.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/bridge.h"

namespace tenon::inline v0 {

struct StageData {
  te::Operation op;
  stages::StageId id{};
  std::map<const te::IterVarData*, stages::LoopId> loops;
};

struct ScheduleData {
  explicit ScheduleData(stages::StageSchedule s) : schedule(std::move(s)) {}

  stages::StageSchedule schedule;
  std::map<stages::StageId, std::unique_ptr<StageData>> held;
  /// Stages by operation; one that a primitive replaced is found by its old operation too.
  std::map<const te::OperationData*, StageData*> by_op;
  std::map<stages::LoopId, te::IterVar> loops;
  /// The name, in the function, of a tensor's buffer.
  std::unordered_map<const BufferNode*, std::string> tensors;
  std::vector<te::Tensor> outputs;
  std::map<std::string, int64_t> wanted;  // decisions that were given

  StageData* Find(const te::Operation& op) const;
  bool Knows(const te::Tensor& tensor) const {
    return tensors.count(te::Unwrap(tensor).buffer().get()) != 0;
  }
  /// The tensor's name in the function; throws where it is none of this schedule.
  const std::string& NameOf(const te::Tensor& tensor) const;
  const std::string& NameOf(const StageData& stage) const;
  /// The loop's name, of those that the stage has or had; throws where it is of something else.
  const std::string& NameOf(const StageData& stage, const te::IterVar& loop,
                            const char* primitive) const;
  std::vector<std::string> NamesOf(const StageData& stage, const std::vector<te::IterVar>& loops,
                                   const char* primitive) const;

  /// Applies one step; throws where it is refused. Loops that it makes get handles.
  stages::Made Run(const char* primitive, std::vector<AttrValue> args);
  /// The same for a loop of a stage.
  stages::Made Run(const char* primitive, const StageData& stage, const te::IterVar& loop,
                   std::vector<AttrValue> more = {});
  te::IterVar HandleOf(StageData* stage, stages::LoopId loop);
  std::vector<te::IterVar> HandlesOf(StageData* stage, const std::vector<stages::LoopId>& of);

  StageData* AddStage(const te::Operation& op, stages::StageId id);
  /// The loops that the stage is made with are these, by the number of the block's variable; others
  /// get new handles.
  void BindLoops(StageData* stage, const std::vector<te::IterVar>& vars);
  /// The stage's operation as its block is now: its tensors, and its loops.
  std::shared_ptr<te::OperationData> NewOperation(StageData* stage, const std::string& name,
                                                  std::vector<te::Expr> shape);
};

/// The function with calls in the places of extern operations, and the functions that they call.
inner::Module WithExterns(const inner::te::Program& program,
                          const std::vector<te::Operation>& order);

}  // namespace tenon::inline v0

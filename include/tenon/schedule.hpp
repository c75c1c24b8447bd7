// Schedules: how the tensors of te.hpp are computed. Every primitive keeps the values; one that
// would not, or that cannot be proved not to, is an error when the schedule is lowered.
//
//   Schedule s = CreateSchedule({c});
//   auto [outer, inner] = s[c].Split(c.op().axis()[0], 64);
//   s[c].Parallel(outer);
//   s[c].Vectorize(inner);
//
// A schedule is a description: primitives of one stage apply in the order in which they were
// called, those of different stages in any. Lower and Build (compiler.hpp) carry it out.
#ifndef TENON_SCHEDULE_HPP_
#define TENON_SCHEDULE_HPP_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tenon/ir.hpp"
#include "tenon/te.hpp"

namespace tenon {
inline namespace v0 {

struct ScheduleData;
struct StageData;

class Stage;
/// What a primitive of stage_primitives.def is given.
using StepArgument = std::variant<const te::IterVar*, const te::Tensor*, const Stage*, const Value*,
                                  const Values*, const std::string*>;
struct StepArguments {
  template <class... A>
  explicit StepArguments(const A&... of) : list{StepArgument(&of)...} {}
  std::vector<StepArgument> list;
};

/// How one operation is computed. Valid while its schedule lives. Most primitives are rows of
/// stage_primitives.def.
class TN_API Stage {
 public:
  Stage(ScheduleData* schedule, StageData* stage) : schedule_(schedule), stage_(stage) {}

  te::Operation op() const;
  /// The loops there are now, outermost first.
  std::vector<te::IterVar> leaf_iter_vars() const;

  // Wherever a number is asked for, "$name" is the value of the choice of that name
  // (Schedule::Decide), which the trace then refers to.

  /// {outer, inner}, inner of `factor` iterations. Iterations beyond the end are guarded.
  std::pair<te::IterVar, te::IterVar> Split(const te::IterVar& parent, const Value& factor);
  /// {outer, inner}, outer of `parts` iterations.
  std::pair<te::IterVar, te::IterVar> SplitParts(const te::IterVar& parent, const Value& parts);
  /// By several factors, outermost first; one may be -1, which is derived.
  std::vector<te::IterVar> SplitFactors(const te::IterVar& parent, const Values& factors);
  /// {x outer, y outer, x inner, y inner}, in this order.
  std::array<te::IterVar, 4> Tile(const te::IterVar& x, const te::IterVar& y, const Value& x_factor,
                                  const Value& y_factor);
  /// Neighbouring loops, outermost first, become one.
  te::IterVar Fuse(const std::vector<te::IterVar>& loops);
  /// Puts these loops into this order at the places that they occupy.
  void Reorder(const std::vector<te::IterVar>& order);

  /// A reduce loop may be bound to the threads of a block, which then combine their parts.
  void Bind(const te::IterVar& loop, const te::IterVar& thread_axis);
  /// An attribute of the loop, for passes and back ends; what nothing reads is refused. Of a loop
  /// that the copy engine of sm_90 fills tiles for, "producer_stages": how many steps ahead
  /// (docs/gpu-operations.md). "auto_unroll_max_step": the serial loops from this one inwards are
  /// unrolled, inner ones first, while their copies come to at most so many stores and calls;
  /// "unroll_explicit", false: they are left to the compiler of the source instead.
  void Pragma(const te::IterVar& loop, const std::string& key, const Value& value = "");

  /// Pads rows: the stride of dimension `axis` becomes `offset` modulo `factor`, in elements.
  void StorageAlign(const te::IterVar& axis, const Value& factor, const Value& offset);
  /// How the tensor is stored: "(i, j) -> (i / 4, j, i % 4)". Indices stay as they are.
  void TransformLayout(const std::string& layout);
  /// Runs over other coordinates: `map` takes op().axis() and op().reduce_axis() to new loops,
  /// which are the result. Comes before other primitives of the stage.
  std::vector<te::IterVar> TransformBlockLayout(const std::string& map);

  /// Where several threads have the same result, since they make a reduction together (Bind of one
  /// of its loops) or the stage is in no loop over their axis, those store it for which the
  /// condition over thread axes holds. Without it the first one does.
  void SetStorePredicate(const te::Expr& condition);

  /// This loop and those inside become a call of an intrinsic (IrSchedule::Tensorize; those for
  /// GPUs are in docs/gpu-operations.md). Where its description is of part of a reduction, the
  /// initial value is set outside.
  void Tensorize(const te::IterVar& loop, const std::string& intrinsic);

  // The others, whose kinds of arguments are these. DecomposeReduction, Blockize, DoubleBuffer,
  // SoftwarePipeline, Prefetch, Partition, StorageAlign, Tensorize and Outline are carried out when
  // all else is, one kind after the other in this order. Of loops that are pipelined inside each
  // other the inner ones come first, with their partitions. What stands in a loop that is in parts
  // is aligned and tensorized in each.
  using Loop = te::IterVar;
  using Tensor = te::Tensor;
  using Number = Value;
  using Numbers = Values;
  using Text = std::string;
#define TN_STAGE_WAITS(Method, name, phase, parameters, arguments, ...) \
  void Method parameters { Step(name, StepArguments arguments.list); }
#define TN_STAGE_DOES TN_STAGE_WAITS
#include "tenon/stage_primitives.def"

 private:
  friend class Schedule;
  void Step(const char* primitive, const std::vector<StepArgument>& arguments);

  ScheduleData* schedule_;
  StageData* stage_;
};

class TN_API Schedule {
 public:
  explicit Schedule(std::shared_ptr<ScheduleData> data) : data_(std::move(data)) {}

  Stage operator[](const te::Tensor& tensor) const { return (*this)[tensor.op()]; }
  Stage operator[](const te::Operation& op) const;
  std::vector<Stage> stages() const;
  std::vector<te::Tensor> outputs() const;

  /// A copy of `tensor`, in `scope`, that these operations read instead: one for all of them.
  te::Tensor CacheRead(const te::Tensor& tensor, const std::string& scope,
                       const std::vector<te::Operation>& readers);
  /// The tensor is computed into the result, in `scope`, from which its own stage then copies.
  /// Comes before other primitives of its stage.
  te::Tensor CacheWrite(const te::Tensor& tensor, const std::string& scope);
  /// The same for all outputs of an operation, which are computed and copied together.
  std::vector<te::Tensor> CacheWrite(const std::vector<te::Tensor>& tensors,
                                     const std::string& scope);
  /// Partial results along `axis`, a reduce loop of the tensor's stage: its stage then reduces
  /// them. They have one more dim, at `factor_axis` (negative: from the end). Of a reduction of
  /// tuples the result is the first component's, of whose op() the others are outputs; its combiner
  /// must be associative, and where it also depends on order, as one that gives ties to whoever
  /// came first, `axis` is the outermost of the reduce loops.
  te::Tensor RFactor(const te::Tensor& tensor, const te::IterVar& axis, int factor_axis = 0);

  /// Rounds the domain of the tensor's operation up to multiples, one for each of its axes and
  /// reduce axes: copies with zeros around them of what it reads, and a padded result that its own
  /// stage then copies out. The result: first the padded tensor, then the copies.
  std::vector<te::Tensor> PadEinsum(const te::Tensor& tensor, const Values& multiples);
  /// A version of everything for where the condition over sizes holds.
  void Specialize(const te::Expr& condition);

  /// Choices (IrSchedule); a loop to be tiled is one that the operation was made with. They are
  /// steps of the trace: what is split by "$name" is split by what another choice gives there.
  int64_t Decide(const std::string& name, const std::vector<int64_t>& domain, int64_t guess);
  int64_t SampleCategorical(const std::string& name, const std::vector<int64_t>& candidates,
                            const std::vector<double>& probabilities);
  std::vector<int64_t> SamplePerfectTile(const std::string& name, const te::IterVar& loop,
                                         int64_t parts, int64_t max_innermost);
  /// Values to take instead of guesses from now on; Lower and Build require that each is of a
  /// choice.
  void UseDecisions(const std::map<std::string, int64_t>& choices);

  /// What carrying it out applies to the function that CreateFunc makes of the same tensors: an
  /// IrSchedule of it, of other sizes or with other decisions, can replay it.
  Trace trace() const;

  /// The function of the tensors and what was asked of its stages, as `tenon-opt --stages` reads
  /// it.
  std::string str() const;

  const std::shared_ptr<ScheduleData>& data() const { return data_; }

 private:
  std::shared_ptr<ScheduleData> data_;
};

/// The schedule of everything that `outputs` need, each operation in loops of its own.
TN_API Schedule CreateSchedule(const std::vector<te::Tensor>& outputs);

}  // namespace v0
}  // namespace tenon

#endif  // TENON_SCHEDULE_HPP_

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
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tenon/te.hpp"

namespace tenon {
inline namespace v0 {

struct ScheduleData;
struct StageData;

/// How one operation is computed. Valid while its schedule lives.
class TN_API Stage {
 public:
  Stage(ScheduleData* schedule, StageData* stage) : schedule_(schedule), stage_(stage) {}

  te::Operation op() const;
  /// The loops there are now, outermost first.
  std::vector<te::IterVar> leaf_iter_vars() const;

  /// {outer, inner}, inner of `factor` iterations. Iterations beyond the end are guarded.
  std::pair<te::IterVar, te::IterVar> Split(const te::IterVar& parent, int64_t factor);
  /// {outer, inner}, outer of `parts` iterations.
  std::pair<te::IterVar, te::IterVar> SplitParts(const te::IterVar& parent, int64_t parts);
  /// {x outer, y outer, x inner, y inner}, in this order.
  std::array<te::IterVar, 4> Tile(const te::IterVar& x, const te::IterVar& y, int64_t x_factor,
                                  int64_t y_factor);
  /// Neighbouring loops, outermost first, become one.
  te::IterVar Fuse(const std::vector<te::IterVar>& loops);
  /// Puts these loops into this order at the places that they occupy.
  void Reorder(const std::vector<te::IterVar>& order);

  void Vectorize(const te::IterVar& loop);
  void Parallel(const te::IterVar& loop);
  void Unroll(const te::IterVar& loop);
  void Bind(const te::IterVar& loop, const te::IterVar& thread_axis);
  /// An attribute of the loop, for passes and back ends; unknown ones do nothing.
  void Pragma(const te::IterVar& loop, const std::string& key, const std::string& value = "");

  /// Computed inside that loop of its consumer, as much as one iteration needs.
  void ComputeAt(const Stage& consumer, const te::IterVar& loop);
  /// Its value is put into the consumers' expressions.
  void ComputeInline();
  /// In loops of its own, before its consumers: the default.
  void ComputeRoot();
  /// "global", "shared", "local", "register".
  void SetScope(const std::string& scope);

 private:
  friend class Schedule;
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

  /// A copy of `tensor`, in `scope`, that these operations read instead.
  te::Tensor CacheRead(const te::Tensor& tensor, const std::string& scope,
                       const std::vector<te::Operation>& readers);
  /// The tensor is computed into the result, in `scope`, from which its own stage then copies.
  /// Comes before other primitives of its stage.
  te::Tensor CacheWrite(const te::Tensor& tensor, const std::string& scope);
  /// Partial results along `axis`, a reduce loop of the tensor's stage: its stage then reduces
  /// them. They have one more dim, at `factor_axis` (negative: from the end).
  te::Tensor RFactor(const te::Tensor& tensor, const te::IterVar& axis, int factor_axis = 0);

  const std::shared_ptr<ScheduleData>& data() const { return data_; }

 private:
  std::shared_ptr<ScheduleData> data_;
};

/// The schedule of everything that `outputs` need, each operation in loops of its own.
TN_API Schedule CreateSchedule(const std::vector<te::Tensor>& outputs);

}  // namespace v0
}  // namespace tenon

#endif  // TENON_SCHEDULE_HPP_

// A loop's body taken apart into steps, and the axis along which none of them needs another's place
// (loop_kernel.cc).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "ops/define.h"
#include "te/te.h"

namespace tenon::ops {

inline constexpr int kUnknownAxis = -2, kNoAxis = -1;  // in place of an axis

/// Makes a tensor of which `full` is the whole: at `axes`, `value`, or what `combiner` makes of it
/// over `reduce`, beginning with `init`.
struct LoopStep {
  Buffer full;
  std::vector<Var> axes;
  std::vector<te::Axis> reduce;
  BinaryOp combiner = BinaryOp::kAdd;
  Expr value, init;
  int axis = kUnknownAxis;  // that is apart
  int lane = kNoAxis;       // another one, where lanes share the step (FindLanes)
  Var meets;                // or what it adds up is theirs: the variable of `reduce` over it
};

/// What is stored in each iteration: `value` at `axes` of the row.
struct CollectedRow {
  std::vector<Expr> shape;
  std::vector<Var> axes;
  Expr value;
  int axis = kUnknownAxis;
};

/// A loop's body as steps.
class LoopBody {
 public:
  /// `captured`: the operands of what the node captures.
  LoopBody(const graph::Graph& body, size_t carried, Var number, std::vector<Operand> captured);

  /// False where it holds something that has no such steps.
  bool Trace();

  /// Finds the axis that is apart of everything, where it is `first` of the first state (kNoAxis: a
  /// thread does everything); false where there is none.
  bool FindAxes(int first);
  /// Finds a second axis of the state along which nothing meets but in sums that go into rows: so
  /// that the lanes that share a thread's work meet there alone. Needs: FindAxes has found one.
  bool FindLanes();
  /// How many lanes: the length of that axis; 1 where there is none.
  int64_t lanes() const { return lanes_; }
  int state_lane(size_t k) const { return state_lanes_.empty() ? kNoAxis : state_lanes_[k]; }
  /// How long the axis is: so many threads there are.
  Expr length() const;

  const std::vector<Buffer>& states() const { return states_; }
  const std::vector<Buffer>& next() const { return next_; }
  const std::vector<LoopStep>& steps() const { return steps_; }
  const std::vector<CollectedRow>& rows() const { return rows_; }
  int state_axis(size_t k) const { return axes_[k]; }
  /// Of a whole tensor of the body; kUnknownAxis for other buffers.
  int AxisOf(const BufferNode* full) const;

 private:
  static Operand ReadOf(const Buffer& full);

  // The element, where steps before have made what it needs.
  Expr ElementAt(const Operand& operand, const std::vector<Var>& axes);

  // Adds the steps of a tensor and of what it is made of.
  void Make(const te::TensorRef& tensor);

  Buffer AddStep(const std::string& name, const Operand& operand);

  std::vector<Operand> Evaluate(const graph::Graph& g, const std::vector<Operand>& inputs,
                                const std::string& prefix, bool is_body);

  // What is carried on is computed once, whoever else reads it.
  Operand Kept(graph::ValueId v, const Operand& operand);

  std::vector<Operand> EvaluateNode(const graph::Graph& g, const graph::Node& node,
                                    const std::vector<Operand>& in, const std::string& prefix);

  // The axis of a step at which it reads what is apart; false where it reads that elsewhere.
  bool FindAxis(const std::vector<const Expr*>& exprs, const std::vector<Var>& axes,
                int* out) const;

  bool FindStepAxes();

  // The same for lanes: of a step; of all, with a first guess.
  bool FindLane(LoopStep* step) const;
  bool TryLanes(int first);
  bool RowsMeet() const;
  int LaneOf(const BufferNode* full) const;
  const LoopStep* StepOf(const BufferNode* full) const;

  // What is carried on has its axis where the state has it, and all such axes are as long.
  bool Agree() const;

  const graph::Graph& body_;
  const Var number_;
  const std::vector<Operand> captured_;
  std::vector<Buffer> states_, next_;
  std::vector<LoopStep> steps_;
  std::vector<CollectedRow> rows_;
  std::vector<int> axes_;  // of states
  std::vector<int> state_lanes_;
  int64_t lanes_ = 1;
  std::set<const te::TensorNode*> made_;
  int serial_ = 0;
  bool fits_ = true;
};

}  // namespace tenon::ops

// Operators written as formulas: values with arithmetic, and one error for all of it.
//
//   const Formula f(c);
//   const Val x = f.In(0);
//   return f.Result(Where(x < 0, x * alpha, x));
//
// emits less, mul and where. What cannot be emitted, since types do not fit or another check of
// the graph fails, leaves a value that has failed, as has everything that is made of it: the first
// error is kept, and is what the formula answers in the end. So nothing is asked in between.
//
// Numbers beside a value have its type. Axes may be negative: they count from the end.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "frontend/onnx/op_context.h"

namespace tenon::onnx {

using Axes = std::vector<int64_t>;
using Dims = std::vector<Expr>;

class Val;

/// What a node's formula emits into: a builder, under one name. Copies share the error. Lives no
/// longer than its builder.
class Formula {
 public:
  explicit Formula(OpContext& c);
  /// Of a region that the node makes.
  Formula(Builder& b, std::string name);

  Builder& builder() const { return state_->b; }
  const std::string& name() const { return state_->name; }
  /// Input `i` of the node; a failed value, without an error, where it is left out.
  Val In(size_t i) const;
  Val Of(ValueId v) const;
  /// A value, or the error that there is in its place.
  Val Of(Expected<ValueId> v) const;
  Val Number(DType dtype, double value) const;
  /// 0, 1, …, size - 1.
  Val Iota(const Expr& size, DType dtype = DType::Int(64)) const;
  /// A constant list of i64, or of f32.
  Val Ints(const std::vector<int64_t>& list) const;
  /// Of f32, as attributes have them, or of another type of floats.
  Val Floats(const std::vector<double>& list, DType dtype = DType::Float(32)) const;

  /// From here on sums, differences and products of floats are rounded each by itself, never two at
  /// once: where results must be opposite, or conjugate, to the bit.
  void RoundEach() const { state_->contract = false; }
  Val Emit(OpKind op, std::vector<Val> inputs, Attrs attrs = {}, ExprAttrs exprs = {}) const;
  std::vector<Val> EmitAll(OpKind op, size_t results, std::vector<Val> inputs, Attrs attrs = {},
                           ExprAttrs exprs = {}) const;
  /// Remembers that something is wrong.
  Val Fail(Diagnostic error) const;

  /// Sets outputs of the node, from the first on; answers the first error.
  Status Result(std::initializer_list<Val> outputs) const;
  Status Result(const Val& output) const;
  /// The first error.
  Status Done() const;

 private:
  struct State {
    Builder& b;
    OpContext* c;  // null: of a region
    std::string name;
    Diagnostics error;
    bool contract = true;
  };
  std::shared_ptr<State> state_;
};

/// A value of a formula. Without a formula: left out.
class Val {
 public:
  Val() = default;
  Val(Formula f, ValueId id) : f_(std::move(f)), id_(id) {}

  /// Whether there is a value. One that failed, or was left out, has the type f32.
  explicit operator bool() const { return id_ != kNoValue; }
  const Formula& formula() const { return *f_; }
  ValueId id() const { return id_; }
  DType dtype() const;
  Dims dims() const;
  int64_t rank() const;
  /// The size of an axis; 1 of a value that failed.
  Expr dim(int64_t axis) const;
  /// An axis counted from the beginning.
  int64_t At(int64_t axis) const { return axis < 0 ? axis + rank() : axis; }

 private:
  std::optional<Formula> f_;
  ValueId id_ = kNoValue;
};

// ---- Elementwise; shapes broadcast. ----

#define TN_FORMULA_BINARY(name)         \
  Val name(const Val& a, const Val& b); \
  Val name(const Val& a, double b);     \
  Val name(double a, const Val& b);
TN_FORMULA_BINARY(operator+)
TN_FORMULA_BINARY(operator-)
TN_FORMULA_BINARY(operator*)
TN_FORMULA_BINARY(operator/)
TN_FORMULA_BINARY(operator<)
TN_FORMULA_BINARY(operator>)
TN_FORMULA_BINARY(operator<=)
TN_FORMULA_BINARY(operator>=)
TN_FORMULA_BINARY(Equal)
TN_FORMULA_BINARY(Max)
TN_FORMULA_BINARY(Min)
TN_FORMULA_BINARY(Pow)
TN_FORMULA_BINARY(Mod)  // the divisor's sign
#undef TN_FORMULA_BINARY
Val operator&(const Val& a, const Val& b);  // of bools, as | and Not are
Val operator|(const Val& a, const Val& b);
Val Not(const Val& a);
Val operator-(const Val& a);
Val Where(const Val& condition, const Val& a, const Val& b);
Val Where(const Val& condition, double a, const Val& b);
Val Where(const Val& condition, const Val& a, double b);
Val Apply(OpKind op, const Val& x);
inline Val Abs(const Val& x) { return Apply(OpKind::kAbs, x); }
inline Val Cos(const Val& x) { return Apply(OpKind::kCos, x); }
inline Val Exp(const Val& x) { return Apply(OpKind::kExp, x); }
inline Val Floor(const Val& x) { return Apply(OpKind::kFloor, x); }
inline Val Log(const Val& x) { return Apply(OpKind::kLog, x); }
inline Val Round(const Val& x) { return Apply(OpKind::kRound, x); }
inline Val Sigmoid(const Val& x) { return Apply(OpKind::kSigmoid, x); }
inline Val Sin(const Val& x) { return Apply(OpKind::kSin, x); }
inline Val Sqrt(const Val& x) { return Apply(OpKind::kSqrt, x); }
inline Val Tanh(const Val& x) { return Apply(OpKind::kTanh, x); }
Val Cast(const Val& x, DType to);
/// What sums of a narrow float are taken in.
Val Widened(const Val& x);

// ---- Along axes. ----

/// `kind` as the graph's reduce has it; axes stay as dims of 1 unless `keepdims` is false.
Val Reduce(const char* kind, const Val& x, Axes axes, bool keepdims = true);
inline Val Sum(const Val& x, Axes axes, bool keepdims = true) {
  return Reduce("sum", x, std::move(axes), keepdims);
}
inline Val Mean(const Val& x, Axes axes, bool keepdims = true) {
  return Reduce("mean", x, std::move(axes), keepdims);
}
/// From `axis` to the last.
Axes AxesFrom(const Val& x, int64_t axis);
/// Position of the largest ("max") or smallest ("min") element: the first, or the last.
Val ArgReduce(const char* kind, const Val& x, int64_t axis, bool last = false);
Val Softmax(const Val& x, int64_t axis);
Val LogSoftmax(const Val& x, int64_t axis);
Val CumSum(const Val& x, int64_t axis, bool exclusive = false, bool reverse = false);
/// The values, and where they are.
std::pair<Val, Val> TopK(const Val& x, int64_t axis, const Expr& k, bool largest = true);

// ---- Products. ----

Val MatMul(const Val& a, const Val& b, bool trans_a = false, bool trans_b = false);
/// The product of narrow floats as it was added up, not rounded to their type.
Val WideMatMul(const Val& a, const Val& b, bool trans_a, bool trans_b);
/// alpha times the product, rounded once.
Val ScaledMatMul(const Val& a, const Val& b, bool trans_a, bool trans_b, double alpha);

// ---- Movement. ----

/// The size of an axis as a scalar of i64.
Val Size(const Val& x, int64_t axis);
Val Reshape(const Val& x, Dims shape);
Val Transpose(const Val& x, Axes perm);
/// With the two axes exchanged.
Val Swap(const Val& x, int64_t a, int64_t b);
Val Squeeze(const Val& x, int64_t axis);
/// A new axis of 1 at `axis` of the result.
Val Unsqueeze(const Val& x, int64_t axis);
Val Slice(const Val& x, int64_t axis, const Expr& start, const Expr& size, int64_t step = 1);
/// The element at `start` of an axis, which vanishes.
Val Element(const Val& x, int64_t axis, int64_t at);
Val Flip(const Val& x, int64_t axis);
Val Concat(const std::vector<Val>& parts, int64_t axis);
/// Along a new axis.
Val Stack(const std::vector<Val>& parts, int64_t axis);
Val Expand(const Val& x, Dims shape);
/// Each element of an axis `count` times in a row.
Val Repeat(const Val& x, int64_t axis, const Expr& count);
/// The whole of each axis so many times, one after another.
Val Tile(const Val& x, const Dims& repeats);
/// Elements before and after those of an axis.
Val Pad(const Val& x, int64_t axis, int64_t before, int64_t after, const Val& value = {});
/// Of all axes what comes before and then what comes after them; less than 0 takes away.
Val Pad(const Val& x, Dims pads, std::string mode, const Val& value = {});
Val Gather(const Val& x, const Val& indices, int64_t axis);
Val GatherElements(const Val& x, const Val& indices, int64_t axis);
Val GatherNd(const Val& x, const Val& indices, int64_t batch_dims = 0);
/// `updates` (of x's rank; no axis but `axis` longer than x's) put into x along an axis, at
/// `indices`, which broadcast to them. `reduction`: none, add, mul, max, min.
Val Scatter(const Val& x, const Val& indices, const Val& updates, int64_t axis,
            const std::string& reduction = "none");
/// The first lengths[b] rows of column b of x, which has T rows along axis `time` and B columns
/// along the other of its first two, in reverse order; the others stay.
Val ReverseRows(const Val& x, const Val& lengths, int64_t time = 0);
/// Where a list of bools is true, in order. How many there are defines a dim of that name.
Val PlacesOf(const Val& mask, std::string_view dim_name);

// ---- Loops. ----

/// What an iteration makes of its number (i64), the carried values and the captured ones: the
/// carried values, of the same types, and what is collected. Values of outside are no values
/// inside.
using LoopBody = std::function<std::vector<Val>(const Val& i, const std::vector<Val>& carried,
                                                const std::vector<Val>& captured)>;
/// `count` iterations: the last carried values, then along a new first axis what each iteration
/// gave besides.
std::vector<Val> Loop(const Formula& f, const Expr& count, const std::vector<Val>& carried,
                      const std::vector<Val>& captured, const LoopBody& body);

}  // namespace tenon::onnx

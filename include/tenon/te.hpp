// Tensor expressions: what is computed, element by element, without saying how. C++20; link
// Tenon::compiler.
//
//   te::Var n("n");
//   te::Tensor a = te::Placeholder({n}, DataType::kFloat32, "A");
//   te::Tensor b = te::Placeholder({n}, DataType::kFloat32, "B");
//   te::Tensor c = te::Compute({n}, [&](te::Var i) { return a(i) + b(i); }, "C");
//
// All classes are handles: copies mean the same thing. They are immutable, so threads may share
// them. Errors are thrown as tenon::Error. schedule.hpp says how it is computed, compiler.hpp
// builds it. docs/tensor-expressions.md is the guide.
#ifndef TENON_TE_HPP_
#define TENON_TE_HPP_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tenon/tenon.hpp"

namespace tenon {
inline namespace v0 {

/// The type of a name such as "float32", "int8", "bool"; throws ValueError.
TN_API DataType ParseDataType(std::string_view name);
TN_API std::string ToString(DataType dtype);

namespace te {

struct ExprData;
struct IterVarData;
struct OperationData;

/// A scalar value in terms of variables and tensor elements. A plain number takes the type of what
/// it is combined with, which must have it; operands of different types are converted to the
/// narrowest that has the values of both (int8 and uint8 to int16; int64 and uint64 have none, an
/// error), and integers to floats where they meet.
class TN_API Expr {
 public:
  Expr() = default;
  Expr(int value);        // NOLINT(google-explicit-constructor)
  Expr(long value);       // NOLINT(google-explicit-constructor)
  Expr(long long value);  // NOLINT(google-explicit-constructor)
  Expr(double value);     // NOLINT(google-explicit-constructor)
  explicit Expr(std::shared_ptr<const ExprData> data) : data_(std::move(data)) {}

  explicit operator bool() const { return data_ != nullptr; }
  /// Variables of loops and sizes are int64.
  DataType dtype() const;
  std::string str() const;
  /// What it is inside; never null (throws where the handle is empty).
  const ExprData& data() const;

 protected:
  std::shared_ptr<const ExprData> data_;
};

/// A symbolic size: lo, lo + step, lo + 2 * step, … up to hi (hi < 0: no bound). Checked at every
/// call; schedules rely on it. Or a number of any type. Either can be an argument of Build: callers
/// then pass it by value.
class TN_API Var : public Expr {
 public:
  explicit Var(const std::string& name, int64_t lo = 0, int64_t hi = -1, int64_t step = 1);
  /// A number of this type, of which nothing is known until the call.
  Var(const std::string& name, DataType dtype);
  explicit Var(std::shared_ptr<const ExprData> data) : Expr(std::move(data)) {}
  std::string name() const;
};

/// A loop: of a tensor's elements, of a reduction, made by a schedule, or a thread axis. As an
/// expression it is its variable.
class TN_API IterVar : public Expr {
 public:
  IterVar() = default;
  explicit IterVar(std::shared_ptr<const IterVarData> data);
  std::string name() const;
  /// How many iterations it has; empty where a schedule made it.
  Expr extent() const;
  const std::shared_ptr<const IterVarData>& node() const { return node_; }
  friend bool operator==(const IterVar& a, const IterVar& b) { return a.node_ == b.node_; }

 private:
  std::shared_ptr<const IterVarData> node_;
};

class Tensor;

/// What computes one or several tensors, and its loops.
class TN_API Operation {
 public:
  Operation() = default;
  explicit Operation(std::shared_ptr<const OperationData> data) : data_(std::move(data)) {}
  std::string name() const;
  std::vector<IterVar> axis() const;
  std::vector<IterVar> reduce_axis() const;
  std::vector<Tensor> input_tensors() const;
  /// Of a scan, the loop over its rows: where tensors between a state and an update, and what they
  /// read, can be computed.
  IterVar scan_axis() const;
  int num_outputs() const;
  Tensor output(int index) const;
  /// What an element of each output is, for people to read; of an operation that a schedule made,
  /// what its block does. Empty of an input, a scan and functions of one's own.
  std::vector<std::string> body() const;
  explicit operator bool() const { return data_ != nullptr; }
  const std::shared_ptr<const OperationData>& node() const { return data_; }

 private:
  std::shared_ptr<const OperationData> data_;
};

/// A tensor to compute with; no memory belongs to it.
class TN_API Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<const OperationData> op, int index) : op_(std::move(op)), index_(index) {}

  /// The element at these indices, as many as there are dims.
  template <class... I>
  Expr operator()(const I&... indices) const {
    return At({Expr(indices)...});
  }
  Expr At(const std::vector<Expr>& indices) const;

  std::string name() const;
  std::vector<Expr> shape() const;
  DataType dtype() const;
  Operation op() const { return Operation(op_); }
  int value_index() const { return index_; }
  explicit operator bool() const { return op_ != nullptr; }
  friend bool operator==(const Tensor& a, const Tensor& b) {
    return a.op_ == b.op_ && a.index_ == b.index_;
  }

 private:
  std::shared_ptr<const OperationData> op_;
  int index_ = 0;
};

/// A parameter of a function that is built: a tensor, or a number that is passed by value.
class TN_API Argument {
 public:
  Argument(Tensor tensor) : tensor_(std::move(tensor)) {}  // NOLINT(google-explicit-constructor)
  Argument(Var number) : number_(std::move(number)) {}     // NOLINT(google-explicit-constructor)
  /// An input whose elements lie as far apart as `strides` say, in elements, one per dim: a number,
  /// which arguments must have, or a variable, which is what they have. (Arguments are compact
  /// otherwise.)
  Argument(Tensor input, std::vector<Expr> strides)
      : tensor_(std::move(input)), strides_(std::move(strides)) {}
  bool IsTensor() const { return !number_; }
  const Tensor& tensor() const { return tensor_; }
  const Expr& number() const { return number_; }
  const std::vector<Expr>& strides() const { return strides_; }

 private:
  Tensor tensor_;
  std::vector<Expr> strides_;
  Expr number_;
};

/// All of them in order, the outputs last.
class TN_API Arguments : public std::vector<Argument> {
 public:
  using std::vector<Argument>::vector;
  Arguments(std::initializer_list<Argument> list) : std::vector<Argument>(list) {}
  Arguments(const std::vector<Tensor>& tensors)  // NOLINT(google-explicit-constructor)
      : std::vector<Argument>(tensors.begin(), tensors.end()) {}
};

// ---- Arithmetic. `/` and `%` of sizes and loop variables floor; of integer data they truncate.
// ----
TN_API Expr operator+(const Expr& a, const Expr& b);
TN_API Expr operator-(const Expr& a, const Expr& b);
TN_API Expr operator*(const Expr& a, const Expr& b);
TN_API Expr operator/(const Expr& a, const Expr& b);
TN_API Expr operator%(const Expr& a, const Expr& b);
TN_API Expr operator-(const Expr& a);
TN_API Expr operator<(const Expr& a, const Expr& b);
TN_API Expr operator<=(const Expr& a, const Expr& b);
TN_API Expr operator>(const Expr& a, const Expr& b);
TN_API Expr operator>=(const Expr& a, const Expr& b);
TN_API Expr operator&&(const Expr& a, const Expr& b);
TN_API Expr operator||(const Expr& a, const Expr& b);
TN_API Expr operator!(const Expr& a);
TN_API Expr operator&(const Expr& a, const Expr& b);
TN_API Expr operator|(const Expr& a, const Expr& b);
TN_API Expr operator^(const Expr& a, const Expr& b);
TN_API Expr operator<<(const Expr& a, const Expr& b);
TN_API Expr operator>>(const Expr& a, const Expr& b);
TN_API Expr operator~(const Expr& a);
/// Comparisons as functions, since == of handles means the same handle.
TN_API Expr Equal(const Expr& a, const Expr& b);
TN_API Expr NotEqual(const Expr& a, const Expr& b);
TN_API Expr Minimum(const Expr& a, const Expr& b);
TN_API Expr Maximum(const Expr& a, const Expr& b);
/// Division that floors or truncates, and its remainder, of whatever type.
TN_API Expr FloorDiv(const Expr& a, const Expr& b);
TN_API Expr FloorMod(const Expr& a, const Expr& b);
TN_API Expr TruncDiv(const Expr& a, const Expr& b);
TN_API Expr TruncMod(const Expr& a, const Expr& b);
/// The untaken side is not evaluated: it may read outside a tensor.
TN_API Expr Select(const Expr& condition, const Expr& on_true, const Expr& on_false);
TN_API Expr Cast(const Expr& value, DataType dtype);
TN_API Expr Constant(double value, DataType dtype);
TN_API Expr ConstantInt(int64_t value, DataType dtype);
/// The bits of `value` as another type of the same width.
TN_API Expr Reinterpret(const Expr& value, DataType dtype);
/// A function of src/ir/intrinsics.def by its name: "exp", "tanh", "sqrt", "pow", "fma", …
TN_API Expr CallIntrinsic(const std::string& name, const std::vector<Expr>& args);

// ---- Functions of numbers; docs/tensor-expressions.md has their table. Integers become f32, but
// for Abs, Pow, PopCount and Clz. Round is to nearest, ties to even. ----
inline Expr Abs(const Expr& x) { return CallIntrinsic("abs", {x}); }
inline Expr Acos(const Expr& x) { return CallIntrinsic("acos", {x}); }
inline Expr Acosh(const Expr& x) { return CallIntrinsic("acosh", {x}); }
inline Expr Asin(const Expr& x) { return CallIntrinsic("asin", {x}); }
inline Expr Asinh(const Expr& x) { return CallIntrinsic("asinh", {x}); }
inline Expr Atan(const Expr& x) { return CallIntrinsic("atan", {x}); }
inline Expr Atanh(const Expr& x) { return CallIntrinsic("atanh", {x}); }
inline Expr Ceil(const Expr& x) { return CallIntrinsic("ceil", {x}); }
inline Expr Clz(const Expr& x) { return CallIntrinsic("clz", {x}); }
inline Expr Cos(const Expr& x) { return CallIntrinsic("cos", {x}); }
inline Expr Cosh(const Expr& x) { return CallIntrinsic("cosh", {x}); }
inline Expr Erf(const Expr& x) { return CallIntrinsic("erf", {x}); }
inline Expr Exp(const Expr& x) { return CallIntrinsic("exp", {x}); }
inline Expr Exp10(const Expr& x) { return CallIntrinsic("exp10", {x}); }
inline Expr Exp2(const Expr& x) { return CallIntrinsic("exp2", {x}); }
inline Expr Expm1(const Expr& x) { return CallIntrinsic("expm1", {x}); }
inline Expr Floor(const Expr& x) { return CallIntrinsic("floor", {x}); }
inline Expr IsInf(const Expr& x) { return CallIntrinsic("is_inf", {x}); }
inline Expr IsNan(const Expr& x) { return CallIntrinsic("is_nan", {x}); }
inline Expr Log(const Expr& x) { return CallIntrinsic("log", {x}); }
inline Expr Log10(const Expr& x) { return CallIntrinsic("log10", {x}); }
inline Expr Log1p(const Expr& x) { return CallIntrinsic("log1p", {x}); }
inline Expr Log2(const Expr& x) { return CallIntrinsic("log2", {x}); }
inline Expr PopCount(const Expr& x) { return CallIntrinsic("popcount", {x}); }
inline Expr Round(const Expr& x) { return CallIntrinsic("round_even", {x}); }
inline Expr Rsqrt(const Expr& x) { return CallIntrinsic("rsqrt", {x}); }
inline Expr Sigmoid(const Expr& x) { return CallIntrinsic("sigmoid", {x}); }
inline Expr Sin(const Expr& x) { return CallIntrinsic("sin", {x}); }
inline Expr Sinh(const Expr& x) { return CallIntrinsic("sinh", {x}); }
inline Expr Sqrt(const Expr& x) { return CallIntrinsic("sqrt", {x}); }
inline Expr Tan(const Expr& x) { return CallIntrinsic("tan", {x}); }
inline Expr Tanh(const Expr& x) { return CallIntrinsic("tanh", {x}); }
inline Expr Trunc(const Expr& x) { return CallIntrinsic("trunc", {x}); }
inline Expr Atan2(const Expr& y, const Expr& x) { return CallIntrinsic("atan2", {y, x}); }
inline Expr Hypot(const Expr& x, const Expr& y) { return CallIntrinsic("hypot", {x, y}); }
inline Expr Pow(const Expr& x, const Expr& y) { return CallIntrinsic("pow", {x, y}); }
inline Expr Fma(const Expr& a, const Expr& b, const Expr& c) {
  return CallIntrinsic("fma", {a, b, c});
}
TN_API Expr IsFinite(const Expr& x);
/// x with the sign of y.
TN_API Expr CopySign(const Expr& x, const Expr& y);
/// The number after x in the direction of y.
TN_API Expr NextAfter(const Expr& x, const Expr& y);
/// x * 2^n, for an integer n.
TN_API Expr LdExp(const Expr& x, const Expr& n);
/// The remainder of a division that truncates, as C's fmod.
inline Expr Fmod(const Expr& x, const Expr& y) { return TruncMod(x, y); }
/// The least and the greatest finite value of a type, and the infinity of a float.
TN_API Expr MinValue(DataType dtype);
TN_API Expr MaxValue(DataType dtype);
TN_API Expr Infinity(DataType dtype);
/// Whether all of them hold, or any of them.
TN_API Expr All(const std::vector<Expr>& conditions);
TN_API Expr Any(const std::vector<Expr>& conditions);

// ---- Reductions. A reduction is the whole body of a Compute. ----
/// A loop over [lo, hi) to reduce over.
TN_API IterVar ReduceAxis(const Expr& lo, const Expr& hi, const std::string& name = "k");
/// A loop over the threads of an axis such as "threadIdx.x" or "vthread", for Stage::Bind.
TN_API IterVar ThreadAxis(const std::string& tag);
/// One of so many threads: loops of another extent are refused.
TN_API IterVar ThreadAxis(const Expr& extent, const std::string& tag);
TN_API Expr Sum(const Expr& value, const std::vector<IterVar>& axes);
TN_API Expr Max(const Expr& value, const std::vector<IterVar>& axes);
TN_API Expr Min(const Expr& value, const std::vector<IterVar>& axes);
TN_API Expr Prod(const Expr& value, const std::vector<IterVar>& axes);

// ---- Tensors ----
/// An input. Its dims are numbers, variables, or expressions of variables that stand alone in the
/// shape of some input.
TN_API Tensor Placeholder(const std::vector<Expr>& shape, DataType dtype, const std::string& name);
/// The tensor whose element at the given loop variables is `element` of them. `axis_names` names
/// the loops in the IR's text ("": i0, i1, …).
TN_API Tensor ComputeIndexed(const std::vector<Expr>& shape,
                             const std::function<Expr(const std::vector<Var>&)>& element,
                             const std::string& name,
                             const std::vector<std::string>& axis_names = {});

namespace detail {

template <class F, size_t... I>
Expr Apply(const F& element, const std::vector<Var>& i, std::index_sequence<I...>) {
  return Expr(element(i[I]...));
}
template <class F, size_t N = 0>
constexpr size_t Arity() {
  if constexpr (N > 8) {
    return N;
  } else if constexpr ([]<size_t... I>(std::index_sequence<I...>) {
                         return std::is_invocable_v<F, decltype((void)I, std::declval<Var>())...>;
                       }(std::make_index_sequence<N>())) {
    return N;
  } else {
    return Arity<F, N + 1>();
  }
}

}  // namespace detail

/// Values that are computed together, of one tensor each; with axes, reduced over them by `combine`
/// of (old, new), which must be associative and commutative and leave any value as it is where the
/// old ones are `identity`.
struct Tuple {
  std::vector<Expr> values;
  std::vector<IterVar> axes;
  std::function<std::vector<Expr>(const std::vector<Expr>&, const std::vector<Expr>&)> combine;
  std::vector<Expr> identity;
};
TN_API std::vector<Tensor> ComputeTuple(
    const std::vector<Expr>& shape, const std::function<Tuple(const std::vector<Var>&)>& element,
    const std::string& name, const std::vector<std::string>& axis_names = {});
/// Rows along dim `axis`, computed in order: the first ones as `init` has them (it has as many rows
/// as are there before), each other by `update`, which may read earlier rows of `state`, a
/// placeholder, and tensors made of them in between, which are computed row by row.
TN_API Tensor Scan(const Tensor& init, const Tensor& update, const Tensor& state,
                   const std::string& name, int axis = 0);
/// Several tensors whose rows are made together: each update may read every state.
TN_API std::vector<Tensor> Scan(const std::vector<Tensor>& init, const std::vector<Tensor>& update,
                                const std::vector<Tensor>& state, const std::string& name,
                                int axis = 0);

/// The same for a function of one Var per dim, up to eight: [&](Var i, Var j) { return … }.
template <class F>
Tensor Compute(const std::vector<Expr>& shape, const F& element, const std::string& name) {
  if constexpr (std::is_invocable_v<F, const std::vector<Var>&>) {
    return ComputeIndexed(shape, element, name);
  } else {
    constexpr size_t kArity = detail::Arity<F>();
    static_assert(kArity <= 8, "expected a function of Var, one per dim");
    if (shape.size() != kArity) {
      throw Error("ValueError", "compute '" + name + "': the shape has " +
                                    std::to_string(shape.size()) + " dims but the function takes " +
                                    std::to_string(kArity) + " variables");
    }
    return ComputeIndexed(
        shape,
        [&](const std::vector<Var>& i) {
          return detail::Apply(element, i, std::make_index_sequence<kArity>());
        },
        name);
  }
}

}  // namespace te
}  // namespace v0
}  // namespace tenon

#endif  // TENON_TE_HPP_

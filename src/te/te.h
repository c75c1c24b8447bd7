// Tensor expressions: what is computed, element by element, without saying how.
//
//   te::Tensor a = te::Placeholder("A", {m, k}, DType::Float(32));
//   te::Axis r = te::ReduceAxis("k", k);
//   te::Tensor c = te::Compute("C", {m, n}, [&](const te::Indices& i) {
//     return te::Sum(a(i[0], r.var) * b(r.var, i[1]), {r});
//   });
//   Expected<Func> f = te::MakeFunc("matmul", {a, b}, {c});
//
// A Tensor is a handle on an immutable description. `a(i, j)` is a Load of the tensor's buffer, so
// the bodies are plain expressions; MakeFunc turns every computed tensor that the outputs need into
// one block of loop IR over serial loops, ready to be scheduled. Nothing here assumes a target.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "loop/func.h"
#include "support/expected.h"

namespace tenon::te {

using Indices = std::vector<Expr>;

/// A reduction axis: `var` runs over [0, extent).
struct Axis {
  Var var;
  Expr extent;
};
Axis ReduceAxis(std::string name, Expr extent);

struct TensorNode;
using TensorRef = Ref<const TensorNode>;

/// The value of a computed element: `value`, or the reduction of `value` over `axes` with a binary
/// combiner whose identity (or bias) is `init`.
struct Body {
  Expr value;
  std::vector<Axis> axes;  // empty: no reduction
  BinaryOp combiner = BinaryOp::kAdd;
  Expr init;

  Body(Expr v) : value(std::move(v)) {}  // NOLINT(google-explicit-constructor)
  Body(Expr v, std::vector<Axis> a, BinaryOp op, Expr i)
      : value(std::move(v)), axes(std::move(a)), combiner(op), init(std::move(i)) {}
};

/// Reductions with their usual identities; `init` overrides the identity (a bias, say).
Body Sum(Expr value, std::vector<Axis> axes, Expr init = nullptr);
Body MaxOf(Expr value, std::vector<Axis> axes);
Body MinOf(Expr value, std::vector<Axis> axes);
Body Prod(Expr value, std::vector<Axis> axes);

/// A reduction by a combiner that has no name: `combine` gives the components of (old, new), which
/// must be associative and commutative, and `identity` leaves any value as it is.
struct TupleBody {
  std::vector<Expr> values;  // one per component
  std::vector<Expr> identity;
  std::vector<Axis> axes;
  std::function<std::vector<Expr>(const std::vector<Expr>& old, const std::vector<Expr>& value)>
      combine;
};

/// What steps make, one after the other: `next` says what a step makes of what the one before it
/// left, `first` what there is before the first step.
struct StepsBody {
  Expr first;
  std::function<Expr(const Expr& before)> next;
};

/// What a step changes: of what is at `place`, where `where` holds (null: always), `next` makes
/// what is there then.
struct ScatterBody {
  Indices place;
  Expr where;
  std::function<Expr(const Expr& before)> next;
};

/// How a computed tensor lies in memory and may be computed; the defaults are a compact row-major
/// tensor.
struct Storage {
  /// The buffer written; null: a new one of the tensor's shape. Several tensors may write parts of
  /// one buffer.
  Buffer buffer;
  /// Where element `i` is stored in `buffer`; null: at `i`.
  std::function<Indices(const Indices&)> place;
  FpMode fp = FpMode::kContract;
  Attrs attrs;  // of the block: "role", …
  /// The variables of the loops, one per dim; empty: new ones, i0, i1, ….
  std::vector<Var> axes;
  /// Tensors that the body reads besides those that are indexed while `element` runs.
  std::vector<TensorRef> inputs;
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TensorRef node) : node_(std::move(node)) {}

  /// The element at the given indices (index expressions).
  template <class... I>
  Expr operator()(I... indices) const {
    return At({Expr(indices)...});
  }
  Expr At(const Indices& indices) const;

  const std::string& name() const;
  DType dtype() const;
  const std::vector<Expr>& shape() const;
  const Buffer& buffer() const;
  explicit operator bool() const { return static_cast<bool>(node_); }
  const TensorRef& node() const { return node_; }

 private:
  TensorRef node_;
};

/// What several tensors computed by one block share.
struct TupleNode : RefCounted {
  std::string name;
  std::vector<Buffer> buffers;  // one per component
  std::vector<Expr> values;
  // Reductions only:
  std::vector<Expr> identity;
  std::vector<Var> arguments;  // what stands for the values in `combined`
  std::vector<Expr> combined;  // of the buffers' elements and the arguments
};

/// How a tensor is computed in order.
struct StepsNode : RefCounted {
  Axis step;  // where no dim of the tensor runs over the steps
  static constexpr size_t kNoAxis = ~size_t{0};
  size_t axis = kNoAxis;  // the one that does
  Expr first;
  bool keeps_before = false;  // then an element is what there is before its step
  Var before;                 // what stands for that
  Expr next;                  // what the step makes of it
  Buffer state;               // what steps leave: the tensor's own where only the last counts
  Indices place;              // in `state`
};

/// How the elements of a tensor are changed, one after the other.
struct ScatterNode : RefCounted {
  std::string name;
  TensorRef begun;          // what there is first
  std::vector<Axis> apart;  // whose steps have places of their own
  Axis step;
  Indices place;  // in the buffer of `begun`
  Expr where;
  Expr next;    // which reads that place
  Buffer kept;  // what is there before each step; null: that is not asked for
};

/// What tensors share whose rows, along one dim, are computed in order, each from earlier ones.
struct ScanNode : RefCounted {
  std::string name;
  size_t axis = 0;                             // the dim of the rows
  Expr first;                                  // as many rows are there before
  std::vector<TensorRef> init, update, state;  // one each for each tensor
  /// What a row takes, producers first: the updates, and tensors between a state and an update.
  std::vector<TensorRef> steps;
  std::vector<Buffer> buffers;  // one per tensor
};

struct TensorNode : RefCounted {
  std::string name;
  DType dtype;
  std::vector<Expr> shape;
  Buffer buffer;
  std::function<Indices(const Indices&)> place;
  // Computed tensors only:
  std::vector<Var> axes;
  std::vector<TensorRef> inputs;  // tensors whose elements the body reads, in order of first use
  bool computed = false;
  Expr value, init;
  std::vector<Axis> reduce_axes;
  BinaryOp combiner = BinaryOp::kAdd;
  FpMode fp = FpMode::kContract;
  Attrs attrs;
  Ref<const TupleNode> tuple;      // null: the tensor has a block of its own
  Ref<const ScanNode> scan;        // null: not made by a scan
  Ref<const StepsNode> steps;      // null: an element does not depend on others
  Ref<const ScatterNode> scatter;  // null: not made by changing another
};

/// An input. `buffer` states its layout and place in memory; null: compact row-major.
Tensor Placeholder(std::string name, std::vector<Expr> shape, DType dtype, Buffer buffer = nullptr);

/// A tensor of `shape` whose element at `i` is `element(i)`. The body's type is the tensor's type.
/// The tensors that the body reads are noted while `element` runs, so index them inside it.
Tensor Compute(std::string name, std::vector<Expr> shape,
               const std::function<Body(const Indices&)>& element, Storage storage = {});

/// Tensors of one shape that are computed together: without axes each is its value. `element` is
/// called once.
std::vector<Tensor> ComputeTuple(std::string name, std::vector<Expr> shape,
                                 const std::function<TupleBody(const Indices&)>& element,
                                 Storage storage = {});

/// A tensor whose element is what the last of some steps has made; `step` runs over them, and
/// `element` may use it.
Tensor AfterSteps(std::string name, std::vector<Expr> shape, const Axis& step,
                  const std::function<StepsBody(const Indices&)>& element, Storage storage = {});

/// A tensor whose elements along dim `axis` are the steps: each is what is there after its step, or
/// before it.
Tensor WhileStepping(std::string name, std::vector<Expr> shape, size_t axis, bool before,
                     const std::function<StepsBody(const Indices&)>& element, Storage storage = {});

/// What steps make of `begun` that change its elements one after the other, wherever these are:
/// `step` runs over them. Steps at different indices of axes of the sizes `apart` change elements
/// of their own, and `change` is asked for what one does at such indices. The result lies where
/// `begun` does, which nothing else may read.
Tensor Scatter(const std::string& name, const Tensor& begun, const std::vector<Expr>& apart,
               const Axis& step, const std::function<ScatterBody(const Indices&)>& change);

/// The same, and for each step ([apart…, steps]) what was at its place before it. Every step
/// changes something: `where` is null.
struct Scattered {
  Tensor after, before;
};
Scattered ScatterKeeping(const std::string& name, const Tensor& begun,
                         const std::vector<Expr>& apart, const Axis& step,
                         const std::function<ScatterBody(const Indices&)>& change);

/// Tensors of the states' shapes whose first rows (along dim `axis`) are those of `init` and whose
/// others are computed in order by `update`, which alone may read the states, in rows before its
/// own, or tensors that do, of which each row is computed when its turn comes. Errors: ranks, types
/// or sizes differ; something else reads a state, or a state is read at its own row or later ones.
Expected<std::vector<Tensor>> Scan(std::string name, std::vector<Tensor> init,
                                   std::vector<Tensor> update, std::vector<Tensor> state,
                                   size_t axis = 0);

struct FuncOptions {
  std::vector<Var> dims;  // symbolic sizes, in order
  std::vector<DimRange> ranges;
  TargetRef target;
  Attrs attrs;
  bool contract = true;  // false: tensors that may be contracted (FpMode::kContract) are strict
};

/// One function: parameters are the buffers of `inputs` and then of `outputs`, each once (several
/// outputs may write parts of one buffer). Every computed tensor that an output needs becomes a
/// block named after it, producers first. An input is not expanded, even if it is computed. Errors:
/// a tensor is read that is neither computed nor an input; a buffer is both input and output.
Expected<Func> MakeFunc(const std::string& name, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& outputs, const FuncOptions& options = {});

}  // namespace tenon::te

// Loops as kernels.
//
// A body is taken apart into steps, each of which makes one tensor, element by element or as a
// reduction, of the carried values (`state0`, …), of what the loop captures, and of earlier steps:
//
//   %2 = mul(state, decay[i])          next0[a, j] = state0[a, j] * decay[i, a, j] + drive[i, a, j]
//   %3 = add(%2, drive[i])             y[a]        = sum over j of next0[a, j] * c[i, j]
//   %4 = matmul(%3, c[i])
//
// An axis of the state is *apart* where every step reads what depends on the state at the very
// place of that axis that it writes (here a, not j: y reads all j). Which axis of each tensor that
// is follows from the indices: the one axis of the step that stands at the operand's. Then a thread
// takes one place of the axis through the whole loop,
//
//   for a in threads {
//     state0[j] = …                     in registers
//     for i in 0..count {
//       next0[j] = state0[j] * decay[i, a, j] + drive[i, a, j]
//       y[i, a] = …
//       state0[j] = next0[j]
//     }
//     result[a, j] = state0[j] }
//
// which is the definition of each step with one index given and the memory made private.
#include "ops/loop_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "arith/analyzer.h"
#include "graph/dims.h"
#include "ir/visit.h"
#include "loop/fresh_names.h"
#include "ops/called_function.h"
#include "ops/define.h"
#include "ops/group.h"

namespace tenon::ops {

namespace {

using graph::OpKind;
using graph::ValueId;

constexpr int kUnknown = -2, kNone = -1;  // in place of an axis
// What a thread may have in registers, and may compute in an iteration.
constexpr int64_t kMostElements = 64, kMostSteps = 1024;

/// Makes a tensor of which `full` is the whole: at `axes`, `value`, or what `combiner` makes of it
/// over `reduce`, beginning with `init`.
struct LoopStep {
  Buffer full;
  std::vector<Var> axes;
  std::vector<te::Axis> reduce;
  BinaryOp combiner = BinaryOp::kAdd;
  Expr value, init;
  int axis = kUnknown;  // that is apart
};

/// What is stored in each iteration: `value` at `axes` of the row.
struct CollectedRow {
  std::vector<Expr> shape;
  std::vector<Var> axes;
  Expr value;
  int axis = kUnknown;
};

std::vector<Var> AxesOf(const std::vector<Expr>& dims) {
  std::vector<Var> axes;
  for (size_t a = 0; a < dims.size(); ++a)
    axes.push_back(VarNode::Make(fmt::format("a{}", a), DType::Index()));
  return axes;
}

/// A loop's body as steps.
class LoopBody {
 public:
  /// `captured`: the operands of what the node captures.
  LoopBody(const graph::Graph& body, size_t carried, Var number, std::vector<Operand> captured)
      : body_(body), number_(std::move(number)), captured_(std::move(captured)) {
    for (size_t k = 0; k < carried; ++k) {
      const graph::TensorType& type = body.type(body.inputs[k + 1]);
      states_.push_back(BufferNode::Make(fmt::format("state{}", k), type.dtype, type.dims));
    }
    next_.resize(carried);
  }

  /// False where it holds something that has no such steps.
  bool Trace() {
    std::vector<Operand> inputs;
    const DType index = DType::Int(64);
    const Expr number = CastExpr::Make(index, number_);
    inputs.push_back({index, {}, [number](const te::Indices&) { return number; }});
    for (const Buffer& state : states_) inputs.push_back(ReadOf(state));
    inputs.insert(inputs.end(), captured_.begin(), captured_.end());
    const std::vector<Operand> results = Evaluate(body_, inputs, "l", true);
    if (!fits_) return false;
    for (size_t k = 0; k < results.size(); ++k) {
      if (k >= states_.size()) {
        const std::vector<Var> axes = AxesOf(results[k].dims);
        rows_.push_back({results[k].dims, axes, ElementAt(results[k], axes)});
      } else if (!next_[k]) {
        next_[k] = AddStep(fmt::format("next{}", k), results[k]);
      }
    }
    return fits_;
  }

  /// Finds the axis that is apart of everything, where it is `first` of the first state (kNone: a
  /// thread does everything); false where there is none.
  bool FindAxes(int first) {
    axes_.assign(states_.size(), kUnknown);
    axes_[0] = first;
    for (size_t round = 0; round <= states_.size(); ++round) {
      if (!FindStepAxes()) return false;
      for (size_t k = 0; k < states_.size(); ++k) {
        const int next = AxisOf(next_[k].get());
        if (axes_[k] < 0 && next >= 0) axes_[k] = next;
      }
    }
    for (int& axis : axes_) axis = axis == kUnknown ? kNone : axis;
    return FindStepAxes() && Agree();
  }
  /// How long the axis is: so many threads there are.
  Expr length() const {
    return axes_[0] < 0 ? IndexConst(1) : states_[0]->shape[static_cast<size_t>(axes_[0])];
  }

  const std::vector<Buffer>& states() const { return states_; }
  const std::vector<Buffer>& next() const { return next_; }
  const std::vector<LoopStep>& steps() const { return steps_; }
  const std::vector<CollectedRow>& rows() const { return rows_; }
  int state_axis(size_t k) const { return axes_[k]; }
  /// Of a whole tensor of the body; kUnknown for other buffers.
  int AxisOf(const BufferNode* full) const {
    for (size_t k = 0; k < states_.size(); ++k) {
      if (states_[k].get() == full) return axes_[k];
    }
    for (const LoopStep& s : steps_) {
      if (s.full.get() == full) return s.axis;
    }
    return kUnknown;
  }

 private:
  static Operand ReadOf(const Buffer& full) {
    return {full->dtype, full->shape,
            [full](const te::Indices& at) { return Load::Make(full, at); }};
  }

  // The element, where steps before have made what it needs.
  Expr ElementAt(const Operand& operand, const std::vector<Var>& axes) {
    const te::Tensor probe =
        te::Compute("probe", operand.dims, [&](const te::Indices& at) -> te::Body {
          VarMap named;
          for (size_t a = 0; a < axes.size(); ++a) named[As<VarNode>(at[a])] = axes[a];
          return Substitute(operand.at(at), named);
        });
    for (const te::TensorRef& input : probe.node()->inputs) Make(input);
    return probe.node()->value;
  }

  // Adds the steps of a tensor and of what it is made of.
  void Make(const te::TensorRef& tensor) {
    if (!tensor->computed || !made_.insert(tensor.get()).second) return;
    if (tensor->place || tensor->tuple || tensor->scan) fits_ = false;
    for (const te::TensorRef& input : tensor->inputs) Make(input);
    steps_.push_back({tensor->buffer, tensor->axes, tensor->reduce_axes, tensor->combiner,
                      tensor->value, tensor->init});
  }

  Buffer AddStep(const std::string& name, const Operand& operand) {
    const Buffer full = BufferNode::Make(name, operand.dtype, operand.dims);
    const std::vector<Var> axes = AxesOf(operand.dims);
    const Expr value = ElementAt(operand, axes);
    steps_.push_back({full, axes, {}, BinaryOp::kAdd, value, nullptr});
    return full;
  }

  std::vector<Operand> Evaluate(const graph::Graph& g, const std::vector<Operand>& inputs,
                                const std::string& prefix, bool is_body) {
    std::vector<Operand> values(g.values.size());
    for (size_t i = 0; i < g.inputs.size(); ++i)
      values[static_cast<size_t>(g.inputs[i])] = inputs[i];
    for (size_t v = 0; v < g.values.size(); ++v) {
      if (!g.values[v].IsConstant() || g.values[v].payload.bytes().empty()) continue;
      values[v] = Immediate(g.values[v]);
    }
    for (size_t n = 0; n < g.nodes.size() && fits_; ++n) {
      const graph::Node& node = g.nodes[n];
      std::vector<Operand> in;
      for (ValueId v : node.inputs) {
        in.push_back(v == graph::kNoValue ? Operand{} : values[static_cast<size_t>(v)]);
        fits_ &= v == graph::kNoValue || in.back().at != nullptr;
      }
      if (!fits_) return {};
      std::vector<Operand> out = EvaluateNode(g, node, in, prefix);
      for (size_t k = 0; k < out.size() && fits_; ++k) {
        const ValueId v = node.outputs[k];
        values[static_cast<size_t>(v)] = out[k];
        if (is_body) values[static_cast<size_t>(v)] = Kept(v, out[k]);
      }
    }
    std::vector<Operand> results;
    for (ValueId v : g.outputs) {
      results.push_back(values[static_cast<size_t>(v)]);
      fits_ &= results.back().at != nullptr;
    }
    return results;
  }

  // What is carried on is computed once, whoever else reads it.
  Operand Kept(ValueId v, const Operand& operand) {
    const auto begin = body_.outputs.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(states_.size());
    const auto at = std::find(begin, end, v);
    if (at == end) return operand;
    const auto k = static_cast<size_t>(at - begin);
    next_[k] = AddStep(fmt::format("next{}", k), operand);
    return ReadOf(next_[k]);
  }

  std::vector<Operand> EvaluateNode(const graph::Graph& g, const graph::Node& node,
                                    const std::vector<Operand>& in, const std::string& prefix) {
    if (node.op == OpKind::kFused)
      return Evaluate(*node.regions[0], in, fmt::format("{}f{}_", prefix, serial_++), false);
    if (node.op == OpKind::kRequire) return {in[0]};
    if (graph::IsControl(node.op) || node.op == OpKind::kCall || node.op == OpKind::kDim ||
        node.op == OpKind::kScatter || node.op == OpKind::kAttention) {
      fits_ = false;
      return {};
    }
    return DefineAll({&node, in, g.type(node.outputs[0]),
                      fmt::format("{}{}_{}", prefix, serial_++, node.outputs[0])});
  }

  // The axis of a step at which it reads what is apart; false where it reads that elsewhere.
  bool FindAxis(const std::vector<const Expr*>& exprs, const std::vector<Var>& axes,
                int* out) const {
    bool fits = true;
    *out = kNone;
    for (const Expr* e : exprs) {
      if (!*e) continue;
      PreOrder(*e, [&](const NodeRef& n) {
        const auto* load = As<Load>(n);
        const int apart = load ? AxisOf(load->buffer.get()) : kUnknown;
        if (apart < 0) return true;
        const Expr index = tenon::Simplify(load->indices[static_cast<size_t>(apart)]);
        const auto at = std::find_if(axes.begin(), axes.end(),
                                     [&](const Var& axis) { return axis.get() == index.get(); });
        const int place = at == axes.end() ? kUnknown : static_cast<int>(at - axes.begin());
        fits &= place >= 0 && (*out < 0 || *out == place);
        *out = place;
        return true;
      });
    }
    return fits;
  }

  bool FindStepAxes() {
    for (LoopStep& s : steps_) {
      if (!FindAxis({&s.value, &s.init}, s.axes, &s.axis)) return false;
      // What begins anew is as much apart along any axis.
      for (size_t k = 0; k < next_.size(); ++k) {
        if (s.axis == kNone && next_[k] == s.full && axes_[k] >= 0) s.axis = axes_[k];
      }
    }
    for (CollectedRow& r : rows_) {
      if (!FindAxis({&r.value}, r.axes, &r.axis)) return false;
    }
    return true;
  }

  // What is carried on has its axis where the state has it, and all such axes are as long.
  bool Agree() const {
    const Expr length = this->length();
    const auto fits = [&](const std::vector<Expr>& shape, int axis) {
      return axis < 0 || graph::ProveEqual(shape[static_cast<size_t>(axis)], length);
    };
    for (size_t k = 0; k < states_.size(); ++k) {
      if (AxisOf(next_[k].get()) != axes_[k] || !fits(states_[k]->shape, axes_[k])) return false;
    }
    return std::all_of(steps_.begin(), steps_.end(),
                       [&](const LoopStep& s) { return fits(s.full->shape, s.axis); });
  }

  const graph::Graph& body_;
  const Var number_;
  const std::vector<Operand> captured_;
  std::vector<Buffer> states_, next_;
  std::vector<LoopStep> steps_;
  std::vector<CollectedRow> rows_;
  std::vector<int> axes_;  // of states
  std::set<const te::TensorNode*> made_;
  int serial_ = 0;
  bool fits_ = true;
};

// How many elements a thread has of a tensor, where that is known.
std::optional<int64_t> ElementsOfThread(const std::vector<Expr>& shape, int axis) {
  int64_t count = 1;
  for (size_t a = 0; a < shape.size(); ++a) {
    if (static_cast<int>(a) == axis) continue;
    const auto size = AsInt(shape[a]);
    if (!size || *size > kMostSteps) return std::nullopt;
    count = std::min(count * *size, kMostSteps + 1);
  }
  return count;
}

// Whether a thread's part of every tensor, and what it computes in an iteration, are numbers, and
// small ones.
bool IsLittle(const LoopBody& body) {
  constexpr int64_t kTooMany = kMostSteps + 1;
  int64_t elements = 0, work = 0;
  const auto add = [&](const std::vector<Expr>& shape, int axis) {
    const int64_t own = ElementsOfThread(shape, axis).value_or(kTooMany);
    elements += own;
    return own;
  };
  for (size_t k = 0; k < body.states().size(); ++k)
    add(body.states()[k]->shape, body.state_axis(k));
  for (const LoopStep& s : body.steps()) {
    int64_t each = add(s.full->shape, s.axis);
    for (const te::Axis& r : s.reduce) each *= AsInt(r.extent).value_or(kTooMany);
    work += each;
  }
  for (const CollectedRow& r : body.rows())
    work += ElementsOfThread(r.shape, r.axis).value_or(kTooMany);
  return elements <= 4 * kMostElements && work <= kMostSteps;
}

// Tries the axes of the first state, the longest one first, and one thread for all of it.
bool ChooseAxis(const graph::Graph& g, LoopBody* body) {
  if (body->states().empty()) return false;
  const std::vector<Expr>& shape = body->states()[0]->shape;
  std::vector<std::pair<int64_t, int>> axes;
  for (size_t a = 0; a < shape.size(); ++a) {
    // One place is none that could be told from others.
    if (!IsOne(shape[a])) axes.emplace_back(-graph::TypicalSize(g, shape[a]), static_cast<int>(a));
  }
  std::sort(axes.begin(), axes.end());
  axes.emplace_back(0, kNone);
  return std::any_of(axes.begin(), axes.end(), [&](const auto& axis) {
    return body->FindAxes(axis.second) && IsLittle(*body);
  });
}

LoopBody BodyOf(const Group& group, const Var& number) {
  const graph::Node& node = group.graph().node(group.anchor());
  const auto carried = static_cast<size_t>(node.attrs.GetInt("carried"));
  std::vector<Operand> captured;
  for (size_t i = carried; i < node.inputs.size(); ++i)
    captured.push_back(group.value(node.inputs[i]));
  return {*node.regions[0], carried, number, std::move(captured)};
}

// ---- the kernel ----

class LoopWriter {
 public:
  LoopWriter(const PrimFunc& signature, const Group& group, const LoopBody& body, Var number)
      : group_(group),
        node_(group.graph().node(group.anchor())),
        body_(body),
        number_(std::move(number)),
        names_(signature) {
    names_.Take(number_->name);
  }

  Stmt Write(int64_t threads) {
    const Var block = Fresh("block"), thread = Fresh("thread");
    place_ = block * threads + thread;
    const Expr length = body_.length();
    for (size_t k = 0; k < body_.states().size(); ++k)
      Privately(body_.states()[k], body_.state_axis(k));
    for (const LoopStep& s : body_.steps()) Privately(s.full, s.axis);
    std::vector<Stmt> all;
    for (size_t k = 0; k < body_.states().size(); ++k) all.push_back(Begin(k));
    all.push_back(For::Make(number_, IndexConst(0), node_.exprs.find("count")->second[0],
                            ForKind::kSerial, Iteration()));
    for (size_t k = 0; k < body_.states().size(); ++k) all.push_back(End(k));
    Stmt own = Seq::Make(std::move(all));
    for (const auto& [full, memory] : private_) own = Alloc::Make(memory.buffer, own);
    own = If::Make(Lt(place_, length), own);
    own = For::Make(thread, IndexConst(0), IndexConst(threads), ForKind::kThread, own, {},
                    ThreadAxis::kThreadIdxX);
    return For::Make(block, IndexConst(0), CeilDiv(length, IndexConst(threads)), ForKind::kThread,
                     own, {}, ThreadAxis::kBlockIdxX);
  }

 private:
  struct Private {
    Buffer buffer;
    int axis;
  };

  void Privately(const Buffer& full, int axis) {
    std::vector<Expr> shape = full->shape;
    if (axis >= 0) shape.erase(shape.begin() + axis);
    const Buffer own = BufferNode::Make(fmt::format("own{}_{}", private_.size(), full->name),
                                        full->dtype, shape, Scope::kRegister);
    private_.emplace_back(full, Private{own, axis});
  }
  const Private* Find(const BufferNode* full) const {
    for (const auto& [known, memory] : private_) {
      if (known.get() == full) return &memory;
    }
    return nullptr;
  }

  Var Fresh(const std::string& name) const { return VarNode::Make(names_.Fresh(name)); }

  // Without the index that is the thread's.
  static te::Indices Rest(te::Indices at, int axis) {
    if (axis >= 0) at.erase(at.begin() + axis);
    return at;
  }

  Expr Own(const Expr& e) const {
    return PostOrderRewrite(e, [&](const NodeRef& n) -> NodeRef {
      const auto* load = As<Load>(n);
      const Private* memory = load ? Find(load->buffer.get()) : nullptr;
      if (!memory) return n;
      return Load::Make(memory->buffer, Rest(load->indices, memory->axis));
    });
  }

  // Loops over what a thread has of `shape`; `make` gets the indices, the thread's place among
  // them.
  template <class F>
  Stmt Elements(const std::vector<Expr>& shape, int axis, const Expr& place, F&& make) const {
    std::vector<Var> vars;
    te::Indices at;
    for (size_t a = 0; a < shape.size(); ++a) {
      vars.push_back(Fresh(fmt::format("e{}", a)));
      at.push_back(static_cast<int>(a) == axis ? place : Expr(vars[a]));
    }
    Stmt body = make(at);
    for (size_t a = shape.size(); a-- > 0;) {
      if (static_cast<int>(a) == axis) continue;
      body = For::Make(vars[a], IndexConst(0), shape[a], ForKind::kUnrolled, body);
    }
    return body;
  }

  static VarMap Bound(const std::vector<Var>& axes, const te::Indices& at) {
    VarMap bound;
    for (size_t a = 0; a < axes.size(); ++a) bound[axes[a].get()] = at[a];
    return bound;
  }

  Stmt Begin(size_t k) const {
    const Private& own = *Find(body_.states()[k].get());
    const Operand& first = group_.value(node_.inputs[k]);
    return Elements(body_.states()[k]->shape, own.axis, place_, [&](const te::Indices& at) {
      return Store::Make(own.buffer, Rest(at, own.axis), first.at(at));
    });
  }

  Stmt Step(const LoopStep& s) const {
    const Private& own = *Find(s.full.get());
    return Elements(s.full->shape, own.axis, place_, [&](const te::Indices& at) {
      VarMap bound = Bound(s.axes, at);
      std::vector<Var> over;
      for (const te::Axis& r : s.reduce) {
        over.push_back(Fresh(r.var->name));
        bound[r.var.get()] = over.back();
      }
      const te::Indices to = Rest(at, own.axis);
      const Expr value = Own(Substitute(s.value, bound));
      if (s.reduce.empty()) return Store::Make(own.buffer, to, value);
      const Expr so_far = Load::Make(own.buffer, to);
      Stmt add = Store::Make(own.buffer, to, Binary::Make(s.combiner, so_far, value));
      for (size_t r = over.size(); r-- > 0;)
        add = For::Make(over[r], IndexConst(0), s.reduce[r].extent, ForKind::kUnrolled, add);
      return Seq::Make({Store::Make(own.buffer, to, Own(Substitute(s.init, bound))), add});
    });
  }

  // The kernel's output behind result `k` of the node.
  const StoredTensor* Output(size_t k) const {
    const std::vector<ValueId>& outputs = group_.graph().outputs;
    const auto at = std::find(outputs.begin(), outputs.end(), node_.outputs[k]);
    if (at == outputs.end()) return nullptr;
    return &group_.output(static_cast<size_t>(at - outputs.begin()));
  }

  // What does not depend on the thread one of them stores.
  Stmt ByOne(int axis, const Stmt& store) const {
    return axis >= 0 ? store : If::Make(Eq(place_, IndexConst(0)), store);
  }

  Stmt Iteration() const {
    std::vector<Stmt> all;
    for (const LoopStep& s : body_.steps()) all.push_back(Step(s));
    const size_t carried = body_.states().size();
    for (size_t k = 0; k < body_.rows().size(); ++k) {
      const CollectedRow& row = body_.rows()[k];
      const StoredTensor* out = Output(carried + k);
      if (!out) continue;
      const std::vector<Expr> shape(out->dims.begin() + 1, out->dims.end());
      all.push_back(ByOne(row.axis, Elements(shape, row.axis, place_, [&](const te::Indices& at) {
                            te::Indices to = {number_};
                            to.insert(to.end(), at.begin(), at.end());
                            return Store::Make(out->buffer, out->Place(to),
                                               Own(Substitute(row.value, Bound(row.axes, at))));
                          })));
    }
    for (size_t k = 0; k < carried; ++k) {
      const Private &state = *Find(body_.states()[k].get()), &next = *Find(body_.next()[k].get());
      all.push_back(
          Elements(body_.states()[k]->shape, state.axis, place_, [&](const te::Indices& at) {
            const te::Indices own = Rest(at, state.axis);
            return Store::Make(state.buffer, own, Load::Make(next.buffer, own));
          }));
    }
    return Seq::Make(std::move(all));
  }

  Stmt End(size_t k) const {
    const Private& own = *Find(body_.states()[k].get());
    const StoredTensor* out = Output(k);
    if (!out) return Seq::Make({});
    return ByOne(own.axis,
                 Elements(body_.states()[k]->shape, own.axis, place_, [&](const te::Indices& at) {
                   return Store::Make(out->buffer, out->Place(at),
                                      Load::Make(own.buffer, Rest(at, own.axis)));
                 }));
  }

  const Group& group_;
  const graph::Node& node_;
  const LoopBody& body_;
  const Var number_;
  Expr place_;  // of the thread along the axis
  std::vector<std::pair<Buffer, Private>> private_;
  mutable NameSupply names_;  // of loops
};

}  // namespace

bool FitsOneKernel(const graph::Graph& region) {
  KernelRequest request;
  request.region = &region;
  const Group group(request);
  const Var number = VarNode::Make("i");
  const graph::Node& node = region.node(group.anchor());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!group.value(node.inputs[i]).at) return false;
  }
  LoopBody body = BodyOf(group, number);
  return body.Trace() && ChooseAxis(region, &body);
}

Expected<Kernel> BuildLoop(const KernelRequest& request, const Group& group) {
  constexpr int64_t kThreads = 32;  // a state has few places: they spread over multiprocessors
  const graph::Graph& g = group.graph();
  const Var number = VarNode::Make("i");
  LoopBody body = BodyOf(group, number);
  if (!body.Trace() || !ChooseAxis(g, &body))
    return MakeError("expected a loop whose state has an axis along which nothing meets");
  PrimFunc f = SignatureOf(request, group);
  f.body = LoopWriter(f, group, body, number).Write(kThreads);
  Kernel kernel;
  kernel.func = WithUsedDims(PrimFunc::Make(std::move(f)));
  kernel.operands = g.inputs;
  kernel.bytes = BytesOf(group);
  return kernel;
}

}  // namespace tenon::ops

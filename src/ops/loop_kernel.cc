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
// which is the definition of each step with one index given and the memory made private. Several
// iterations are one piece of code that stores its rows (y) at its end: what they read of other
// memory comes while the first computes. Behind a store nothing could be read before it is done,
// since the row might lie there.
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
#include "ops/loop_body.h"

namespace tenon::ops {

namespace {

using graph::ValueId;

// What a thread may have in registers, and may compute in an iteration.
constexpr int64_t kMostElements = 64, kMostSteps = 1024;
// Of iterations that are one piece of code.
constexpr int64_t kMostTogether = 8, kMostStepsTogether = 512;

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

constexpr int64_t kTooMany = kMostSteps + 1;

/// What a thread has, and does in an iteration; kTooMany where that is no number, or more.
struct OwnShare {
  int64_t elements = 0, work = 0, rows = 0;
};

OwnShare OwnOf(const LoopBody& body) {
  OwnShare own;
  const auto add = [&](const std::vector<Expr>& shape, int axis) {
    const int64_t each = ElementsOfThread(shape, axis).value_or(kTooMany);
    own.elements += each;
    return each;
  };
  for (size_t k = 0; k < body.states().size(); ++k)
    add(body.states()[k]->shape, body.state_axis(k));
  for (const LoopStep& s : body.steps()) {
    int64_t each = add(s.full->shape, s.axis);
    for (const te::Axis& r : s.reduce) each *= AsInt(r.extent).value_or(kTooMany);
    own.work += each;
  }
  for (const CollectedRow& r : body.rows())
    own.rows += ElementsOfThread(r.shape, r.axis).value_or(kTooMany);
  own.work += own.rows;
  return own;
}

bool IsLittle(const LoopBody& body) {
  const OwnShare own = OwnOf(body);
  return own.elements <= 4 * kMostElements && own.work <= kMostSteps;
}

// Needs: IsLittle.
int64_t IterationsTogether(const LoopBody& body) {
  const OwnShare own = OwnOf(body);
  const int64_t fit = std::min(kMostElements / std::max<int64_t>(own.rows, 1),
                               kMostStepsTogether / std::max<int64_t>(own.work, 1));
  return std::clamp<int64_t>(fit, 1, kMostTogether);
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
  axes.emplace_back(0, kNoAxis);
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
    AddIterations(node_.exprs.find("count")->second[0], &all);
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

  void AddIterations(const Expr& count, std::vector<Stmt>* all) const {
    const int64_t together = IterationsTogether(body_);
    const Expr whole = tenon::Simplify(count / together), rest = tenon::Simplify(count % together);
    if (together > 1) all->push_back(Chunks(whole, together));
    const Expr first = together > 1 ? tenon::Simplify(whole * together) : IndexConst(0);
    const Expr more = together > 1 ? rest : count;
    if (IsZero(more)) return;
    const Var last = Fresh("last");
    const auto store = [&](size_t k, const te::Indices& at, const Expr& value) {
      return StoreRow(k, at, first + last, value);
    };
    all->push_back(For::Make(last, IndexConst(0), more, ForKind::kSerial,
                             AtIteration(Iteration(store), first + last)));
  }

  // Rows wait in registers for the end of the chunk.
  Stmt Chunks(const Expr& count, int64_t together) const {
    const Var chunk = Fresh("chunk"), of_chunk = Fresh("of_chunk"), again = Fresh("again");
    std::map<size_t, Buffer> kept;
    for (size_t k = 0; k < body_.rows().size(); ++k) {
      const CollectedRow& row = body_.rows()[k];
      if (!Output(body_.states().size() + k)) continue;
      std::vector<Expr> shape = Rest(row.shape, row.axis);
      shape.insert(shape.begin(), IndexConst(together));
      kept[k] =
          BufferNode::Make(fmt::format("rows{}", k), row.value->dtype, shape, Scope::kRegister);
    }
    const auto place = [&](size_t k, const Var& number, const te::Indices& at) {
      te::Indices to = Rest(at, body_.rows()[k].axis);
      to.insert(to.begin(), number);
      return to;
    };
    const Stmt compute = Iteration([&](size_t k, const te::Indices& at, const Expr& value) {
      return Store::Make(kept.at(k), place(k, of_chunk, at), value);
    });
    std::vector<Stmt> stores;
    for (const auto& [k, rows] : kept) {
      stores.push_back(Row(k, [&, index = k](const te::Indices& at) {
        return StoreRow(index, at, chunk * together + again,
                        Load::Make(kept.at(index), place(index, again, at)));
      }));
    }
    const Expr size = IndexConst(together);
    Stmt body = Seq::Make(
        {For::Make(of_chunk, IndexConst(0), size, ForKind::kUnrolled,
                   AtIteration(compute, chunk * together + of_chunk)),
         For::Make(again, IndexConst(0), size, ForKind::kUnrolled, Seq::Make(std::move(stores)))});
    for (const auto& [k, rows] : kept) body = Alloc::Make(rows, body);
    return For::Make(chunk, IndexConst(0), count, ForKind::kSerial, body);
  }

  Stmt AtIteration(const Stmt& iteration, const Expr& number) const {
    return Substitute(iteration, {{number_.get(), number}});
  }

  // The elements of a row that are the thread's; those that are everybody's one of them stores.
  template <class F>
  Stmt Row(size_t k, F&& make) const {
    const CollectedRow& row = body_.rows()[k];
    return Elements(row.shape, row.axis, place_, make);
  }

  Stmt StoreRow(size_t k, const te::Indices& at, const Expr& number, const Expr& value) const {
    const StoredTensor* out = Output(body_.states().size() + k);
    te::Indices to = {number};
    to.insert(to.end(), at.begin(), at.end());
    return ByOne(body_.rows()[k].axis, Store::Make(out->buffer, out->Place(to), value));
  }

  // `store` gets the number of a result, where an element stands in its row, and the element.
  template <class F>
  Stmt Iteration(F&& store) const {
    std::vector<Stmt> all;
    for (const LoopStep& s : body_.steps()) all.push_back(Step(s));
    const size_t carried = body_.states().size();
    for (size_t k = 0; k < body_.rows().size(); ++k) {
      const CollectedRow& row = body_.rows()[k];
      if (!Output(carried + k)) continue;
      all.push_back(Row(k, [&](const te::Indices& at) {
        return store(k, at, Own(Substitute(row.value, Bound(row.axes, at))));
      }));
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

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
//
// Where the axis has too few places for all threads of a machine, and nothing meets along another
// one but in sums that become rows (here j, in y), that one is shared by lanes, a thread each. They
// put their parts of the sums of all iterations of a piece into memory that a block shares, and
// meet there twice a piece.
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
#include "ops/loop_share.h"

namespace tenon::ops {

namespace {

using graph::ValueId;

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

  // `places` of the axis are a block's.
  Stmt Write(int64_t places) {
    const int64_t lanes = body_.lanes(), threads = places * lanes;
    const Var block = Fresh("block"), thread = Fresh("thread");
    const Expr length = body_.length();
    places_ = places;
    first_ = block * places;
    thread_ = thread;
    place_ = first_ + thread / lanes;
    lane_ = thread % lanes;
    Expr inside = Lt(place_, length);
    // Who waits for others goes along, behind the end as well.
    if (lanes > 1) place_ = Min(place_, length - 1);
    for (size_t k = 0; k < body_.states().size(); ++k)
      Privately(body_.states()[k], body_.state_axis(k), body_.state_lane(k));
    for (const LoopStep& s : body_.steps()) Privately(s.full, s.axis, s.lane);
    if (lanes > 1) ShareSums();
    std::vector<Stmt> all;
    for (size_t k = 0; k < body_.states().size(); ++k) all.push_back(Begin(k));
    AddIterations(node_.exprs.find("count")->second[0], &all);
    for (size_t k = 0; k < body_.states().size(); ++k)
      all.push_back(lanes > 1 ? If::Make(inside, End(k)) : End(k));
    Stmt own = Seq::Make(std::move(all));
    for (const auto& [full, memory] : private_) own = Alloc::Make(memory.buffer, own);
    if (lanes == 1) own = If::Make(inside, own);
    own = For::Make(thread, IndexConst(0), IndexConst(threads), ForKind::kThread, own, {},
                    ThreadAxis::kThreadIdxX);
    for (const auto& [step, sums] : sums_) own = Alloc::Make(sums, own);
    return For::Make(block, IndexConst(0), CeilDiv(length, IndexConst(places)), ForKind::kThread,
                     own, {}, ThreadAxis::kBlockIdxX);
  }

 private:
  struct Private {
    Buffer buffer;
    int axis, lane;
  };

  void Privately(const Buffer& full, int axis, int lane) {
    const std::vector<Expr> shape = Rest(full->shape, axis, lane);
    const Buffer own = BufferNode::Make(fmt::format("own{}_{}", private_.size(), full->name),
                                        full->dtype, shape, Scope::kRegister);
    private_.emplace_back(full, Private{own, axis, lane});
  }

  // Where lanes put down what they add up: for each of them the sums of all places, iteration by
  // iteration, and a word more, so that neither who writes nor who adds meets in one bank.
  void ShareSums() {
    const int64_t sums = IterationsTogether(body_) * places_;
    for (const LoopStep& s : body_.steps()) {
      if (!s.meets) continue;
      sums_.emplace_back(
          &s, BufferNode::Make(fmt::format("sums{}", sums_.size()), s.full->dtype,
                               std::vector<Expr>{IndexConst(body_.lanes()), IndexConst(sums + 1)},
                               Scope::kShared));
    }
  }
  const Private* Find(const BufferNode* full) const {
    for (const auto& [known, memory] : private_) {
      if (known.get() == full) return &memory;
    }
    return nullptr;
  }

  Var Fresh(const std::string& name) const { return VarNode::Make(names_.Fresh(name)); }

  // Without the indices that are the thread's.
  static te::Indices Rest(te::Indices at, int axis, int lane = kNoAxis) {
    for (int a : {std::max(axis, lane), std::min(axis, lane)}) {
      if (a >= 0) at.erase(at.begin() + a);
    }
    return at;
  }
  static te::Indices Rest(te::Indices at, const Private& own) {
    return Rest(std::move(at), own.axis, own.lane);
  }

  Expr Own(const Expr& e) const {
    return PostOrderRewrite(e, [&](const NodeRef& n) -> NodeRef {
      const auto* load = As<Load>(n);
      const Private* memory = load ? Find(load->buffer.get()) : nullptr;
      if (!memory) return n;
      return Load::Make(memory->buffer, Rest(load->indices, *memory));
    });
  }

  // Loops over what a thread has of `shape`; `make` gets the indices, the thread's place and lane
  // among them.
  template <class F>
  Stmt Elements(const std::vector<Expr>& shape, int axis, int lane, F&& make) const {
    std::vector<Var> vars;
    te::Indices at;
    for (size_t a = 0; a < shape.size(); ++a) {
      vars.push_back(Fresh(fmt::format("e{}", a)));
      at.push_back(static_cast<int>(a) == axis   ? place_
                   : static_cast<int>(a) == lane ? lane_
                                                 : Expr(vars[a]));
    }
    Stmt body = make(at);
    for (size_t a = shape.size(); a-- > 0;) {
      if (static_cast<int>(a) == axis || static_cast<int>(a) == lane) continue;
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
    return Elements(body_.states()[k]->shape, own.axis, own.lane, [&](const te::Indices& at) {
      return Store::Make(own.buffer, Rest(at, own), first.at(at));
    });
  }

  Stmt Step(const LoopStep& s) const {
    const Private& own = *Find(s.full.get());
    return Elements(s.full->shape, own.axis, own.lane, [&](const te::Indices& at) {
      VarMap bound = Bound(s.axes, at);
      std::vector<Var> over;
      for (const te::Axis& r : s.reduce) {
        over.push_back(Fresh(r.var->name));
        bound[r.var.get()] = r.var == s.meets ? lane_ : Expr(over.back());
      }
      const te::Indices to = Rest(at, own);
      const Expr value = Own(Substitute(s.value, bound));
      if (s.reduce.empty()) return Store::Make(own.buffer, to, value);
      const Expr so_far = Load::Make(own.buffer, to);
      Stmt add = Store::Make(own.buffer, to, Binary::Make(s.combiner, so_far, value));
      for (size_t r = over.size(); r-- > 0;)
        if (s.reduce[r].var != s.meets)
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
    const Stmt one =
        body_.lanes() > 1 ? Met(first + last, 1) : AtIteration(Iteration(store), first + last);
    all->push_back(For::Make(last, IndexConst(0), more, ForKind::kSerial, one));
  }

  // So many iterations from `first` on, of which lanes put down their parts of sums; when all have,
  // as many threads as there are rows and places add them up and store the rows.
  Stmt Met(const Expr& first, int64_t together) const {
    const Var of_chunk = Fresh("of_chunk"), turn = Fresh("turn");
    std::vector<Stmt> each = {Iteration(nullptr)};
    for (const auto& [step, sums] : sums_) {
      const Buffer& part = Find(step->full.get())->buffer;
      const te::Indices only(part->shape.size(), IndexConst(0));
      each.push_back(Store::Make(sums, {lane_, of_chunk * places_ + thread_ / body_.lanes()},
                                 Load::Make(part, only)));
    }
    const int64_t threads = places_ * body_.lanes(), all = together * places_;
    const Expr item = turn * threads + thread_;
    const Expr place = first_ + item % places_, number = first + item / places_;
    const Stmt rows = If::Make(And(Lt(item, IndexConst(all)), Lt(place, body_.length())),
                               MetRows(item, place, number));
    return Seq::Make({For::Make(of_chunk, IndexConst(0), IndexConst(together), ForKind::kUnrolled,
                                AtIteration(Seq::Make(std::move(each)), first + of_chunk)),
                      Sync::Make(Level::kCta),
                      For::Make(turn, IndexConst(0), IndexConst((all + threads - 1) / threads),
                                ForKind::kUnrolled, rows),
                      Sync::Make(Level::kCta)});
  }

  // The rows of an iteration at a place, of sums that stand at `item`.
  Stmt MetRows(const Expr& item, const Expr& place, const Expr& number) const {
    std::vector<Stmt> all;
    std::map<const BufferNode*, Buffer> met;
    for (const auto& [step, sums] : sums_) {
      const Buffer sum = BufferNode::Make(fmt::format("met{}", met.size()), step->full->dtype,
                                          std::vector<Expr>{IndexConst(1)}, Scope::kRegister);
      met[step->full.get()] = sum;
      const Var lane = Fresh("lane");
      const Expr so_far = Load::Make(sum, {IndexConst(0)});
      all.push_back(Store::Make(sum, {IndexConst(0)}, Load::Make(sums, {IndexConst(0), item})));
      all.push_back(
          For::Make(lane, IndexConst(1), IndexConst(body_.lanes() - 1), ForKind::kUnrolled,
                    Store::Make(sum, {IndexConst(0)}, so_far + Load::Make(sums, {lane, item}))));
    }
    for (size_t k = 0; k < body_.rows().size(); ++k) {
      const CollectedRow& row = body_.rows()[k];
      const StoredTensor* out = Output(body_.states().size() + k);
      if (!out) continue;
      te::Indices at(row.shape.size(), IndexConst(0));
      at[static_cast<size_t>(row.axis)] = place;
      VarMap bound = Bound(row.axes, at);
      bound[number_.get()] = number;
      const Expr value =
          PostOrderRewrite(Substitute(row.value, bound), [&](const NodeRef& n) -> NodeRef {
            const auto* load = As<Load>(n);
            const auto sum = load ? met.find(load->buffer.get()) : met.end();
            return sum == met.end() ? n : NodeRef(Load::Make(sum->second, {IndexConst(0)}));
          });
      te::Indices to = {number};
      to.insert(to.end(), at.begin(), at.end());
      all.push_back(Store::Make(out->buffer, out->Place(to), value));
    }
    Stmt body = Seq::Make(std::move(all));
    for (const auto& [full, sum] : met) body = Alloc::Make(sum, body);
    return body;
  }

  // Rows wait in registers for the end of the chunk.
  Stmt Chunks(const Expr& count, int64_t together) const {
    const Var chunk = Fresh("chunk"), of_chunk = Fresh("of_chunk"), again = Fresh("again");
    if (body_.lanes() > 1) {
      return For::Make(chunk, IndexConst(0), count, ForKind::kSerial,
                       Met(chunk * together, together));
    }
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
    return Elements(row.shape, row.axis, kNoAxis, make);
  }

  Stmt StoreRow(size_t k, const te::Indices& at, const Expr& number, const Expr& value) const {
    const StoredTensor* out = Output(body_.states().size() + k);
    te::Indices to = {number};
    to.insert(to.end(), at.begin(), at.end());
    return ByOne(body_.rows()[k].axis, Store::Make(out->buffer, out->Place(to), value));
  }

  // `store` gets the number of a result, where an element stands in its row, and the element; null:
  // rows are for later.
  using StoreFn = std::function<Stmt(size_t k, const te::Indices& at, const Expr& value)>;
  Stmt Iteration(const StoreFn& store) const {
    std::vector<Stmt> all;
    for (const LoopStep& s : body_.steps()) all.push_back(Step(s));
    const size_t carried = body_.states().size();
    for (size_t k = 0; store && k < body_.rows().size(); ++k) {
      const CollectedRow& row = body_.rows()[k];
      if (!Output(carried + k)) continue;
      all.push_back(Row(k, [&](const te::Indices& at) {
        return store(k, at, Own(Substitute(row.value, Bound(row.axes, at))));
      }));
    }
    for (size_t k = 0; k < carried; ++k) {
      const Private &state = *Find(body_.states()[k].get()), &next = *Find(body_.next()[k].get());
      all.push_back(
          Elements(body_.states()[k]->shape, state.axis, state.lane, [&](const te::Indices& at) {
            const te::Indices own = Rest(at, state);
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
                 Elements(body_.states()[k]->shape, own.axis, own.lane, [&](const te::Indices& at) {
                   return Store::Make(out->buffer, out->Place(at),
                                      Load::Make(own.buffer, Rest(at, own)));
                 }));
  }

  const Group& group_;
  const graph::Node& node_;
  const LoopBody& body_;
  const Var number_;
  int64_t places_ = 1;                                    // of the axis that are a block's,
  Expr first_;                                            // the first of them,
  Expr thread_, place_, lane_;                            // and the thread, its own, and its lane
  std::vector<std::pair<const LoopStep*, Buffer>> sums_;  // of lanes
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
  // A state has few places: they spread over multiprocessors. Lanes are for those that are too few
  // to fill them.
  constexpr int64_t kThreads = 32, kThreadsOfLanes = 64, kThreadsTogether = 2048;
  const graph::Graph& g = group.graph();
  const Var number = VarNode::Make("i");
  LoopBody body = BodyOf(group, number);
  if (!body.Trace() || !ChooseAxis(g, &body))
    return MakeError("expected a loop whose state has an axis along which nothing meets");
  int64_t places = kThreads;
  if (graph::TypicalSize(g, body.length()) < request.machine->workers * kThreadsTogether / 4 &&
      body.FindLanes()) {
    places = std::max<int64_t>(1, kThreadsOfLanes / body.lanes());
  }
  PrimFunc f = SignatureOf(request, group);
  f.body = LoopWriter(f, group, body, number).Write(places);
  Kernel kernel;
  kernel.func = WithUsedDims(PrimFunc::Make(std::move(f)));
  kernel.operands = g.inputs;
  kernel.bytes = BytesOf(group);
  return kernel;
}

}  // namespace tenon::ops

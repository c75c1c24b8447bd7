#include "loop/pass/place_syncs.h"

#include <algorithm>

#include "loop/pass/access.h"
#include "loop/pass/repetitions.h"
#include "loop/pass/rewrite.h"
#include "loop/pass/variance.h"
#include "loop/threads.h"

namespace tenon {

bool IsThreadPrivate(const Buffer& buffer) {
  return buffer->scope == "local" || buffer->scope == "register" || buffer->scope == "tile" ||
         IsFragment(*buffer);
}

bool HasSync(const Stmt& stmt) {
  bool found = false;
  PreOrder(stmt, [&](const NodeRef& n) {
    found |= n->kind == NodeKind::kSync;
    return !found && !IsA<ExprNode>(n);
  });
  return found;
}

namespace {

constexpr size_t kAxes = std::tuple_size_v<AxisExtents>;
const auto kLaneRank = static_cast<size_t>(AxisRank(kLaneAxis));
bool IsBlockRank(size_t axis) { return axis < 3; }

// The loop that gives an access its thread along an axis.
struct Binder {
  const For* loop = nullptr;
  size_t depth = 0;       // loops around it
  size_t around = 0;      // conditions, bounds and lets around it
  bool repeated = false;  // one of them runs it several times
};

struct Access {
  Buffer buffer;
  std::vector<Expr> indices;  // empty: anywhere
  bool write = false, atomic = false;
  bool arrival = false;     // a wait of the thread for what it copied to the buffer
  std::vector<Expr> fixed;  // its indices; null: of a box, in dimensions of several elements
  bool solo = false;        // its statement is left to one thread along axes without a binder
  std::array<Binder, kAxes> binders;
};
using AccessList = std::vector<Access>;

// What a statement does around its barriers.
struct Flow {
  Stmt stmt;
  AccessList head, tail;  // before the first barrier, after the last one
  bool always = false;    // there is one on every path
};

void Append(AccessList* to, const AccessList& from) {
  to->insert(to->end(), from.begin(), from.end());
}

class Placer {
 public:
  Placer(const PrimFunc& func, const Module& module, const AxisExtents& extents)
      : module_(module), extents_(extents) {
    BindDims(func, &analyzer_);
  }

  SyncPlan operator()(const Stmt& body) {
    body_ = body;
    written_ = AccessesOf(body, module_, [](const Buffer&) { return true; }).writes;
    PreOrder(body, [&](const NodeRef& n) {
      const auto* call = As<CallFunc>(n);
      if (const Func callee = call ? module_.Find(call->callee) : nullptr;
          callee && AsyncPart(*callee) == kAsyncCopy)
        copied_.push_back(call->buffers.back()->buffer);
      return !IsA<ExprNode>(n);
    });
    Stmt placed = Walk(body).stmt;
    CheckPairs();
    return {placed, std::move(unmet_)};
  }

 private:
  // ---- accesses ----

  Access At(const Buffer& buffer, std::vector<Expr> indices, bool write, bool atomic) const {
    return {buffer, indices, write, atomic, false, std::move(indices), false, binders_};
  }

  AccessList Collect(const NodeRef& node) {
    AccessList out;
    auto add = [&](const Buffer& b, std::vector<Expr> indices, bool write, bool atomic = false) {
      if (written_.count(b.get()) != 0) out.push_back(At(b, std::move(indices), write, atomic));
    };
    PreOrder(node, [&](const NodeRef& n) {
      if (const auto* s = As<Load>(n)) add(s->buffer, s->indices, false);
      if (const auto* s = As<Store>(n)) add(s->buffer, s->indices, true);
      if (const auto* s = As<Atomic>(n)) add(s->buffer, s->indices, true, true);
      if (IsA<Copy>(n) || IsA<CallFunc>(n) || IsA<Call>(n)) {
        Accesses all = AccessesOf(n, module_, [](const Buffer&) { return true; });
        AddUnknown(n, all, &out);
        return IsA<Call>(n);
      }
      return true;
    });
    const bool visible = std::any_of(out.begin(), out.end(), [](const Access& a) {
      return a.write && !IsThreadPrivate(a.buffer);
    });
    for (Access& a : out) a.solo = visible && !IsA<ExprNode>(node);
    Append(&all_, out);
    return out;
  }

  // Whole buffers that a copy or a callee touches, or whose address is taken.
  void AddUnknown(const NodeRef& node, const Accesses& found, AccessList* out) {
    const auto* call = As<Call>(node);
    if (call && call->intrinsic != Intrinsic::kBufferData) return;
    auto regions = [&](const std::vector<Region>& list) {
      for (const Region& r : list) {
        if (written_.count(r->buffer.get()) == 0) continue;
        out->push_back(At(r->buffer, {}, found.writes.count(r->buffer.get()) != 0, false));
        out->back().fixed.clear();
        for (const Range& range : r->ranges)
          out->back().fixed.push_back(IsOne(range->extent) ? range->min : nullptr);
        out->back().indices = AnyOf(*r);
      }
    };
    if (const auto* s = As<CallFunc>(node)) {
      const Func callee = module_.Find(s->callee);
      const bool waits = callee && AsyncPart(*callee) == kAsyncWait;
      for (size_t i = 0; waits && i < copied_.size(); ++i) {
        out->push_back(At(copied_[i], {}, false, false));
        out->back().arrival = true;
      }
    }
    if (const auto* s = As<Copy>(node)) regions({s->dst, s->src});
    if (const auto* s = As<CallFunc>(node)) regions(s->buffers);
    if (call) {
      if (const auto* load = As<Load>(call->args[0]))
        out->push_back(At(load->buffer, {}, true, false));
    }
  }

  // The indices of any element of a box of constant size; empty for others.
  std::vector<Expr> AnyOf(const RegionNode& region) {
    std::vector<Expr> out;
    for (const Range& range : region.ranges) {
      const auto extent = AsInt(analyzer_.Simplify(range->extent));
      if (!extent) return {};
      Var any = VarNode::Make("any", DType::Index());
      analyzer_.Bind(any, IndexConst(0), range->extent);
      out.push_back(*extent == 1 ? range->min : range->min + any);
    }
    return out;
  }

  // ---- dependence ----

  bool Matters(size_t axis) const { return extents_[axis] && !IsOne(extents_[axis]); }

  bool MadeInside(const Buffer& buffer, const Binder& binder) const {
    auto it = alloc_depth_.find(buffer.get());
    return it != alloc_depth_.end() && it->second > binder.depth;
  }

  // True for memory that each iteration of the loop may treat as its own, made in it or written
  // before it is read, but that is there once for all threads along the axis.
  bool MadeOnce(const Buffer& buffer, size_t axis, const Binder& binder) {
    const bool one = buffer->scope == "global" || (buffer->scope == "shared" && !IsBlockRank(axis));
    return one && (MadeInside(buffer, binder) || IsOwnOf(*binder.loop, buffer));
  }

  // True for memory made here that is used in that loop alone.
  bool IsOwnOf(const For& loop, const Buffer& buffer) {
    auto [it, fresh] = used_outside_.try_emplace(&loop);
    if (fresh) {
      PreOrder(body_, [&, outside = &it->second](const NodeRef& n) {
        if (const auto* s = As<Store>(n)) outside->insert(s->buffer.get());
        if (const auto* s = As<Load>(n)) outside->insert(s->buffer.get());
        if (const auto* s = As<Atomic>(n)) outside->insert(s->buffer.get());
        if (const auto* s = As<RegionNode>(n)) outside->insert(s->buffer.get());
        return n.get() != &loop;
      });
    }
    return alloc_depth_.count(buffer.get()) != 0 && it->second.count(buffer.get()) == 0;
  }

  // True when the two touch one element only in the same thread along the axis; the two executions
  // have the loops up to `depth` in common.
  bool SameThread(const Access& a, const Access& b, size_t axis, size_t depth) {
    // Which lane has an element is said by its layout, and the same everywhere.
    if (!Matters(axis) || (axis == kLaneRank && IsFragment(*a.buffer))) return true;
    const Binder &x = a.binders[axis], &y = b.binders[axis];
    if (!x.loop && !y.loop) return IsThreadPrivate(a.buffer) || (a.solo && b.solo);
    if (!x.loop || !y.loop) {
      // Every thread has written its own copy of what it reads.
      const Access& writer = a.write ? a : b;
      return IsThreadPrivate(a.buffer) && !IsBlockRank(axis) && !writer.binders[axis].loop &&
             !(a.write && b.write);
    }
    if (x.loop == y.loop && x.depth < depth && !MadeOnce(a.buffer, axis, x)) return true;
    return IndexTells(a, b, x, y);
  }

  bool IndexTells(const Access& a, const Access& b, const Binder& x, const Binder& y) {
    if (!IsZero(x.loop->min) || !IsZero(y.loop->min)) return false;
    return ElementTells(*a.buffer, a.indices, {x.loop->var, x.loop->extent}, b.indices,
                        {y.loop->var, y.loop->extent}, &analyzer_);
  }

  // What was waited for is there for other threads behind a barrier; before it, nobody is in the
  // way that was not when it was copied.
  static bool Depend(const Access& a, const Access& b) {
    if (a.arrival || b.arrival) return a.buffer == b.buffer && a.arrival && !b.arrival && !b.write;
    return a.buffer == b.buffer && (a.write || b.write) && !(a.atomic && b.atomic);
  }

  // Boxes of different versions of a buffer, told by the loops that both are in.
  bool Apart(const Access& a, const Access& b, size_t depth) {
    for (size_t d = 0; d < a.fixed.size() && d < b.fixed.size(); ++d) {
      if (!a.fixed[d] || !b.fixed[d]) continue;
      if (!IsTold(a.fixed[d], depth) || !IsTold(b.fixed[d], depth)) continue;
      const auto count = AsInt(a.buffer->shape[d]);
      if (!count) continue;
      const auto apart = AsInt(analyzer_.Simplify((a.fixed[d] - b.fixed[d]) % *count));
      if (apart && *apart != 0) return true;
      if (analyzer_.CanProve(Ne(a.fixed[d], b.fixed[d]))) return true;
    }
    return false;
  }

  // Only variables of the outermost `depth` loops, with one value for all threads of a block.
  bool IsTold(const Expr& e, size_t depth) const {
    bool told = IsPure(e);
    PreOrder(e, [&](const NodeRef& n) {
      auto it = loop_depth_.find(n.get());
      if (IsA<VarNode>(n))
        told &= it != loop_depth_.end() && it->second < depth && varying_.count(n.get()) == 0;
      told &= !IsA<Load>(n);
      return told;
    });
    return told;
  }

  // A buffer through which threads of a block depend on each other; null: none. The two lists have
  // the loops up to `depth` in common; boxes speak of the loops up to `told`.
  const Access* Conflict(const AccessList& before, const AccessList& after, size_t depth,
                         size_t told) {
    for (const Access& a : before) {
      if (IsThreadPrivate(a.buffer)) continue;
      for (const Access& b : after) {
        if (!Depend(a, b) || Apart(a, b, told)) continue;
        for (size_t axis = 3; axis < kAxes; ++axis) {
          if (!SameThread(a, b, axis, depth)) return &a;
        }
      }
    }
    return nullptr;
  }

  // The same between one iteration and those that follow it. Where each has a barrier, that is the
  // next one.
  const Access* ConflictWithNext(const Flow& flow, const For& loop, size_t depth) {
    if (!flow.always) return Conflict(flow.tail, flow.head, depth, depth);
    AccessList next = flow.head;
    for (Access& a : next) {
      for (Expr& e : a.fixed)
        e = e ? Substitute(e, VarMap{{loop.var.get(), Expr(loop.var) + 1}}) : nullptr;
    }
    return Conflict(flow.tail, next, depth, depth + 1);
  }

  // What no barrier helps: data that crosses blocks, or threads through their own memory, or shared
  // memory of which each thread needs a copy.
  void CheckPairs() {
    for (size_t i = 0; i < all_.size(); ++i) {
      for (size_t j = i; j < all_.size(); ++j) {
        if (Depend(all_[i], all_[j]) && CheckPair(all_[i], all_[j])) return;
      }
    }
  }

  // Within one loop over the axis: each iteration may have its own values in elements that others
  // write as well. (Where each element has one writer, it is the one who reads it. An author of
  // barriers speaks of threads.)
  bool NeedsCopies(const Access& a, const Access& b, size_t axis) {
    const For* loop = a.binders[axis].loop;
    if (!MadeOnce(a.buffer, axis, a.binders[axis]) || HasSync(loop->body)) return false;
    return (a.write && b.write) || std::any_of(all_.begin(), all_.end(), [&](const Access& other) {
             return other.buffer == a.buffer && other.write && other.binders[axis].loop != loop;
           });
  }

  bool CheckPair(const Access& a, const Access& b) {
    if (a.arrival) return false;  // the copy is checked
    for (size_t axis = 0; axis < kAxes; ++axis) {
      const bool block = IsBlockRank(axis), own = IsThreadPrivate(a.buffer);
      if (own && a.write && b.write) continue;
      const Binder &x = a.binders[axis], &y = b.binders[axis];
      const bool copies = x.loop && x.loop == y.loop && NeedsCopies(a, b, axis);
      if (!block && !own && !copies) continue;
      const bool once = !x.repeated || MadeInside(a.buffer, x);
      if (SameThread(a, b, axis, once ? x.depth + 1 : 0)) continue;
      const std::string& name = a.buffer->name;
      if (copies) {
        Unmet("buffer " + name + " in " + a.buffer->scope + " is made for each " +
              (block ? "block of threads: expected it in shared or local"
                     : "thread: expected it in local"));
      } else if (block) {
        Unmet("buffer " + name +
              " is written by one block of threads and touched by another: "
              "blocks cannot wait for each other");
      } else {
        Unmet("buffer " + name + " in " + a.buffer->scope +
              " is written by one thread and read by another: expected it in shared");
      }
      return true;
    }
    return false;
  }

  void Unmet(const std::string& what) {
    if (std::find(unmet_.begin(), unmet_.end(), what) == unmet_.end()) unmet_.push_back(what);
  }

  // ---- control flow ----

  // True when all threads of a block see the same value.
  bool IsUniform(const Expr& e) const {
    bool uniform = true;
    PreOrder(e, [&](const NodeRef& n) {
      if (const auto* load = As<Load>(n)) uniform &= !IsThreadPrivate(load->buffer);
      if (IsA<VarNode>(n)) uniform &= varying_.count(n.get()) == 0;
      return uniform;
    });
    return uniform;
  }
  static bool LoadsNothing(const Expr& e) {
    bool loads = false;
    PreOrder(e, [&](const NodeRef& n) {
      loads |= IsA<Load>(n);
      return !loads;
    });
    return !loads && IsPure(e);
  }

  Stmt Barrier(const Access& why) {
    if (blocked_.empty()) return Sync::Make(Level::kCta);
    Unmet("buffer " + why.buffer->name + " needs a barrier " + blocked_);
    return nullptr;
  }

  Flow Walk(const Stmt& stmt) {
    switch (stmt->kind) {
      case NodeKind::kSeq: return InOrder({}, As<Seq>(stmt)->stmts);
      case NodeKind::kFor: return OnFor(*As<For>(stmt));
      case NodeKind::kIf: return OnIf(*As<If>(stmt));
      case NodeKind::kWhile: return OnWhile(*As<While>(stmt));
      case NodeKind::kLet: {
        const auto* let = As<Let>(stmt);
        if (!IsUniform(let->value)) varying_.insert(let->var.get());
        if (IsPure(let->value) && LoadsNothing(let->value) && !let->var->dtype.IsFloat())
          analyzer_.BindValue(let->var, let->value);
        around_.push_back(let->value);
        Flow flow = InOrder(Collect(let->value), {let->body});
        around_.pop_back();
        flow.stmt = Let::Make(let->var, let->value, flow.stmt);
        return flow;
      }
      case NodeKind::kAlloc: {
        const auto* alloc = As<Alloc>(stmt);
        alloc_depth_[alloc->buffer.get()] = depth_;
        Flow flow = Walk(alloc->body);
        flow.stmt = Alloc::Make(alloc->buffer, flow.stmt);
        return flow;
      }
      case NodeKind::kBind: {
        const auto* bind = As<Bind>(stmt);
        Flow flow = Walk(bind->body);
        flow.stmt = Bind::Make(bind->buffer, bind->data, flow.stmt);
        return flow;
      }
      case NodeKind::kSync: {
        if (As<Sync>(stmt)->level != Level::kCta) return {stmt, {}, {}, false};
        if (!blocked_.empty()) Unmet("a barrier stands " + blocked_);
        return {stmt, {}, {}, true};
      }
      default: {
        AccessList own = Collect(stmt);
        return {stmt, own, own, false};
      }
    }
  }

  // `first`, then the statements, with barriers between them.
  Flow InOrder(const AccessList& first, const std::vector<Stmt>& stmts) {
    std::vector<Stmt> out;
    Flow all{nullptr, first, first, false};
    for (const Stmt& s : stmts) {
      Flow flow = Walk(s);
      if (const Access* why = Conflict(all.tail, flow.head, depth_, depth_)) {
        if (Stmt barrier = Barrier(*why)) {
          out.push_back(barrier);
          all.tail.clear();
          all.always = true;
        }
      }
      if (!all.always) Append(&all.head, flow.head);
      if (flow.always) all.tail.clear();
      all.always |= flow.always;
      Append(&all.tail, flow.tail);
      out.push_back(flow.stmt);
    }
    all.stmt = Seq::Make(std::move(out));
    return all;
  }

  Flow OnFor(const For& loop) {
    AccessList bounds = Collect(loop.extent);
    const int rank = loop.for_kind == ForKind::kThread ? AxisRank(loop.thread) : -1;
    const bool uniform = IsUniform(loop.min) && IsUniform(loop.extent);
    if (!uniform || (rank >= 0 && !IsBlockRank(static_cast<size_t>(rank))))
      varying_.insert(loop.var.get());
    analyzer_.Bind(loop.var, loop.min, loop.extent);
    if (OnceRank(loop) >= 0) return OnOnce(loop, static_cast<size_t>(OnceRank(loop)));
    const size_t depth = depth_++;
    loop_depth_[loop.var.get()] = depth;
    Flow flow =
        rank >= 0 ? OnAxis(loop, static_cast<size_t>(rank), depth) : OnSerial(loop, uniform, depth);
    --depth_;
    AccessList head = bounds;
    Append(&head, flow.head);
    flow.head = std::move(head);
    return flow;
  }

  Flow OnOnce(const For& loop, size_t axis) {
    Binder outer = std::exchange(binders_[axis], Binder{});
    Flow flow = Walk(loop.body);
    binders_[axis] = outer;
    flow.stmt = For::Make(loop.var, loop.min, loop.extent, loop.for_kind, flow.stmt, loop.attrs);
    return flow;
  }

  Flow OnAxis(const For& loop, size_t axis, size_t depth) {
    if (const For* outer = binders_[axis].loop) CheckRepeats(loop, *outer, binders_[axis].around);
    Binder outer =
        std::exchange(binders_[axis], Binder{&loop, depth, around_.size(), repeating_ > 0});
    Flow flow = Walk(loop.body);
    binders_[axis] = outer;
    flow.stmt = For::Make(loop.var, loop.min, loop.extent, loop.for_kind, flow.stmt, loop.attrs,
                          loop.thread);
    return flow;
  }

  // All threads together do what each iteration of `outer` would do in full, so that must be the
  // same for all of these.
  void CheckRepeats(const For& loop, const For& outer, size_t around) {
    const Variance& variance =
        variance_.try_emplace(&outer, Variance(outer.var, outer.body, &module_)).first->second;
    bool differs = variance.Differs(loop.body) || variance.Differs(loop.extent);
    for (size_t i = around; i < around_.size(); ++i) differs |= variance.Differs(around_[i]);
    if (!differs) return;
    Unmet("loop '" + loop.var->name + "' over " + loop.thread + " does other things in each " +
          "iteration of loop '" + outer.var->name + "', which is over " + loop.thread + " too");
  }

  Flow OnSerial(const For& loop, bool uniform, size_t depth) {
    std::string outer = blocked_;
    if (!uniform) blocked_ = "in loop '" + loop.var->name + "', whose bounds differ by thread";
    ++repeating_;
    around_.push_back(loop.min);
    around_.push_back(loop.extent);
    Flow flow = Walk(loop.body);
    around_.resize(around_.size() - 2);
    --repeating_;
    if (const Access* why = ConflictWithNext(flow, loop, depth)) {
      if (Stmt barrier = Barrier(*why)) {
        flow.stmt = Seq::Make({flow.stmt, barrier});
        flow.tail.clear();
      }
    }
    blocked_ = outer;
    flow.stmt = For::Make(loop.var, loop.min, loop.extent, loop.for_kind, flow.stmt, loop.attrs,
                          loop.thread);
    flow.always = flow.always && analyzer_.CanProve(Gt(loop.extent, IndexConst(0)));
    return flow;
  }

  Flow OnIf(const If& node) {
    AccessList condition = Collect(node.condition);
    std::string outer = blocked_;
    const bool moves = LoadsNothing(node.condition);
    if (!IsUniform(node.condition) && !moves) blocked_ = "under a condition that differs by thread";
    around_.push_back(node.condition);
    Flow yes = InOrder(condition, {node.then_body});
    Flow no{nullptr, condition, condition, false};
    if (node.else_body) no = InOrder(condition, {node.else_body});
    around_.pop_back();
    blocked_ = outer;
    Flow out{If::Make(node.condition, yes.stmt, no.stmt), yes.head, yes.tail,
             yes.always && no.always};
    Append(&out.head, no.head);
    Append(&out.tail, no.tail);
    return out;
  }

  Flow OnWhile(const While& node) {
    AccessList condition = Collect(node.condition);
    std::string outer = blocked_;
    if (!IsUniform(node.condition)) blocked_ = "in a while loop whose condition differs by thread";
    const size_t depth = depth_++;
    ++repeating_;
    around_.push_back(node.condition);
    Flow flow = InOrder(condition, {node.body});
    around_.pop_back();
    --repeating_;
    --depth_;
    if (const Access* why = Conflict(flow.tail, flow.head, depth, depth)) {
      if (Stmt barrier = Barrier(*why)) {
        flow.stmt = Seq::Make({flow.stmt, barrier});
        flow.tail.clear();
      }
    }
    blocked_ = outer;
    flow.stmt = While::Make(node.condition, flow.stmt);
    Append(&flow.tail, condition);
    flow.always = false;
    return flow;
  }

  const Module& module_;
  const AxisExtents& extents_;
  Stmt body_;
  Analyzer analyzer_;
  std::unordered_set<const BufferNode*> written_;
  std::vector<Buffer> copied_;                          // asynchronously
  std::unordered_map<const Node*, size_t> loop_depth_;  // of variables: how many are around
  std::unordered_map<const BufferNode*, size_t> alloc_depth_;
  std::unordered_map<const For*, std::unordered_set<const BufferNode*>> used_outside_;
  std::unordered_map<const For*, Variance> variance_;
  std::unordered_set<const Node*> varying_;  // variables that differ between threads of a block
  std::array<Binder, kAxes> binders_;
  std::vector<Expr> around_;  // conditions, bounds and values of lets around
  size_t depth_ = 0;          // loops around
  int repeating_ = 0;         // serial ones among them
  std::string blocked_;       // why no barrier can stand here; "": it can
  AccessList all_;
  std::vector<std::string> unmet_;
};

}  // namespace

SyncPlan PlaceSyncs(const PrimFunc& func, const Module& module, const Stmt& body,
                    const AxisExtents& extents) {
  return Placer(func, module, extents)(body);
}

}  // namespace tenon

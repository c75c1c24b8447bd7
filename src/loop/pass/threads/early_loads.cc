// From
//
//   ptx.griddepcontrol.wait()
//   S[threadIdx.x] = x[threadIdx.x]
//   sync cta
//   if threadIdx.x < 4 { y[threadIdx.x] = S[7 - threadIdx.x] * W[threadIdx.x] + z[threadIdx.x] }
//
// comes, W being constant,
//
//   alloc W.early: f32[1] in local
//   alloc z.early: f32[1] in local
//   if threadIdx.x < 4 { W.early[0] = W[threadIdx.x] }
//   ptx.griddepcontrol.wait()
//   if threadIdx.x < 4 { z.early[0] = z[threadIdx.x] }
//   S[threadIdx.x] = x[threadIdx.x]
//   sync cta
//   if threadIdx.x < 4 { y[threadIdx.x] = S[7 - threadIdx.x] * W.early[0] + z.early[0] }
//
// Only what every run of the statement loads, or every run in the threads that choose it, at places
// that are known in front, and only as much as registers are left for: nothing that stands behind a
// loop, whose registers it would take.
#include "loop/pass/threads/early_loads.h"

#include <algorithm>
#include <unordered_set>

#include "dependence/access.h"
#include "intrin/tile_intrinsic.h"
#include "loop/rewrite.h"
#include "loop/threads.h"

namespace tenon {

namespace {

constexpr int64_t kMostWords = 24;  // registers of a thread

class LoadMover {
 public:
  explicit LoadMover(const PrimFunc& kernel) : names_(kernel) {
    const auto names = kernel.attrs.Get<std::vector<std::string>>(kAwaitsAttr, {});
    for (const Buffer& b : kernel.buffers) {
      if (std::find(names.begin(), names.end(), b->name) != names.end()) awaited_.insert(b.get());
    }
    const auto all = [](const Buffer&) { return true; };
    const Accesses accesses = AccessesOf(kernel.body, Module(), all);
    for (const Buffer& b : kernel.buffers) {
      if (b->scope == Scope::kGlobal && accesses.writes.count(b.get()) == 0) read_.insert(b.get());
    }
  }

  // Of what is in the loops over threads.
  Stmt Run(const Stmt& body) {
    Stmt rest = Walk(body, nullptr);
    if (own_.empty()) return body;
    if (!late_.empty()) {
      std::vector<Stmt> both = {Stmt(wait_)};
      both.insert(both.end(), late_.begin(), late_.end());
      rest = Edit(rest, {{wait_.get(), Seq::Make(std::move(both))}});
    }
    std::vector<Stmt> all = early_;
    all.push_back(rest);
    Stmt out = Seq::Make(std::move(all));
    for (size_t i = own_.size(); i-- > 0;) out = Alloc::Make(own_[i], out);
    return out;
  }

 private:
  // `when`: under which condition of threads alone the statement runs; null: always.
  Stmt Walk(const Stmt& stmt, const Expr& when) {
    if (loops_) return stmt;
    switch (stmt->kind) {
      case NodeKind::kSeq:
      case NodeKind::kAlloc: return MapBodies(stmt, [&](const Stmt& s) { return Walk(s, when); });
      case NodeKind::kIf: {
        const auto* node = As<If>(stmt);
        if (node->else_body || Loads(node->condition)) break;
        const Expr both = when ? And(when, node->condition) : node->condition;
        return If::Make(node->condition, Walk(node->then_body, both));
      }
      case NodeKind::kStore: return InStore(*As<Store>(stmt), stmt, when);
      case NodeKind::kCallFunc:
        if (As<CallFunc>(stmt)->callee != kLaunchWaitRow) return stmt;
        waits_ = true;
        if (!when) wait_ = stmt;
        return stmt;
      default: break;
    }
    loops_ = AnyStmt(stmt, [](const NodeRef& n) { return IsA<For>(n) || IsA<While>(n); });
    met_ |= AnyStmt(stmt, [](const NodeRef& n) { return IsA<Sync>(n); });
    return stmt;
  }

  static bool Loads(const NodeRef& node) {
    bool out = false;
    PreOrder(node, [&](const NodeRef& n) {
      out |= IsA<Load>(n);
      return !out;
    });
    return out;
  }

  Stmt InStore(const Store& store, const Stmt& stmt, const Expr& when) {
    const Expr value = InValue(store.value, when, IsA<Load>(store.value));
    if (value == store.value) return stmt;
    return Store::Make(store.buffer, store.indices, value, store.mask);
  }

  // The value with what stands for its loads.
  Expr InValue(const Expr& value, const Expr& when, bool only_moves) {
    std::unordered_map<const Node*, Expr> early;
    PreOrder(value, [&](const NodeRef& n) {
      const auto* select = As<Select>(n);
      const auto* load = As<Load>(n);
      if (!select && !load) return true;
      const Expr e =
          select ? InSelect(*select, when) : Early(*load, Ref<const Load>(load), when, only_moves);
      if (e) early.emplace(n.get(), e);
      return false;
    });
    if (early.empty()) return value;
    return PostOrderRewrite(value, [&](const NodeRef& n) -> NodeRef {
      const auto it = early.find(n.get());
      return it == early.end() ? n : NodeRef(it->second);
    });
  }

  // Of a choice by threads alone, what the threads that take a side load for it; null where all
  // stays.
  Expr InSelect(const Select& select, const Expr& when) {
    const Expr& condition = select.condition;
    if (condition->dtype.lanes != 1 || Loads(condition)) return nullptr;
    const auto side = [&](const Expr& value, const Expr& chosen) {
      return InValue(value, when ? And(when, chosen) : chosen, /*only_moves=*/false);
    };
    const Expr yes = side(select.on_true, condition);
    const Expr no = side(select.on_false, Not(condition));
    if (yes == select.on_true && no == select.on_false) return nullptr;
    return Select::Make(condition, yes, no);
  }

  // What stands for the load; null where it stays. What only moves a constant is there already
  // (order_launches), and so is what stands in front of the wait.
  Expr Early(const Load& load, const Expr& e, const Expr& when, bool only_moves) {
    const BufferNode* b = load.buffer.get();
    if (read_.count(b) == 0 || load.mask) return nullptr;
    const bool awaited = awaited_.count(b) != 0;
    if (awaited ? !met_ || !wait_ : only_moves || !waits_) return nullptr;
    for (const Expr& i : load.indices) {
      if (Loads(i)) return nullptr;
    }
    for (const Known& known : known_) {
      const bool is_there = !known.when || (when && StructuralEqual(known.when, when));
      if (is_there && StructuralEqual(known.load, e)) return known.early;
    }
    const int64_t lanes = e->dtype.lanes;
    const int64_t words = (lanes * e->dtype.bits + 31) / 32;
    if (words_ + words > kMostWords) return nullptr;
    words_ += words;
    const DType scalar = e->dtype.WithLanes(1);
    const Buffer own = BufferNode::Make(names_.Fresh(load.buffer->name + ".early"), scalar,
                                        {IndexConst(lanes)}, Scope::kLocal);
    const Expr at = lanes == 1 ? IndexConst(0) : Ramp::Make(IndexConst(0), IndexConst(1), lanes);
    const Stmt move = Store::Make(own, {at}, e);
    own_.push_back(own);
    (awaited ? late_ : early_).push_back(when ? If::Make(when, move) : move);
    known_.push_back({when, e, Load::Make(own, {at})});
    return known_.back().early;
  }

  struct Known {
    Expr when, load, early;
  };

  NameSupply names_;
  std::unordered_set<const BufferNode*> awaited_, read_;  // read_: parameters that are not written
  Stmt wait_;                                             // that every way passes
  bool waits_ = false;                                    // behind a wait
  bool met_ = false, loops_ = false;                      // behind a barrier, a loop
  int64_t words_ = 0;
  std::vector<Known> known_;
  std::vector<Buffer> own_;
  std::vector<Stmt> early_, late_;  // in front of the wait, and behind it
};

Stmt InNest(const Stmt& stmt, LoadMover* loads) {
  const auto* nest = As<For>(stmt);
  if (!nest || nest->for_kind != ForKind::kThread) return loads->Run(stmt);
  return WithBody(*nest, InNest(nest->body, loads));
}

bool CallsOthers(const Stmt& body) {
  return AnyStmt(body, [](const NodeRef& n) {
    const auto* call = As<CallFunc>(n);
    return call && call->callee != kLaunchWaitRow && call->callee != kLaunchBeginRow;
  });
}

}  // namespace

Module EarlyLoads(const Module& module, const PassContext&) {
  return MapFuncs(module, [](const Func& func) {
    const bool waits = func->attrs.Has(kAwaitsAttr);
    if (func->func_kind != FuncKind::kKernel || !IsBound(*func) || !waits ||
        CallsOthers(func->body)) {
      return func;
    }
    LoadMover loads(*func);
    return WithBody(func, InNest(func->body, &loads));
  });
}

}  // namespace tenon

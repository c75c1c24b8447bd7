#include "loop/pass/share_loads.h"

#include <algorithm>

#include "loop/pass/access.h"
#include "loop/pass/rewrite.h"
#include "loop/pass/variance.h"
#include "loop/threads.h"

namespace tenon {

namespace {

bool IsThreadLoop(const For& loop) {
  return loop.for_kind == ForKind::kThread && IsThreadAxis(loop.thread);
}

bool HasThreadLoop(const Stmt& stmt) {
  bool found = false;
  PreOrder(stmt, [&](const NodeRef& n) {
    const auto* loop = As<For>(n);
    found |= loop && loop->for_kind == ForKind::kThread;
    return !found && !IsA<ExprNode>(n);
  });
  return found;
}

// A perfect nest of serial loops of constant extents, outermost first.
struct Nest {
  std::vector<const For*> loops;
  Stmt body;
  int64_t size = 1;
};

class Sharing final : public ScopedRewriter {
 public:
  Sharing(const PrimFunc& func, const Module& module, std::vector<std::string>* filled)
      : module_(module), names_(func), filled_(filled) {
    BindDims(func, &analyzer_);
  }

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    const auto* loop = As<For>(stmt);
    if (loop && IsThreadLoop(*loop)) {
      axes_.push_back(loop);
      variances_.emplace_back(loop->var, loop->body, &module_);
      Stmt out = Children(stmt);
      variances_.pop_back();
      axes_.pop_back();
      return out;
    }
    Stmt shared = loop && apart_ == 0 ? Shared(stmt) : nullptr;
    if (shared) return shared;
    const bool apart = TakesThreadsApart(*stmt);
    apart_ += apart ? 1 : 0;
    Stmt out = Children(stmt);
    apart_ -= apart ? 1 : 0;
    return out;
  }

  // A condition or bounds that may differ between threads: what is inside must not need all.
  bool TakesThreadsApart(const StmtNode& stmt) const {
    if (axes_.empty()) return false;
    const Node* node = &stmt;
    if (const auto* s = As<If>(node)) return MayDiffer(s->condition);
    if (const auto* s = As<Let>(node)) return MayDiffer(s->value);
    if (const auto* s = As<For>(node)) return MayDiffer(s->min) || MayDiffer(s->extent);
    return stmt.kind == NodeKind::kWhile;
  }

  bool MayDiffer(const Expr& e) const {
    bool differs = !IsPure(e);
    PreOrder(e, [&](const NodeRef& n) {
      differs |= IsA<Load>(n);
      differs |= std::any_of(axes_.begin(), axes_.end(),
                             [&](const For* axis) { return axis->var.get() == n.get(); });
      return !differs;
    });
    return differs;
  }

  Nest NestOf(const Stmt& stmt) {
    Nest nest{{}, stmt};
    while (const auto* loop = As<For>(nest.body)) {
      const auto extent = AsInt(analyzer_.Simplify(loop->extent));
      if (loop->for_kind != ForKind::kSerial && loop->for_kind != ForKind::kUnrolled) break;
      if (!extent || *extent < 1 || __builtin_mul_overflow(nest.size, *extent, &nest.size)) break;
      nest.loops.push_back(loop);
      nest.body = loop->body;
    }
    return nest;
  }

  // The nest over all threads around it; null where it is not what the header says.
  Stmt Shared(const Stmt& stmt) {
    int64_t threads = 1;
    for (size_t i = 0; i < axes_.size(); ++i) {
      const auto extent = AsInt(axes_[i]->extent);
      if (!extent || !IsZero(axes_[i]->min) || variances_[i].Differs(stmt)) return nullptr;
      threads *= *extent;
    }
    if (threads <= 1 || HasThreadLoop(stmt)) return nullptr;
    const Nest nest = NestOf(stmt);
    if (nest.loops.empty() || !FillsSharedOnce(nest)) return nullptr;
    return Distribute(nest, threads);
  }

  bool FillsSharedOnce(const Nest& nest) {
    const Accesses all = AccessesOf(nest.body, module_, [](const Buffer&) { return true; });
    if (all.writes.size() != 1) return false;
    const BufferNode* target = *all.writes.begin();
    if (target->scope != "shared" || all.reads.count(target) != 0) return false;
    bool once = true, found = false;
    PreOrder(nest.body, [&](const NodeRef& n) {
      if (IsA<Call>(n) && !IsPure(Cast<ExprNode>(n))) once &= IsPureButLoads(n);
      if (IsA<CallFunc>(n) || IsA<Copy>(n) || IsA<Atomic>(n) || IsA<Alloc>(n)) once = false;
      if (const auto* store = As<Store>(n)) {
        once &= !found && TellsLoops(*store, nest);
        found = true;
      }
      return once;
    });
    if (once && found) name_ = target->name;
    return once && found;
  }

  // A call that only computes.
  static bool IsPureButLoads(const NodeRef& n) {
    const auto* call = As<Call>(n);
    return call->intrinsic != Intrinsic::kExtern && call->intrinsic != Intrinsic::kBufferData;
  }

  // Different iterations write different elements: the element's number is a number in a mixed
  // radix whose digits are the loops' variables.
  bool TellsLoops(const Store& store, const Nest& nest) {
    std::vector<const For*> loops = nest.loops;  // and those inside, which stay: lanes
    PreOrder(nest.body, [&](const NodeRef& n) {
      if (const auto* loop = As<For>(n)) loops.push_back(loop);
      return !IsA<ExprNode>(n);
    });
    std::vector<Var> vars;
    for (const For* loop : loops) vars.push_back(loop->var);
    auto affine = DetectAffine(FlatIndex(*store.buffer, store.indices, &analyzer_), vars);
    if (!affine) return false;
    std::vector<std::pair<int64_t, int64_t>> digits;  // weight, extent
    for (size_t i = 0; i < vars.size(); ++i) {
      const auto weight = AsInt(analyzer_.Simplify(affine->coefficients[i]));
      const auto extent = AsInt(analyzer_.Simplify(loops[i]->extent));
      if (extent && *extent <= 1) continue;
      if (!extent || !weight || *weight < 1) return false;
      digits.emplace_back(*weight, *extent);
    }
    std::sort(digits.begin(), digits.end());
    int64_t reach = 1;
    for (const auto& [weight, extent] : digits) {
      if (weight < reach) return false;
      reach = weight * extent;
    }
    return true;
  }

  Stmt Distribute(const Nest& nest, int64_t threads) {
    filled_->push_back(name_);
    std::vector<Var> vars;
    Expr thread = IndexConst(0);
    for (const For* axis : Ordered()) {
      vars.push_back(VarNode::Make(names_.Fresh(axis->var->name + ".fill"), DType::Index()));
      thread = thread * axis->extent + Expr(vars.back());
    }
    const int64_t steps = (nest.size + threads - 1) / threads;
    Var step = VarNode::Make(names_.Fresh("fill"), DType::Index());
    const Expr number = Expr(step) * threads + thread;
    VarMap values;
    Expr rest = number;
    for (size_t i = nest.loops.size(); i-- > 0;) {
      const For& loop = *nest.loops[i];
      const Expr digit = i == 0 ? rest : rest % loop.extent;
      values[loop.var.get()] = IsZero(loop.min) ? digit : loop.min + digit;
      rest = rest / loop.extent;
    }
    Stmt body = Substitute(nest.body, values);
    if (nest.size % threads != 0) body = If::Make(Lt(number, IndexConst(nest.size)), body);
    const std::vector<const For*> axes = Ordered();
    for (size_t i = axes.size(); i-- > 0;) {
      body = For::Make(vars[i], IndexConst(0), axes[i]->extent, ForKind::kThread, body, {},
                       axes[i]->thread);
    }
    return For::Make(step, IndexConst(0), IndexConst(steps), ForKind::kSerial, body);
  }

  // The axes of the threads around, z before y before x, so that neighbours fill neighbours.
  std::vector<const For*> Ordered() const {
    std::vector<const For*> out = axes_;
    std::stable_sort(out.begin(), out.end(), [](const For* a, const For* b) {
      return AxisRank(a->thread) < AxisRank(b->thread);
    });
    return out;
  }

  const Module& module_;
  NameSupply names_;
  std::vector<std::string>* filled_;
  std::vector<const For*> axes_;  // loops over threadIdx axes around
  std::vector<Variance> variances_;
  int apart_ = 0;     // statements around that take threads apart
  std::string name_;  // of what the nest fills
};

}  // namespace

Stmt ShareLoads(const PrimFunc& func, const Module& module, std::vector<std::string>* filled) {
  return Sharing(func, module, filled).Rewrite(func.body);
}

}  // namespace tenon

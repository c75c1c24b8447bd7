#include "loop/pass/threads/share_loads.h"

#include <algorithm>
#include <array>

#include "dependence/variance.h"
#include "loop/pass/threads/shared_nest.h"
#include "loop/rewrite.h"
#include "loop/threads.h"

namespace tenon {

namespace {

// Those whose neighbours are warps' neighbours last, so that they fill neighbours.
constexpr std::array kThreadAxes = {ThreadAxis::kThreadIdxZ, ThreadAxis::kThreadIdxY,
                                    ThreadAxis::kThreadIdxX};

bool LoadsPrivate(const Expr& e) {
  bool found = false;
  PreOrder(e, [&](const NodeRef& n) {
    const auto* load = As<Load>(n);
    found |= load && IsThreadPrivate(*load->buffer);
    return !found;
  });
  return found;
}

bool Loads(const Expr& e) {
  bool found = false;
  PreOrder(e, [&](const NodeRef& n) {
    found |= IsA<Load>(n);
    return !found;
  });
  return found;
}

// Buffers in shared to which stores write of which no loop over a thread axis is around; with
// `many` those of which loops around have them write several elements.
std::set<std::string> WrittenByOne(const Stmt& stmt, bool many) {
  std::set<std::string> names;
  std::vector<const VarNode*> loops;
  PreOrder(stmt, [&](const NodeRef& n) {
    const auto* loop = As<For>(n);
    if (loop && loop->for_kind == ForKind::kThread) return false;
    if (loop) loops.push_back(loop->var.get());
    const auto* store = As<Store>(n);
    if (!store || store->buffer->scope != Scope::kShared) return !IsA<ExprNode>(n);
    const bool moves = std::any_of(loops.begin(), loops.end(), [&](const VarNode* v) {
      return std::any_of(store->indices.begin(), store->indices.end(),
                         [&](const Expr& index) { return UsesVar(index, v); });
    });
    if (moves || !many) names.insert(store->buffer->name);
    return false;
  });
  return names;
}

// Goes over one kernel. around_ are the loops over threads around the statement, each with how many
// statements between take its iterations apart. Work is dealt only along axes where that is none,
// since a barrier comes to stand there that all threads must meet.
class Sharing final : public ScopedRewriter {
 public:
  Sharing(const PrimFunc& func, const Module& module, const AxisExtents& extents,
          SharedFills* fills)
      : module_(module), names_(func), extents_(extents), fills_(fills) {
    Learn(func, &analyzer_);
  }

 private:
  // A loop over a threadIdx axis around.
  struct Around {
    const For* loop;
    Variance variance;
    int apart = 0;  // statements inside of it that take its iterations apart
  };
  // An axis whose threads are dealt iterations.
  struct Axis {
    ThreadAxis axis;
    int64_t extent;
  };

  Stmt VisitStmt(const Stmt& stmt) override {
    const auto* loop = As<For>(stmt);
    if (loop && loop->for_kind == ForKind::kThread && IsThreadAxis(loop->thread)) {
      around_.push_back({loop, Variance(loop->var, loop->body, &module_)});
      Stmt out = Children(stmt);
      around_.pop_back();
      return out;
    }
    if (loop && !HasThreadLoop(stmt)) return OnUnbound(stmt);
    return Inside(stmt);
  }

  Stmt Inside(const Stmt& stmt) {
    const std::vector<size_t> apart = TakenApart(*stmt);
    const bool own = IsOwnMatter(*stmt);
    for (size_t i : apart) ++around_[i].apart;
    own_ += own ? 1 : 0;
    Stmt out = Children(stmt);
    own_ -= own ? 1 : 0;
    for (size_t i : apart) --around_[i].apart;
    return out;
  }

  // What decides whether, or how often, what is inside of a statement runs.
  static std::vector<Expr> Deciding(const StmtNode& stmt) {
    const Node* node = &stmt;
    if (const auto* s = As<If>(node)) return {s->condition};
    if (const auto* s = As<Let>(node)) return {s->value};
    if (const auto* s = As<While>(node)) return {s->condition};
    if (const auto* s = As<For>(node)) return {s->min, s->extent};
    return {};
  }

  // Each thread for itself: no barrier can stand there.
  static bool IsOwnMatter(const StmtNode& stmt) {
    const std::vector<Expr> deciding = Deciding(stmt);
    return std::any_of(deciding.begin(), deciding.end(), LoadsPrivate);
  }

  // Loops around, by number, whose iterations may not all do what is inside.
  std::vector<size_t> TakenApart(const StmtNode& stmt) const {
    std::vector<size_t> out;
    const std::vector<Expr> deciding = Deciding(stmt);
    for (size_t i = 0; i < around_.size(); ++i) {
      const bool differs = std::any_of(deciding.begin(), deciding.end(), [&](const Expr& e) {
        return !IsPure(e) || Loads(e) || around_[i].variance.Differs(e);
      });
      if (differs || stmt.kind == NodeKind::kWhile) out.push_back(i);
    }
    return out;
  }

  // The axes whose threads would all do the same; empty where that is one thread.
  std::vector<Axis> AxesFor(const Stmt& stmt) const {
    std::vector<Axis> out;
    int64_t threads = 1;
    for (ThreadAxis axis : kThreadAxes) {
      Expr extent = extents_[static_cast<size_t>(AxisRank(axis))];
      bool same = true;
      for (const Around& around : around_) {
        if (around.loop->thread != axis) continue;
        extent = around.loop->extent;
        same &= IsZero(around.loop->min) && around.apart == 0 && !around.variance.Differs(stmt);
      }
      const auto count = extent && same ? AsInt(extent) : std::nullopt;
      if (!count || *count <= 1 || __builtin_mul_overflow(threads, *count, &threads)) continue;
      out.push_back({axis, *count});
    }
    return out;
  }

  // A loop inside of which no loop is bound.
  Stmt OnUnbound(const Stmt& stmt) {
    const std::vector<Axis> axes = own_ == 0 ? AxesFor(stmt) : std::vector<Axis>{};
    ++unbound_;
    Stmt out = axes.empty() ? Inside(stmt) : Dealt(stmt, axes);
    --unbound_;
    if (unbound_ > 0 || NumAxes() == 0 || AxesFor(stmt).size() < NumAxes()) return out;
    const std::set<std::string> alone = WrittenByOne(out, /*many=*/true);
    fills_->alone.insert(alone.begin(), alone.end());
    return out;
  }

  // Along which there is more than one thread, or may be.
  size_t NumAxes() const {
    return static_cast<size_t>(std::count_if(kThreadAxes.begin(), kThreadAxes.end(), [&](auto a) {
      const Expr& extent = extents_[static_cast<size_t>(AxisRank(a))];
      return extent && !IsOne(extent);
    }));
  }

  Stmt Dealt(const Stmt& stmt, const std::vector<Axis>& axes) {
    const auto nest = FindSharedNest(stmt, module_, &analyzer_);
    if (!nest) return Inside(stmt);
    int64_t threads = 1;
    for (const Axis& axis : axes) threads *= axis.extent;
    const auto size = AsInt(nest->size);
    if (size && *size < threads) {
      // Loops inside may have more to deal.
      const SharedFills before = *fills_;
      Stmt inner = Inside(stmt);
      if (WrittenByOne(inner, /*many=*/false).empty()) return inner;
      *fills_ = before;
    }
    fills_->together.insert(nest->filled.begin(), nest->filled.end());
    return Distribute(*nest, axes, threads);
  }

  Stmt Distribute(const SharedNest& nest, const std::vector<Axis>& axes, int64_t threads) {
    std::vector<Var> vars;
    Expr thread = IndexConst(0);
    for (const Axis& axis : axes) {
      vars.push_back(VarNode::Make(names_.Fresh(NameOf(axis.axis)), DType::Index()));
      thread = thread * axis.extent + Expr(vars.back());
    }
    Var step = VarNode::Make(names_.Fresh("fill"), DType::Index());
    const Expr number = Expr(step) * threads + thread;
    VarMap values;
    Expr rest = number;
    for (size_t i = nest.dealt.size(); i-- > 0;) {
      const For& loop = *nest.dealt[i];
      const Expr digit = i == 0 ? rest : rest % loop.extent;
      values[loop.var.get()] = IsZero(loop.min) ? digit : loop.min + digit;
      rest = rest / loop.extent;
    }
    Stmt body = nest.body;
    for (size_t i = nest.kept.size(); i-- > 0;) body = WithBody(*nest.kept[i], body);
    body = Substitute(body, values);
    const auto size = AsInt(nest.size);
    if (!size || *size % threads != 0) body = If::Make(Lt(number, nest.size), body);
    for (size_t i = axes.size(); i-- > 0;) {
      body = For::Make(vars[i], IndexConst(0), IndexConst(axes[i].extent), ForKind::kThread, body,
                       {}, axes[i].axis);
    }
    const Expr steps = analyzer_.Simplify((nest.size + (threads - 1)) / threads);
    return For::Make(step, IndexConst(0), steps, ForKind::kSerial, body);
  }

  // As the loop over the axis around is named, or the axis.
  std::string NameOf(ThreadAxis axis) const {
    std::string name = Name(axis);
    for (const Around& around : around_) {
      if (around.loop->thread == axis) name = around.loop->var->name;
    }
    std::replace(name.begin(), name.end(), '.', '_');
    return name + ".fill";
  }

  const Module& module_;
  NameSupply names_;
  const AxisExtents& extents_;
  SharedFills* fills_;
  std::vector<Around> around_;
  int own_ = 0;      // statements around that each thread decides for itself
  int unbound_ = 0;  // loops around in which no loop is bound
};

}  // namespace

Stmt ShareLoads(const PrimFunc& func, const Module& module, const AxisExtents& extents,
                SharedFills* fills) {
  return Sharing(func, module, extents, fills).Rewrite(func.body);
}

}  // namespace tenon

#include "loop/pass/threads/launch_extents.h"

#include <algorithm>

#include "loop/rewrite.h"
#include "loop/threads.h"
#include "loop/warpgroup.h"

namespace tenon {

namespace {

// The extents of a kernel's launch. found_ has every loop over an axis, by an extent that the
// kernel's dims and scalars tell and that is at least the loop's, or the loop is refused; each axis
// gets the largest.
class Extents final : public ScopedRewriter {
 public:
  Extents(const PrimFunc& func, const Stmt& body) {
    Learn(func, &analyzer_);
    for (const Var& dim : func.dims) known_.insert(dim.get());
    for (const Var& scalar : func.scalars) known_.insert(scalar.get());
    Rewrite(body);
    Analyzer analyzer;  // of what holds everywhere: loops stand under conditions
    Learn(func, &analyzer);
    for (const auto& [rank, extent] : found_) Add(&launch.extents[rank], extent, &analyzer);
  }
  LaunchExtents launch;

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    const auto* loop = As<For>(stmt);
    const int rank = loop && loop->for_kind == ForKind::kThread ? AxisRank(loop->thread) : -1;
    if (rank >= 0) Find(static_cast<size_t>(rank), *loop);
    return Children(stmt);
  }

  void Find(size_t rank, const For& loop) {
    Expr now = analyzer_.Simplify(loop.extent);
    bool over_dims = IsPure(now);
    PreOrder(now, [&](const NodeRef& n) {
      over_dims &= !IsA<Load>(n) && (!IsA<VarNode>(n) || known_.count(n.get()) != 0);
      return over_dims;
    });
    if (!over_dims) {
      const int64_t most = analyzer_.ConstBounds(now).max;
      if (most == Interval::kPosInf) {
        launch.refused.push_back(
            "loop '" + loop.var->name + "' over " + Name(loop.thread) +
            " has an extent that depends on loops around it: expected one that "
            "the kernel's dims tell");
        return;
      }
      now = IndexConst(most);
    }
    found_.emplace_back(rank, now);
  }

  static void Add(Expr* extent, const Expr& now, Analyzer* analyzer) {
    if (!*extent || analyzer->CanProve(Le(*extent, now))) {
      *extent = now;
    } else if (!analyzer->CanProve(Le(now, *extent))) {
      *extent = analyzer->Simplify(Max(*extent, now));
    }
  }

  std::vector<std::pair<size_t, Expr>> found_;  // axes, as loops have them
  std::unordered_set<const Node*> known_;
};

}  // namespace

LaunchExtents LaunchExtentsOf(const PrimFunc& func, const Module& module, const Stmt& body) {
  LaunchExtents launch = Extents(func, body).launch;
  const int64_t lanes = LanesIn(body, module);
  if (lanes > 0) launch.extents.back() = IndexConst(lanes);
  return launch;
}

int64_t LanesIn(const Stmt& stmt, const Module& module) {
  int64_t lanes = 0;
  PreOrder(stmt, [&](const NodeRef& n) {
    const auto* call = As<CallFunc>(n);
    const Func callee = call ? module.Find(call->callee) : nullptr;
    if (callee) lanes = std::max(lanes, LanesOf(*callee));
    return !IsA<ExprNode>(n);
  });
  return lanes;
}

}  // namespace tenon

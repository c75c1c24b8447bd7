#include "loop/pass/threads/repetitions.h"

#include <algorithm>
#include <optional>

#include "dependence/access.h"
#include "dependence/variance.h"
#include "loop/threads.h"

namespace tenon {

int OnceRank(const For& loop) {
  return loop.attrs.Has(kOnceAttr) ? static_cast<int>(loop.attrs.GetInt(kOnceAttr, -1)) : -1;
}

namespace {

// For one axis. within_ is about the innermost loop over it around the statement, and apart_ says
// whether some of that loop's iterations may not come here.
class Marker {
 public:
  Marker(int rank, const Module& module, NameSupply* names)
      : rank_(rank), module_(module), names_(names) {}

  Stmt Visit(const Stmt& stmt) {
    if (within_ && !apart_ && Repeats(stmt)) return Marked(stmt);
    const Apart inside(this, *stmt);
    if (const auto* loop = As<For>(stmt)) return VisitFor(*loop);
    return MapBodies(stmt, [&](const Stmt& s) { return Visit(s); });
  }

 private:
  // Inside of a statement whose parts do not run alike in all iterations.
  class Apart {
   public:
    Apart(Marker* marker, const StmtNode& stmt) : marker_(marker), outer_(marker->apart_) {
      marker->apart_ |= marker->within_ && marker->within_->TakesApart(stmt);
    }
    Apart(const Apart&) = delete;
    Apart& operator=(const Apart&) = delete;
    ~Apart() { marker_->apart_ = outer_; }

   private:
    Marker* marker_;
    bool outer_;
  };

  Stmt VisitFor(const For& loop) {
    const bool on_axis = loop.for_kind == ForKind::kThread && AxisRank(loop.thread) == rank_;
    std::optional<Variance> outer = within_;
    const bool outer_apart = apart_;
    if (on_axis) within_.emplace(loop.var, loop.body, &module_);
    if (on_axis) apart_ = false;
    Stmt body = Visit(loop.body);
    within_ = std::move(outer);
    apart_ = outer_apart;
    return WithBody(loop, body);
  }

  bool Repeats(const Stmt& stmt) const {
    const Accesses all = AccessesOf(stmt, module_, [](const Buffer&) { return true; });
    const bool shared = std::all_of(all.writes.begin(), all.writes.end(),
                                    [](const BufferNode* b) { return b->scope == Scope::kShared; });
    return !all.writes.empty() && shared && !HasAxis(stmt) && !within_->Differs(stmt);
  }

  // A loop over the axis, or a barrier, which is for all threads.
  bool HasAxis(const Stmt& stmt) const {
    return AnyStmt(stmt, [&](const NodeRef& n) {
      const auto* loop = As<For>(n);
      const bool over = loop && loop->for_kind == ForKind::kThread;
      return IsA<Sync>(n) || (over && AxisRank(loop->thread) == rank_);
    });
  }

  Stmt Marked(const Stmt& stmt) {
    Attrs once;
    once.Set(kOnceAttr, int64_t{rank_});
    Var var = VarNode::Make(names_->Fresh("once"), DType::Index());
    return For::Make(var, IndexConst(0), IndexConst(1), ForKind::kSerial, stmt, once);
  }

  int rank_;
  const Module& module_;
  NameSupply* names_;
  std::optional<Variance> within_;  // the innermost loop over the axis
  bool apart_ = false;              // its iterations do not all come here
};

}  // namespace

Stmt MarkRepetitions(const Stmt& body, const Module& module, NameSupply* names) {
  Stmt out = body;
  for (ThreadAxis axis :
       {ThreadAxis::kThreadIdxZ, ThreadAxis::kThreadIdxY, ThreadAxis::kThreadIdxX}) {
    out = Marker(AxisRank(axis), module, names).Visit(out);
  }
  return out;
}

}  // namespace tenon

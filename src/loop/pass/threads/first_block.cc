#include "loop/pass/threads/first_block.h"

#include <algorithm>

#include "dependence/access.h"
#include "loop/pass/threads/place_syncs.h"
#include "loop/threads.h"

namespace tenon {

namespace {

// Leaves to one iteration over the axis what stands beside loops over it. Statements with a barrier
// stay outside, and so does what fills private memory that others use.
class Leaver {
 public:
  Leaver(const Stmt& body, const Module& module, size_t axis, NameSupply* names)
      : body_(body), module_(module), axis_(AxisAt(axis)), names_(names) {}

  Stmt Visit(const Stmt& stmt) {
    if (!HasLoop(stmt)) return Left({stmt});
    if (IsOver(stmt)) return stmt;
    if (const auto* seq = As<Seq>(stmt)) return VisitSeq(*seq);
    return MapBodies(stmt, [&](const Stmt& s) { return Visit(s); });
  }

  bool HasLoop(const Stmt& stmt) const {
    return AnyStmt(stmt, [&](const NodeRef& n) { return IsOver(n); });
  }

 private:
  bool IsOver(const NodeRef& n) const {
    const auto* loop = As<For>(n);
    return loop && loop->for_kind == ForKind::kThread && loop->thread == axis_;
  }

  Stmt VisitSeq(const Seq& seq) {
    std::vector<Stmt> out, run;
    auto leave = [&] {
      if (!run.empty()) out.push_back(Left(std::exchange(run, {})));
    };
    for (const Stmt& s : seq.stmts) {
      if (!HasLoop(s)) {
        run.push_back(s);
        continue;
      }
      leave();
      out.push_back(Visit(s));
    }
    leave();
    return Seq::Make(std::move(out));
  }

  Stmt Left(const std::vector<Stmt>& run) {
    Stmt stmt = Seq::Make(run);
    if (HasSync(stmt)) return stmt;
    const Accesses all = AccessesOf(stmt, module_, [](const Buffer&) { return true; });
    const bool visible = std::any_of(all.writes.begin(), all.writes.end(),
                                     [](const BufferNode* b) { return !IsThreadPrivate(*b); });
    const bool whole = std::none_of(all.writes.begin(), all.writes.end(), [&](const BufferNode* b) {
      return IsThreadPrivate(*b) && IsUsedBeside(*b, run);
    });
    if (!visible || !whole) return stmt;
    Var var = VarNode::Make(names_->Fresh("first"), DType::Index());
    return For::Make(var, IndexConst(0), IndexConst(1), ForKind::kThread, stmt, {}, axis_);
  }

  bool IsUsedBeside(const BufferNode& b, const std::vector<Stmt>& run) const {
    bool used = false;
    PreOrder(body_, [&](const NodeRef& n) {
      const bool inside =
          std::any_of(run.begin(), run.end(), [&](const Stmt& s) { return s.get() == n.get(); });
      if (inside || used) return false;
      const auto* load = As<Load>(n);
      const auto* store = As<Store>(n);
      const auto* atomic = As<Atomic>(n);
      const auto* region = As<RegionNode>(n);
      used |= (load && load->buffer.get() == &b) || (store && store->buffer.get() == &b) ||
              (atomic && atomic->buffer.get() == &b) || (region && region->buffer.get() == &b);
      return !used;
    });
    return used;
  }

  const Stmt body_;
  const Module& module_;
  const ThreadAxis axis_;
  NameSupply* names_;
};

}  // namespace

Stmt LeaveToFirstBlock(const Stmt& body, const Module& module, size_t axis, NameSupply* names) {
  Leaver leaver(body, module, axis, names);
  return leaver.HasLoop(body) ? leaver.Visit(body) : body;
}

}  // namespace tenon

#include "loop/pass/loops/lower_parallel.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "arith/analyzer.h"
#include "dependence/access.h"
#include "loop/rewrite.h"
#include "loop/shares.h"
#include "loop/team.h"
#include "loop/threads.h"

namespace tenon {

namespace {

bool IsParallel(const NodeRef& n) {
  const auto* loop = As<For>(n);
  return loop && loop->for_kind == ForKind::kParallel;
}

bool IsSync(const NodeRef& n) { return n->kind == NodeKind::kSync; }

Stmt ParallelToSerial(const Stmt& stmt) {
  return PostOrderRewrite(stmt, [](const NodeRef& n) -> NodeRef {
    if (!IsParallel(n)) return n;
    const auto* loop = As<For>(n);
    return For::Make(loop->var, loop->min, loop->extent, ForKind::kSerial, loop->body, loop->attrs);
  });
}

// The statements that all workers walk through together, outside parallel loops. Whatever decides
// where they go is the same for all of them, so that every barrier is met by all.
class TeamLowerer {
 public:
  TeamLowerer(const Func& func, const Module& module) : module_(module), names_(*func) {
    for (const Buffer& b : func->buffers) params_.insert(b.get());
  }

  Stmt operator()(const Stmt& body) {
    if (AnyStmt(body, IsParallel) || AnyStmt(body, IsSync)) return Lower(body);
    return If::Make(IsFirstWorker(), body);
  }

 private:
  Stmt Lower(const Stmt& stmt) {
    if (!AnyStmt(stmt, IsParallel) && !MakesOwnState(stmt)) return OnOneWorker(stmt);
    switch (stmt->kind) {
      case NodeKind::kSeq: return OnSeq(*As<Seq>(stmt));
      case NodeKind::kFor: return OnFor(*As<For>(stmt));
      case NodeKind::kIf: return OnIf(*As<If>(stmt));
      case NodeKind::kWhile: return OnWhile(*As<While>(stmt));
      case NodeKind::kLet:
      case NodeKind::kAlloc:
      case NodeKind::kBind: return MapBodies(stmt, [&](const Stmt& s) { return Lower(s); });
      default: return OnOneWorker(stmt);  // a leaf, or a construct of other targets
    }
  }

  // True when later statements of every worker may need what this does to the worker's own buffers
  // (those made outside of it), or when it synchronises by itself.
  bool MakesOwnState(const Stmt& stmt) const {
    if (AnyStmt(stmt, IsSync)) return true;
    std::unordered_set<const BufferNode*> made;
    PreOrder(stmt, [&](const NodeRef& n) {
      if (const auto* alloc = As<Alloc>(n)) made.insert(alloc->buffer.get());
      if (const auto* bind = As<Bind>(n)) made.insert(bind->buffer.get());
      return !IsA<ExprNode>(n);
    });
    Accesses own = AccessesOf(
        stmt, module_, [&](const Buffer& b) { return !IsShared(b) && made.count(b.get()) == 0; });
    return !own.writes.empty();
  }

  // A call may fill buffers of worker 0's own besides shared ones: the others' are not there, so
  // what reads them is worker 0's work too.
  Stmt OnOneWorker(const Stmt& stmt) {
    const Accesses own = AccessesOf(stmt, module_, [&](const Buffer& b) { return !IsShared(b); });
    bool alone = !Shared(stmt).writes.empty();
    for (const auto& b : own.reads) alone |= alone_.count(b) != 0;
    if (!alone) return stmt;
    alone_.insert(own.writes.begin(), own.writes.end());
    return If::Make(IsFirstWorker(), stmt);
  }

  Stmt OnSeq(const Seq& seq) {
    std::vector<Stmt> out;
    Accesses pending;  // since the last barrier
    for (const Stmt& s : seq.stmts) {
      Accesses now = Shared(s);
      if (pending.Conflicts(now)) {
        out.push_back(Sync::Make(Level::kTeam));
        pending = {};
      }
      pending.Add(now);
      out.push_back(Lower(s));
    }
    return Seq::Make(std::move(out));
  }

  Stmt OnFor(const For& loop) {
    if (loop.for_kind == ForKind::kParallel) return Part(loop);
    return WithBody(loop, WithBackEdge(loop.body));
  }

  Stmt OnWhile(const While& loop) {
    // The condition is read by every worker, and must be the same for all of them.
    Stmt body = Lower(loop.body);
    bool sync = Shared(loop.body).Conflicts(Shared(loop.condition)) || NeedsBackEdge(loop.body);
    return While::Make(loop.condition, sync ? Seq::Make({body, Sync::Make(Level::kTeam)}) : body);
  }

  // A branch that some workers take and others do not would hang at a barrier inside, so what the
  // condition reads must still be there when the last worker evaluates it.
  Stmt OnIf(const If& node) {
    Stmt then_body = Lower(node.then_body);
    Stmt else_body = node.else_body ? Lower(node.else_body) : nullptr;
    Accesses condition = Shared(node.condition);
    Stmt out = If::Make(node.condition, then_body, else_body);
    bool overwrites = condition.Conflicts(Shared(node.then_body)) ||
                      (node.else_body && condition.Conflicts(Shared(node.else_body)));
    if (!overwrites) return out;
    Var taken = VarNode::Make(names_.Fresh("taken"), DType::Bool());
    return Let::Make(taken, node.condition,
                     Seq::Make({Sync::Make(Level::kTeam), If::Make(taken, then_body, else_body)}));
  }

  bool NeedsBackEdge(const Stmt& body) {
    Accesses once = Shared(body);
    return once.Conflicts(once);
  }

  Stmt WithBackEdge(const Stmt& body) {
    Stmt out = Lower(body);
    return NeedsBackEdge(body) ? Seq::Make({out, Sync::Make(Level::kTeam)}) : out;
  }

  Stmt Part(const For& loop) {
    Expr rank = Call::Make(Intrinsic::kTeamRank, {}, DType::Index()),
         size = Call::Make(Intrinsic::kTeamSize, {}, DType::Index());
    Expr first = loop.extent * rank / size, end = loop.extent * (rank + 1) / size;
    Attrs attrs = loop.attrs;
    attrs.Set(kShareAttr, true);
    return For::Make(loop.var, loop.min + first, end - first, ForKind::kSerial,
                     ParallelToSerial(loop.body), std::move(attrs));
  }

  bool IsShared(const Buffer& b) const {
    return params_.count(b.get()) != 0 || HolderOf(b->scope) == Holder::kLaunch;
  }
  Accesses Shared(const NodeRef& node) const {
    return AccessesOf(node, module_, [this](const Buffer& b) { return IsShared(b); });
  }

  const Module& module_;
  NameSupply names_;
  std::unordered_set<const BufferNode*> params_;
  std::unordered_set<const BufferNode*> alone_;  // own buffers that worker 0 alone has filled
};

// That some parameter which the kernel writes has elements, where none may have any; else null.
// Loops around one that does not run may be long: [2^20, 2^20, 0] has no elements.
Expr WritesElements(const PrimFunc& func, const Module& module) {
  if (func.dims.empty()) return nullptr;
  Analyzer analyzer;
  for (size_t i = 0; i < func.dims.size(); ++i) {
    const int64_t hi = func.dim_hi[i] < 0 ? Interval::kPosInf : func.dim_hi[i];
    analyzer.BindInterval(func.dims[i], {func.dim_lo[i], hi});
  }
  const Accesses all = AccessesOf(func.body, module, [](const Buffer&) { return true; });
  std::vector<Expr> counts;
  for (const Buffer& b : func.buffers) {
    if (all.writes.count(b.get()) == 0) continue;
    Expr count = IndexConst(1);
    for (const Expr& extent : b->shape) count = count * extent;
    count = analyzer.Simplify(count);
    if (analyzer.ConstBounds(count).min > 0) return nullptr;
    const auto is_known = [&](const Expr& c) { return analyzer.CanProveEqual(c, count); };
    if (std::none_of(counts.begin(), counts.end(), is_known)) counts.push_back(std::move(count));
  }
  Expr some;
  for (const Expr& count : counts) {
    const Expr has = Gt(count, IndexConst(0));
    some = some ? Or(some, has) : has;
  }
  return some;
}

Stmt SkippedIfEmpty(const Func& func, const Module& module, const Stmt& body) {
  const Expr some = WritesElements(*func, module);
  return some ? If::Make(some, body) : body;
}

}  // namespace

Module LowerParallel(const Module& module, const PassContext&) {
  return MapFuncs(module, [&](const Func& func) {
    switch (func->func_kind) {
      case FuncKind::kKernel:
        if (IsBound(*func)) return func;  // its launch is its team
        return WithBody(func, SkippedIfEmpty(func, module, TeamLowerer(func, module)(func->body)));
      case FuncKind::kDevice: return WithBody(func, ParallelToSerial(func->body));
      case FuncKind::kHost:
      case FuncKind::kPacked: return func;
    }
    TN_UNREACHABLE();
  });
}

}  // namespace tenon

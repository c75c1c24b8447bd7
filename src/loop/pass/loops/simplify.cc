#include "loop/pass/loops/simplify.h"

#include "loop/rewrite.h"

namespace tenon {

namespace {

bool IsEmpty(const Stmt& stmt) {
  const auto* seq = As<Seq>(stmt);
  return !stmt || (seq && seq->stmts.empty());
}

bool IsTrivial(const Expr& e) {
  return e->kind == NodeKind::kVar || e->kind == NodeKind::kIntConst ||
         e->kind == NodeKind::kFloatConst;
}

// Lane i of a constant vector of index: a broadcast, or a ramp.
std::optional<int64_t> ConstLane(const Expr& e, int64_t lane) {
  if (const auto* ramp = As<Ramp>(e)) {
    auto base = AsInt(ramp->base), stride = AsInt(ramp->stride);
    if (base && stride) return *base + *stride * lane;
    return std::nullopt;
  }
  return AsInt(e);
}

// What is known of the lanes of a mask.
struct Lanes {
  bool all = false, none = false, mixed = false;
};

Lanes LanesOf(const Expr& mask) {
  if (auto value = AsInt(mask)) return {*value != 0, *value == 0, false};
  const auto* e = As<Binary>(mask);
  if (!e || e->dtype.scalable) return {};
  if (e->op == BinaryOp::kAnd) {
    Lanes a = LanesOf(e->lhs), b = LanesOf(e->rhs);
    return {a.all && b.all, a.none || b.none, (a.all && b.mixed) || (a.mixed && b.all)};
  }
  // An order of ramps changes once at most: the first and the last lane tell.
  bool first = false, last = false;
  for (bool* holds : {&first, &last}) {
    int64_t lane = holds == &first ? 0 : e->dtype.lanes - 1;
    auto a = ConstLane(e->lhs, lane), b = ConstLane(e->rhs, lane);
    if (!a || !b) return {};
    switch (e->op) {
      case BinaryOp::kLt: *holds = *a < *b; break;
      case BinaryOp::kLe: *holds = *a <= *b; break;
      case BinaryOp::kGt: *holds = *a > *b; break;
      case BinaryOp::kGe: *holds = *a >= *b; break;
      default: return {};  // equality may hold in the middle
    }
  }
  return {first && last, !first && !last, first != last};
}

// Lane i of a regular vector of index; null of others.
Expr LaneOf(const Expr& e, int64_t lane) {
  if (!e->dtype.Element().IsIndex()) return nullptr;
  if (const auto* ramp = As<Ramp>(e))
    return AsInt(ramp->stride) ? ramp->base + ramp->stride * lane : nullptr;
  const auto* same = As<Broadcast>(e);
  return same ? same->value : nullptr;
}

int64_t StrideOf(const Expr& e) {
  const auto* ramp = As<Ramp>(e);
  return ramp ? AsInt(ramp->stride).value_or(0) : 0;
}

// "Any lane" or all lanes of an order of regular vectors are one lane's business: that where it
// holds first, or last. Null where the mask is no such order.
Expr OneLane(const Expr& mask, bool any) {
  const auto* e = As<Binary>(mask);
  if (!e || e->dtype.scalable) return nullptr;
  const bool below = e->op == BinaryOp::kLt || e->op == BinaryOp::kLe;
  if (!below && e->op != BinaryOp::kGt && e->op != BinaryOp::kGe) return nullptr;
  const bool rises = StrideOf(e->lhs) >= StrideOf(e->rhs);
  const int64_t lane = (rises == below) == any ? 0 : e->dtype.lanes - 1;
  const Expr a = LaneOf(e->lhs, lane), b = LaneOf(e->rhs, lane);
  return a && b ? Binary::Make(e->op, a, b) : nullptr;
}

// Masks that are all true, and "any lane" of masks that are known or known by one lane.
NodeRef FoldLanes(const NodeRef& n, Analyzer* analyzer) {
  if (const auto* load = As<Load>(n)) {
    return load->mask && LanesOf(load->mask).all ? Load::Make(load->buffer, load->indices) : n;
  }
  const auto* call = As<Call>(n);
  if (!call || call->dtype != DType::Bool() || call->args.size() != 1) return n;
  bool any = call->intrinsic == Intrinsic::kReduceMax,
       all = call->intrinsic == Intrinsic::kReduceMin;
  if (!any && !all) return n;
  Lanes lanes = LanesOf(call->args[0]);
  if (lanes.all || lanes.none) return BoolConst(lanes.all);
  // Some lanes and not others.
  if (lanes.mixed) return BoolConst(any);
  const Expr one = OneLane(call->args[0], any);
  return one ? analyzer->Simplify(one) : n;
}

class Simplifier final : public ScopedRewriter {
 public:
  explicit Simplifier(const PrimFunc& func) { Learn(func, &analyzer_); }

 private:
  Expr VisitExpr(const Expr& expr) override {
    Expr simple = analyzer_.Simplify(expr);
    bool lanes = false;
    PreOrder(simple, [&](const NodeRef& n) {
      const auto* load = As<Load>(n);
      const auto* call = As<Call>(n);
      lanes |= (load && load->mask) || (call && call->dtype == DType::Bool());
      return !lanes;
    });
    if (!lanes) return simple;
    return PostOrderRewrite(simple, [this](const NodeRef& n) { return FoldLanes(n, &analyzer_); });
  }

  Stmt VisitStmt(const Stmt& stmt) override {
    if (const auto* loop = As<For>(stmt)) return OnFor(*loop, stmt);
    if (const auto* node = As<If>(stmt)) return OnIf(*node, stmt);
    if (const auto* let = As<Let>(stmt)) return OnLet(*let, stmt);
    if (const auto* alloc = As<Alloc>(stmt)) {
      Stmt out = Children(stmt);
      const Stmt& body = As<Alloc>(out)->body;
      return UsesBuffer(body, alloc->buffer.get()) ? out : NotEmpty(body);
    }
    if (const auto* bind = As<Bind>(stmt)) {
      Stmt out = Children(stmt);
      const Stmt& body = As<Bind>(out)->body;
      bool needed = !IsPure(bind->data) || UsesBuffer(body, bind->buffer.get());
      return needed ? out : NotEmpty(body);
    }
    if (IsA<Store>(stmt)) return OnStore(Children(stmt));
    if (const auto* check = As<Assert>(stmt)) {
      if (IsOne(VisitExpr(check->condition))) return nullptr;
    }
    return Children(stmt);
  }

  static Stmt OnStore(const Stmt& stmt) {
    const auto* store = As<Store>(stmt);
    if (!store->mask) return stmt;
    Lanes lanes = LanesOf(store->mask);
    if (lanes.none) return nullptr;
    return lanes.all ? Store::Make(store->buffer, store->indices, store->value) : stmt;
  }

  static Stmt NotEmpty(const Stmt& stmt) { return IsEmpty(stmt) ? nullptr : stmt; }

  Stmt OnFor(const For& loop, const Stmt& stmt) {
    Expr extent = VisitExpr(loop.extent);
    auto constant = AsInt(extent);
    if (constant && *constant <= 0) return nullptr;
    bool single =
        constant && *constant == 1 && loop.for_kind != ForKind::kThread && IsPure(loop.min);
    if (single) {
      Expr value = VisitExpr(loop.min);
      return VisitStmt(Substitute(loop.body, VarMap{{loop.var.get(), value}}));
    }
    Stmt out = Children(stmt);
    bool idle = IsEmpty(As<For>(out)->body) && IsPure(loop.min) && IsPure(loop.extent);
    return idle ? nullptr : out;
  }

  Stmt OnIf(const If& node, const Stmt& stmt) {
    Expr condition = VisitExpr(node.condition);
    if (IsOne(condition)) return VisitStmt(node.then_body);
    if (IsZero(condition)) return node.else_body ? VisitStmt(node.else_body) : nullptr;
    return Children(stmt);
  }

  Stmt OnLet(const Let& let, const Stmt& stmt) {
    Expr value = VisitExpr(let.value);
    if (IsTrivial(value)) {
      return VisitStmt(Substitute(let.body, VarMap{{let.var.get(), value}}));
    }
    Stmt out = Children(stmt);
    const Stmt& body = As<Let>(out)->body;
    bool needed = !IsPure(let.value) || UsesVar(body, let.var.get());
    return needed ? out : NotEmpty(body);
  }
};

}  // namespace

Module SimplifyLoops(const Module& module, const PassContext&) {
  return MapFuncs(module, [](const Func& func) {
    return WithBody(func, Simplifier(*func).Rewrite(func->body));
  });
}

}  // namespace tenon

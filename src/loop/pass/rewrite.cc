// How statements are taken apart and put together, once for all passes.
//
// ScopedRewriter walks a tree from the root and keeps an analyzer that knows what holds where it
// stands: ranges of loops and block variables are bound on the way in (names are unique, so they
// need not be unbound), conditions of ifs and blocks are assumed on the way in and retracted on the
// way out. A pass overrides what it changes and asks the analyzer. In
//
//   for one in 3..+1, i in 0..16 {
//     if i < 16 { C[i + zero + one - 3] = A[i] } else { C[i] = 0f32 }
//     if i >= 8 {
//       if i < 8 { C[i] = 1f32 }
//     }
//   }
//
// the visit of `i < 16` finds 0 <= i < 16 known, that of `i < 8` finds i >= 8, and simplify, which
// asks about every condition, leaves
//
//   for i in 0..16 {
//     C[i] = A[i]
//   }
//
// A condition that reads memory is never assumed: it held when it was evaluated, no longer. A node
// in which nothing changes comes back as itself, so "nothing to do" costs no memory and is seen by
// comparing pointers.

#include "loop/pass/rewrite.h"

namespace tenon {

Module MapFuncs(const Module& module, const std::function<Func(const Func&)>& map) {
  Module out = module;
  for (auto& [name, func] : out.funcs) func = map(func);
  return out;
}

Func WithBody(const Func& func, Stmt body) {
  if (body == func->body) return func;
  PrimFunc fields = *func;
  fields.body = body ? std::move(body) : Seq::Make({});
  return PrimFunc::Make(std::move(fields));
}

bool AnyStmt(const Stmt& root, const std::function<bool(const NodeRef&)>& what) {
  bool found = false;
  PreOrder(root, [&](const NodeRef& n) {
    found = found || what(n);
    return !found && !IsA<ExprNode>(n);
  });
  return found;
}

Stmt WithBody(const For& loop, Stmt body) {
  return For::Make(loop.var, loop.min, loop.extent, loop.for_kind, std::move(body), loop.attrs,
                   loop.thread);
}

bool IsControl(const Stmt& stmt) {
  switch (stmt->kind) {
    case NodeKind::kSeq:
    case NodeKind::kFor:
    case NodeKind::kIf:
    case NodeKind::kWhile:
    case NodeKind::kLet:
    case NodeKind::kAlloc:
    case NodeKind::kBind: return true;
    default: return false;
  }
}

Stmt MapBodies(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& map) {
  auto mapped = [&](const Stmt& body) {
    Stmt out = map(body);
    return out ? out : Seq::Make({});
  };
  if (const auto* seq = As<Seq>(stmt)) {
    std::vector<Stmt> out;
    for (const Stmt& s : seq->stmts) {
      if (Stmt part = map(s)) out.push_back(std::move(part));
    }
    return Seq::Make(std::move(out));
  }
  if (const auto* loop = As<For>(stmt)) return WithBody(*loop, mapped(loop->body));
  if (const auto* node = As<If>(stmt)) {
    Stmt yes = mapped(node->then_body);
    return If::Make(node->condition, yes, node->else_body ? mapped(node->else_body) : nullptr);
  }
  if (const auto* loop = As<While>(stmt)) return While::Make(loop->condition, mapped(loop->body));
  if (const auto* let = As<Let>(stmt)) return Let::Make(let->var, let->value, mapped(let->body));
  if (const auto* alloc = As<Alloc>(stmt)) return Alloc::Make(alloc->buffer, mapped(alloc->body));
  if (const auto* bind = As<Bind>(stmt))
    return Bind::Make(bind->buffer, bind->data, mapped(bind->body));
  return stmt;
}

void BindDims(const PrimFunc& func, Analyzer* analyzer) {
  for (size_t i = 0; i < func.dims.size(); ++i) {
    DimRange range = func.dim_range(i);
    analyzer->BindInterval(func.dims[i], {range.lo, range.hi < 0 ? Interval::kPosInf : range.hi});
    if (range.step > 1) analyzer->BindModular(func.dims[i], {range.step, range.lo % range.step});
  }
}

Stmt ScopedRewriter::Rewrite(const Stmt& stmt) { return stmt ? VisitStmt(stmt) : stmt; }

void ScopedRewriter::Enter(const Stmt& stmt) {
  if (const auto* loop = As<For>(stmt)) {
    if (IsPure(loop->min) && IsPure(loop->extent))
      analyzer_.Bind(loop->var, loop->min, loop->extent);
  } else if (const auto* let = As<Let>(stmt)) {
    bool arithmetic = let->var->dtype.IsIndex() || let->var->dtype.IsInt();
    if (arithmetic && IsPure(let->value)) analyzer_.BindValue(let->var, let->value);
  } else if (const auto* block = As<Block>(stmt)) {
    for (const IterVar& iter : block->iters) analyzer_.Bind(iter->var, iter->min, iter->extent);
  }
}

Stmt ScopedRewriter::ChildrenOfIf(const If& node, const Stmt& stmt) {
  Expr condition = VisitExpr(node.condition);
  auto under = [&](const Expr& fact, const Stmt& body) {
    if (!body) return body;
    // What memory said when the condition was evaluated need not hold for the whole body.
    bool lasting = IsPure(fact);
    size_t token = lasting ? analyzer_.Assume(fact) : 0;
    Stmt out = VisitStmt(body);
    if (lasting) analyzer_.Retract(token);
    return out;
  };
  Stmt then_body = under(node.condition, node.then_body);
  Stmt else_body = under(Not(node.condition), node.else_body);
  if (condition == node.condition && then_body == node.then_body && else_body == node.else_body) {
    return stmt;
  }
  if (!then_body && !else_body) return nullptr;
  if (!then_body) return If::Make(Not(condition), else_body);
  return If::Make(condition, then_body, else_body);
}

Stmt ScopedRewriter::Children(const Stmt& stmt) {
  if (const auto* node = As<If>(stmt)) return ChildrenOfIf(*node, stmt);
  if (const auto* seq = As<Seq>(stmt)) {
    std::vector<Stmt> out;
    bool changed = false;
    for (const Stmt& s : seq->stmts) {
      out.push_back(VisitStmt(s));
      changed |= out.back() != s;
    }
    if (!changed) return stmt;
    Stmt made = Seq::Make(std::move(out));
    const auto* left = As<Seq>(made);
    return left && left->stmts.empty() ? nullptr : made;
  }
  Enter(stmt);
  const auto* block = As<Block>(stmt);
  bool guarded = block && block->where && IsPure(block->where);
  size_t token = guarded ? analyzer_.Assume(block->where) : 0;
  Stmt out = Cast<StmtNode>(stmt->MapChildren(*this));
  if (guarded) analyzer_.Retract(token);
  return out;
}

NodeRef ScopedRewriter::MapChild(const NodeRef& child, FieldRole role) {
  if (child->kind == NodeKind::kBuffer) {
    return VisitBuffer(Cast<BufferNode>(child));
  }
  if (role == FieldRole::kBinds) return child;
  if (IsA<StmtNode>(child)) {
    Stmt out = VisitStmt(Cast<StmtNode>(child));
    return out ? out : Seq::Make({});
  }
  if (IsA<ExprNode>(child)) return VisitExpr(Cast<ExprNode>(child));
  if (child->kind == NodeKind::kRegion) return VisitRegion(Cast<RegionNode>(child));
  return child->MapChildren(*this);
}

// ---- names and copies ----

NameSupply::NameSupply(const PrimFunc& func) {
  for (const Var& v : func.dims) used_.insert(v->name);
  for (const Var& v : func.scalars) used_.insert(v->name);
  for (const Buffer& b : func.buffers) used_.insert(b->name);
  PreOrder(func.body, [&](const NodeRef& n) {
    if (const auto* loop = As<For>(n)) used_.insert(loop->var->name);
    if (const auto* let = As<Let>(n)) used_.insert(let->var->name);
    if (const auto* alloc = As<Alloc>(n)) used_.insert(alloc->buffer->name);
    if (const auto* bind = As<Bind>(n)) used_.insert(bind->buffer->name);
    if (const auto* iter = As<IterVarNode>(n)) used_.insert(iter->var->name);
    if (const auto* block = As<Block>(n)) used_.insert(block->name);
    return true;
  });
}

std::string NameSupply::Fresh(const std::string& base) {
  if (used_.insert(base).second) return base;
  for (int& i = next_[base];;) {
    std::string name = base + "." + std::to_string(++i);
    if (used_.insert(name).second) return name;
  }
}

namespace {

// Copies a tree; what it binds is new, so that the copy may stand beside the original. vars_ and
// buffers_ have what stands for everything bound so far, which is all that may be used behind it.
class Copier final : public ChildMapper {
 public:
  Copier(VarMap vars, NameSupply* names) : vars_(std::move(vars)), names_(names) {}

  NodeRef MapChild(const NodeRef& child, FieldRole role) override {
    if (const auto* var = As<VarNode>(child)) return MapVar(*var, child, role);
    if (const auto* buffer = As<BufferNode>(child)) return MapBuffer(*buffer, child, role);
    if (child->kind == NodeKind::kLayout) return child;
    const bool shared = IsA<ExprNode>(child) && !child->IsUnique();
    if (auto it = done_.find(child.get()); shared && it != done_.end()) return it->second;
    // A loop's own variable comes after the range that must not see it, and before the body that
    // must.
    NodeRef out = child->MapChildren(*this);
    if (const auto* block = As<Block>(out)) {
      Block fields = *block;
      fields.name = names_->Fresh(block->name);
      return Block::Make(std::move(fields));
    }
    if (shared) done_[child.get()] = out;
    return out;
  }

 private:
  NodeRef MapVar(const VarNode& var, const NodeRef& child, FieldRole role) {
    if (role == FieldRole::kBinds) {
      Var fresh = VarNode::Make(names_->Fresh(var.name), var.dtype);
      vars_[&var] = fresh;
      return fresh;
    }
    auto it = vars_.find(&var);
    return it == vars_.end() ? child : NodeRef(it->second);
  }

  NodeRef MapBuffer(const BufferNode& buffer, const NodeRef& child, FieldRole role) {
    if (role == FieldRole::kBinds) {
      Buffer mapped = Cast<BufferNode>(buffer.MapChildren(*this));
      auto fresh = MakeRef<BufferNode>(*mapped);
      fresh->name = names_->Fresh(buffer.name);
      buffers_[&buffer] = fresh;
      return fresh;
    }
    auto it = buffers_.find(&buffer);
    return it == buffers_.end() ? child : NodeRef(it->second);
  }

  VarMap vars_;
  std::unordered_map<const BufferNode*, Buffer> buffers_;
  std::unordered_map<const Node*, NodeRef> done_;  // expressions with several parents
  NameSupply* names_;
};

}  // namespace

Stmt FreshCopy(const Stmt& stmt, VarMap vars, NameSupply* names) {
  return Cast<StmtNode>(Copier(std::move(vars), names).MapChild(stmt, FieldRole::kChild));
}

int64_t CountStmts(const Stmt& stmt) {
  int64_t count = 0;
  // Shared statements count as often as they appear, so PreOrder (which visits them once) will not
  // do.
  struct Counter final : ChildVisitor {
    explicit Counter(int64_t* c) : count(c) {}
    void VisitChild(const NodeRef& child, FieldRole role) override {
      if (role == FieldRole::kBinds || !IsA<StmtNode>(child)) return;
      if (child->kind != NodeKind::kSeq) ++*count;
      child->VisitChildren(*this);
    }
    int64_t* count;
  } counter(&count);
  if (stmt) counter.VisitChild(stmt, FieldRole::kChild);
  return count;
}

bool IsPure(const Expr& e) {
  bool pure = true;
  PreOrder(e, [&](const NodeRef& n) {
    if (n->kind == NodeKind::kLoad) pure = false;
    if (const auto* call = As<Call>(n)) pure &= Info(call->intrinsic).purity == Purity::kPure;
    return pure;
  });
  return pure;
}

std::vector<Expr> SplitConjunction(const Expr& condition) {
  std::vector<Expr> out, todo = {condition};
  while (!todo.empty()) {
    Expr e = todo.back();
    todo.pop_back();
    const auto* binary = As<Binary>(e);
    if (binary && binary->op == BinaryOp::kAnd) {
      todo.push_back(binary->rhs);
      todo.push_back(binary->lhs);
    } else {
      out.push_back(std::move(e));
    }
  }
  return out;
}

Expr Conjunction(const std::vector<Expr>& conditions) {
  Expr out;
  for (const Expr& c : conditions) out = out ? And(out, c) : c;
  return out;
}

}  // namespace tenon

#include "loop/edit.h"

#include "arith/conditions.h"
#include "ir/visit.h"

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

std::vector<Stmt> ChildrenOf(const Stmt& stmt) {
  class Collector final : public ChildVisitor {
   public:
    void VisitChild(const NodeRef& child, FieldRole) override {
      if (IsA<StmtNode>(child)) out.push_back(Stmt(static_cast<const StmtNode*>(child.get())));
    }
    std::vector<Stmt> out;
  } collector;
  stmt->VisitChildren(collector);
  return std::move(collector.out);
}

namespace {

// Maps the statements directly inside one.
class StmtMapper final : public ChildMapper {
 public:
  explicit StmtMapper(const std::function<Stmt(const Stmt&)>& map) : map_(map) {}
  NodeRef MapChild(const NodeRef& child, FieldRole) override {
    if (!IsA<StmtNode>(child)) return child;
    return map_(Stmt(static_cast<const StmtNode*>(child.get())));
  }

 private:
  const std::function<Stmt(const Stmt&)>& map_;
};

// True when the mapped statement has lost what it is around.
bool IsEmpty(const Stmt& s) {
  if (const auto* loop = As<For>(s)) return !loop->body;
  if (const auto* loop = As<While>(s)) return !loop->body;
  if (const auto* let = As<Let>(s)) return !let->body;
  if (const auto* alloc = As<Alloc>(s)) return !alloc->body;
  if (const auto* bind = As<Bind>(s)) return !bind->body;
  if (const auto* block = As<Block>(s)) return !block->body;
  return false;
}

}  // namespace

Stmt MapBodies(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& map) {
  if (!IsControl(stmt)) return stmt;
  const std::function<Stmt(const Stmt&)> mapped = [&](const Stmt& s) {
    Stmt out = map(s);
    return out ? out : Seq::Make({});
  };
  StmtMapper mapper(mapped);
  Stmt out = Cast<StmtNode>(stmt->MapChildren(mapper));
  const auto* seq = As<Seq>(out);
  return seq && out != stmt ? Seq::Make(seq->stmts) : out;
}

Stmt MapChildStmts(const Stmt& s, const std::function<Stmt(const Stmt&)>& map) {
  StmtMapper mapper(map);
  NodeRef mapped = s->MapChildren(mapper);
  if (mapped.get() == s.get()) return s;
  Stmt out(static_cast<const StmtNode*>(mapped.get()));
  if (const auto* seq = As<Seq>(out)) {
    Stmt flat = Seq::Make(seq->stmts);
    const auto* left = As<Seq>(flat);
    return left != nullptr && left->stmts.empty() ? nullptr : flat;
  }
  if (const auto* branch = As<If>(out)) {
    if (branch->then_body) return out;
    if (!branch->else_body) return nullptr;
    return If::Make(Not(branch->condition), branch->else_body);
  }
  return IsEmpty(out) ? nullptr : out;
}

Stmt Edit(const Stmt& root, const Replacements& replacements) {
  std::function<Stmt(const Stmt&)> edit = [&](const Stmt& s) -> Stmt {
    auto it = replacements.find(s.get());
    return it != replacements.end() ? it->second : MapChildStmts(s, edit);
  };
  return edit(root);
}

Stmt MapStmts(const Stmt& root, const std::function<Stmt(const Stmt&)>& map) {
  std::function<Stmt(const Stmt&)> walk = [&](const Stmt& s) -> Stmt {
    Stmt inner = MapChildStmts(s, walk);
    return inner ? map(inner) : inner;
  };
  return walk(root);
}

Stmt Before(const Stmt& first, const Stmt& second) { return Seq::Make({first, second}); }

Stmt AddAlloc(const Buffer& buffer, const Stmt& root) { return Alloc::Make(buffer, root); }

Stmt RemoveAlloc(const Buffer& buffer, const Stmt& root) {
  return MapStmts(root, [&](const Stmt& s) -> Stmt {
    const auto* alloc = As<Alloc>(s);
    return alloc != nullptr && alloc->buffer == buffer ? alloc->body : s;
  });
}

Stmt AddGuard(const Stmt& stmt, const Expr& condition) {
  std::function<Stmt(const Stmt&)> guard = [&](const Stmt& s) -> Stmt {
    if (const auto* block = As<Block>(s)) {
      Block copy = *block;
      copy.where = AndAlso(block->where, condition);
      return Block::Make(std::move(copy));
    }
    bool is_leaf = ChildrenOf(s).empty() && !IsA<Seq>(s);
    return is_leaf ? If::Make(condition, s) : MapChildStmts(s, guard);
  };
  return guard(stmt);
}

}  // namespace tenon

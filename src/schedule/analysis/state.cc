#include "schedule/analysis/state.h"

namespace tenon::primitive {

void State::SetBody(Stmt body) {
  PrimFunc copy = *func;
  copy.body = body ? std::move(body) : Seq::Make({});
  func = PrimFunc::Make(std::move(copy));
}

namespace {

Stmt TidyBlock(const Block& block, const Stmt& s, Analyzer* analyzer) {
  Block copy = block;
  bool changed = false;
  for (IterVar& v : copy.iters) {
    Expr binding = analyzer->Simplify(v->binding);
    Expr min = analyzer->Simplify(v->min), extent = analyzer->Simplify(v->extent);
    if (binding == v->binding && min == v->min && extent == v->extent) continue;
    v = IterVarNode::Make(v->var, v->iter_kind, min, extent, binding);
    changed = true;
  }
  Expr where;
  for (const Expr& c : Conjuncts(block.where)) {
    if (!analyzer->CanProve(c)) where = AndAlso(where, analyzer->Simplify(c));
  }
  changed |= where != block.where;
  copy.where = where;
  return changed ? Stmt(Block::Make(std::move(copy))) : s;
}

}  // namespace

Stmt Tidy(const Stmt& stmt, Analyzer* analyzer) {
  std::function<Stmt(const Stmt&)> tidy = [&](const Stmt& s) -> Stmt {
    if (const auto* block = As<Block>(s)) return TidyBlock(*block, s, analyzer);
    const auto* loop = As<For>(s);
    if (loop == nullptr) return MapChildStmts(s, tidy);
    Expr min = analyzer->Simplify(loop->min);
    Expr extent = analyzer->Simplify(loop->extent);
    analyzer->Bind(loop->var, min, extent);
    Stmt body = tidy(loop->body);
    if (body == loop->body && min == loop->min && extent == loop->extent) return s;
    return For::Make(loop->var, min, extent, loop->for_kind, body, loop->attrs, loop->thread);
  };
  return tidy(stmt);
}

}  // namespace tenon::primitive

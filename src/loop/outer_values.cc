#include "loop/outer_values.h"

#include <algorithm>

#include "ir/visit.h"

namespace tenon {

Var OuterValues::NewDim(const std::string& base, const Expr& outer) {
  Var dim = VarNode::Make(fresh_name_(base));
  dims_.push_back({dim, outer});
  return dim;
}

bool OuterValues::IsOwn(const VarNode* var) const {
  auto has = [&](const std::vector<Value>& list) {
    return std::any_of(list.begin(), list.end(),
                       [&](const Value& v) { return v.var.get() == var; });
  };
  return inner_.count(var) != 0 || has(dims_) || has(scalars_);
}

// The expression depends on the surroundings and on nothing else.
bool OuterValues::IsOuter(const Expr& e) const {
  bool outer = false, inner = false;
  PreOrder(e, [&](const NodeRef& n) {
    const auto* var = As<VarNode>(n);
    if (var != nullptr) (IsOwn(var) ? inner : outer) = true;
    inner |= IsA<Load>(n) ||
             (IsA<ExprNode>(n) && !static_cast<const ExprNode*>(n.get())->dtype.IsScalar());
    return true;
  });
  return outer && !inner;
}

Expr OuterValues::ScalarFor(const Expr& e) {
  for (const Value& v : scalars_) {
    if (StructuralEqual(v.outer, e)) return v.var;
  }
  std::string base = "s" + std::to_string(scalars_.size());
  scalars_.push_back({VarNode::Make(fresh_name_(base), e->dtype), e});
  return scalars_.back().var;
}

Expr OuterValues::Abstract(const Expr& e) {
  class Mapper final : public ChildMapper {
   public:
    explicit Mapper(OuterValues* self) : self_(self) {}
    NodeRef MapChild(const NodeRef& n, FieldRole) override {
      return IsA<ExprNode>(n) ? NodeRef(self_->Abstract(Cast<ExprNode>(n))) : n;
    }

   private:
    OuterValues* self_;
  } mapper(this);
  if (IsOuter(e)) return ScalarFor(e);
  if (e->IsUnique()) return Cast<ExprNode>(e->MapChildren(mapper));
  if (auto it = done_.find(e.get()); it != done_.end()) return it->second.second;
  Expr out = Cast<ExprNode>(e->MapChildren(mapper));
  done_[e.get()] = {e, out};
  return out;
}

Stmt OuterValues::Abstract(const Stmt& s) {
  class Mapper final : public ChildMapper {
   public:
    explicit Mapper(OuterValues* self) : self_(self) {}
    NodeRef MapChild(const NodeRef& n, FieldRole role) override {
      if (role == FieldRole::kBinds) return n;
      if (IsA<ExprNode>(n)) return self_->Abstract(Cast<ExprNode>(n));
      return IsA<StmtNode>(n) ? n->MapChildren(*this) : n;
    }

   private:
    OuterValues* self_;
  } mapper(this);
  return Cast<StmtNode>(s->MapChildren(mapper));
}

Expr OuterValues::AbstractCondition(const Expr& condition, const std::vector<Var>& vars,
                                    Analyzer* analyzer) {
  const auto* b = As<Binary>(condition);
  bool compares = b != nullptr && Info(b->op).is_comparison && b->lhs->dtype.IsIndex();
  if (!compares || !b->lhs->dtype.IsScalar()) return Abstract(condition);
  std::optional<AffineForm> form = DetectAffine(analyzer->Simplify(b->lhs - b->rhs), vars);
  if (!form) return Abstract(condition);
  Expr inner = IndexConst(0);
  for (size_t i = 0; i < vars.size(); ++i) inner = inner + form->coefficients[i] * vars[i];
  Expr bound = analyzer->Simplify(IndexConst(0) - form->base);
  return Binary::Make(b->op, Abstract(analyzer->Simplify(inner)), Abstract(bound));
}

void OuterValues::DeclareIn(PrimFunc* func) const {
  for (const Value& v : dims_) {
    func->dims.push_back(v.var);
    func->dim_lo.push_back(0);
    func->dim_hi.push_back(-1);
    func->dim_step.push_back(1);
  }
  for (const Value& v : scalars_) func->scalars.push_back(v.var);
}

std::vector<Expr> OuterValues::Arguments() const {
  std::vector<Expr> out;
  for (const Value& v : dims_) out.push_back(v.outer);
  for (const Value& v : scalars_) out.push_back(v.outer);
  return out;
}

}  // namespace tenon

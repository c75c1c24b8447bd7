#include "codegen/guards.h"

namespace tenon::codegen {

bool Guards::NeedsItself(const Expr& e) const {
  if (const auto* load = As<Load>(e)) return !safe_ || !safe_(*load);
  if (const auto* call = As<Call>(e)) return Info(call->intrinsic).purity != Purity::kPure;
  const auto* b = As<Binary>(e);
  if (b == nullptr || !b->dtype.IsIndex()) return false;
  return (b->op == BinaryOp::kDiv || b->op == BinaryOp::kMod) && !AsInt(b->rhs);
}

bool Guards::Needs(const Expr& e) {
  if (auto it = known_.find(e.get()); it != known_.end()) return it->second;
  struct Children final : ChildVisitor {
    explicit Children(Guards* self) : self(self) {}
    void VisitChild(const NodeRef& child, FieldRole) override {
      if (!needs && IsA<ExprNode>(child)) needs = self->Needs(Cast<ExprNode>(child));
    }
    Guards* self;
    bool needs = false;
  } children(this);
  children.needs = NeedsItself(e);
  if (!children.needs) e->VisitChildren(children);
  known_[e.get()] = children.needs;
  return children.needs;
}

}  // namespace tenon::codegen

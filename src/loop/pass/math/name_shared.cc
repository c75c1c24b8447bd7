#include "loop/pass/math/name_shared.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/visit.h"
#include "loop/edit.h"
#include "loop/fresh_names.h"

namespace tenon {

namespace {

constexpr int64_t kMostNodes = 1 << 17;  // of a value that is left as it is
constexpr int64_t kLeastNodes = 8;       // of a part worth a name

// Of an expression by itself.
struct Part {
  int64_t nodes = 1;  // written out
  int64_t parents = 0;
  bool can_fail = false;  // it, or something in it
  bool certain = false;   // the store computes it whatever selects say
};

bool CanFail(const Node& n) {
  if (n.kind == NodeKind::kLoad) return true;
  if (const auto* call = As<Call>(&n)) return Info(call->intrinsic).purity != Purity::kPure;
  const auto* binary = As<Binary>(&n);
  if (!binary || binary->lhs->dtype.IsFloat()) return false;
  if (binary->dtype.IsIndex()) return true;
  if (binary->op != BinaryOp::kDiv && binary->op != BinaryOp::kMod) return false;
  const auto* divisor = As<IntConst>(binary->rhs);
  return !divisor || divisor->value == 0;
}

// What is known of a value's parts, each looked at once.
class Parts final : public ChildVisitor {
 public:
  explicit Parts(const Expr& value) {
    VisitChild(value, FieldRole::kChild);
    MarkCertain(value);
  }

  void VisitChild(const NodeRef& child, FieldRole role) override {
    if (role == FieldRole::kBinds || !ExprNode::Classof(child->kind)) return;
    const auto [at, is_new] = parts_.try_emplace(child.get());
    Part& part = at->second;
    ++part.parents;
    if (is_new) {
      part.can_fail = CanFail(*child);
      Part* const outer = std::exchange(now_, &part);
      child->VisitChildren(*this);
      now_ = outer;
    }
    if (!now_) return;
    now_->nodes = std::min(now_->nodes + part.nodes, int64_t{1} << 40);
    now_->can_fail |= part.can_fail;
  }

  const Part& Of(const NodeRef& n) const { return parts_.at(n.get()); }

 private:
  // Below selects, their conditions alone.
  void MarkCertain(const Expr& value) {
    PreOrder(value, [&](const NodeRef& n) {
      const auto part = parts_.find(n.get());
      if (part == parts_.end() || part->second.certain) return false;
      part->second.certain = true;
      const auto* select = As<Select>(n);
      if (select) MarkCertain(select->condition);
      return !select;
    });
  }

  std::unordered_map<const Node*, Part> parts_;
  Part* now_ = nullptr;
};

// Rewrites a value bottom up; what has got a name is in `lets`, in the order of computing it.
class Namer final : public ChildMapper {
 public:
  Namer(const Parts& parts, std::string base, NameSupply* names)
      : parts_(parts), base_(std::move(base)), names_(*names) {}

  NodeRef MapChild(const NodeRef& child, FieldRole role) override {
    if (role == FieldRole::kBinds || !ExprNode::Classof(child->kind)) return child;
    if (const NodeRef* done = done_.Find(child)) return *done;
    NodeRef out = child->MapChildren(*this);
    const Part& part = parts_.Of(child);
    // Accesses are told by the form of their places.
    const bool is_place = Cast<ExprNode>(out)->dtype.Element().IsIndex();
    if (part.parents > 1 && part.nodes >= kLeastNodes && !is_place &&
        (part.certain || !part.can_fail)) {
      const Expr value = Cast<ExprNode>(out);
      lets.emplace_back(VarNode::Make(names_.Fresh(base_), value->dtype), value);
      out = lets.back().first;
    }
    done_.Add(child, out);
    return out;
  }

  std::vector<std::pair<Var, Expr>> lets;

 private:
  const Parts& parts_;
  const std::string base_;
  NameSupply& names_;
  Rewritten done_;
};

Stmt WithNames(const Store& store, NameSupply* names) {
  const Parts parts(store.value);
  if (parts.Of(store.value).nodes <= kMostNodes) return Stmt(&store);
  Namer namer(parts, store.buffer->name + ".part", names);
  const Expr value = Cast<ExprNode>(namer.MapChild(store.value, FieldRole::kChild));
  Stmt out = Store::Make(store.buffer, store.indices, value, store.mask);
  for (auto let = namer.lets.rbegin(); let != namer.lets.rend(); ++let)
    out = Let::Make(let->first, let->second, out);
  return out;
}

}  // namespace

Func NameShared(const Func& func) {
  NameSupply names(*func);
  return WithBody(func, PostOrderRewrite(func->body, [&](const NodeRef& n) -> NodeRef {
                    const auto* store = As<Store>(n);
                    return store ? NodeRef(WithNames(*store, &names)) : n;
                  }));
}

}  // namespace tenon

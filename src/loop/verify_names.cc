// Rules about names, scopes and the shape of the tree.
#include <map>
#include <unordered_set>

#include "loop/arguments.h"
#include "loop/verify_impl.h"

namespace tenon {

void CheckFlatLists(const VerifyContext& context) {
  context.ForEach([&](const NodeRef& node) {
    const auto* seq = As<Seq>(node);
    if (!seq) return;
    if (seq->stmts.size() == 1)
      context.Error("a list of a single statement: {}", Describe(seq->stmts[0]));
    for (const Stmt& s : seq->stmts) {
      if (IsA<Seq>(s)) context.Error("a list of statements inside a list");
    }
  });
}

namespace {

// Walks fields in their order, in which bindings come before what they bind in. Expressions that
// are shared are walked once per use, for each use has its own scope; `budget` ends the walk of a
// tree that is small only by sharing.
class ScopeWalk final : public ChildVisitor {
 public:
  explicit ScopeWalk(const VerifyContext& context) : context_(context) {}

  void VisitChild(const NodeRef& child, FieldRole role) override {
    if (--budget_ < 0) return;
    if (role == FieldRole::kBinds) return Bind(child);
    if (child->kind == NodeKind::kVar || child->kind == NodeKind::kBuffer) return Use(child);
    // What expressions share is looked at once as long as all that was visible is.
    if (IsA<ExprNode>(child) && !seen_.insert(child.get()).second) return;
    const size_t mark = scope_.size();
    const bool layout = std::exchange(in_layout_, child->kind == NodeKind::kLayout);
    child->VisitChildren(*this);
    in_layout_ = layout;
    // A block variable is visible in the block that holds it.
    if (child->kind != NodeKind::kIterVar) Leave(mark);
  }

 private:
  static const std::string& NameOf(const NodeRef& node) {
    return IsA<VarNode>(node) ? As<VarNode>(node)->name : As<BufferNode>(node)->name;
  }

  void Bind(const NodeRef& node) {
    // Two buffers may share a layout, and with it its coordinates.
    if (!in_layout_ && !bound_.insert(node.get()).second) {
      context_.Error("'{}' is bound twice", NameOf(node));
    }
    if (IsA<BufferNode>(node)) node->VisitChildren(*this);
    scope_.push_back(node.get());
    visible_.insert(node.get());
  }

  void Use(const NodeRef& node) {
    if (visible_.count(node.get()) != 0 || !reported_.insert(node.get()).second) return;
    context_.Error("the {} '{}' is used where it is not defined",
                   IsA<VarNode>(node) ? "variable" : "buffer", NameOf(node));
  }

  void Leave(size_t mark) {
    if (scope_.size() > mark) seen_.clear();
    while (scope_.size() > mark) {
      visible_.erase(scope_.back());
      scope_.pop_back();
    }
  }

  const VerifyContext& context_;
  int64_t budget_ = 100'000'000;
  bool in_layout_ = false;
  std::vector<const Node*> scope_;
  std::unordered_set<const Node*> visible_, bound_, reported_, seen_;
};

}  // namespace

void CheckScopes(const VerifyContext& context) {
  ScopeWalk(context).VisitChild(context.root, FieldRole::kChild);
}

void CheckHandles(const VerifyContext& context) {
  std::unordered_set<std::string> loops, blocks, dims;
  for (const Var& dim : context.func.dims) {
    if (!dims.insert(dim->name).second) context.Error("two dims are named '{}'", dim->name);
  }
  context.ForEach([&](const NodeRef& node) {
    if (const auto* loop = As<For>(node); loop && !loops.insert(loop->var->name).second) {
      context.Error("two loops are named '{}'", loop->var->name);
    }
    if (const auto* block = As<Block>(node); block && !blocks.insert(block->name).second) {
      context.Error("two blocks are named '{}'", block->name);
    }
  });
}

void CheckDims(const VerifyContext& context) {
  const PrimFunc& f = context.func;
  for (size_t i = 0; i < f.dims.size(); ++i) {
    const DimRange r = f.dim_range(i);
    const std::string& name = f.dims[i]->name;
    if (f.dims[i]->dtype != DType::Index()) {
      context.Error("dim '{}': expected index but got {}", name, f.dims[i]->dtype.ToString());
    }
    if (r.lo < 0 || (r.hi != -1 && r.hi < r.lo)) {
      context.Error("dim '{}': expected 0 <= lo <= hi, or hi -1 for no bound, but got {}..={}",
                    name, r.lo, r.hi);
    }
    if (r.step < 1)
      context.Error("dim '{}': expected a step of at least 1 but got {}", name, r.step);
  }
}

void CheckArguments(const VerifyContext& context) {
  if (!context.func.attrs.Has(kArgumentsAttr)) return;
  auto order = ArgumentsOf(context.func);
  if (!order) context.Error("{}", order.errors()[0].message);
}

}  // namespace tenon

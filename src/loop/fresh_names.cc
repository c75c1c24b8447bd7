#include "loop/fresh_names.h"

namespace tenon {

NameSupply::NameSupply(const PrimFunc& func) : NameSupply(".", 1) {
  for (const Var& v : func.dims) Take(v->name);
  for (const Var& v : func.scalars) Take(v->name);
  for (const Buffer& b : func.buffers) Take(b->name);
  PreOrder(func.body, [&](const NodeRef& n) {
    if (const auto* loop = As<For>(n)) Take(loop->var->name);
    if (const auto* let = As<Let>(n)) Take(let->var->name);
    if (const auto* alloc = As<Alloc>(n)) Take(alloc->buffer->name);
    if (const auto* bind = As<Bind>(n)) Take(bind->buffer->name);
    if (const auto* iter = As<IterVarNode>(n)) Take(iter->var->name);
    if (const auto* block = As<Block>(n)) Take(block->name);
    return true;
  });
}

std::string NameSupply::Fresh(const std::string& base) {
  if (used_.insert(base).second) return base;
  for (int& i = next_.try_emplace(base, first_number_).first->second;;) {
    std::string name = base + mark_ + std::to_string(i++);
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

}  // namespace tenon

#include "ir/visit.h"

namespace tenon {

namespace {

class PreOrderVisitor final : public ChildVisitor {
 public:
  explicit PreOrderVisitor(const std::function<bool(const NodeRef&)>& visit) : visit_(visit) {}
  void VisitChild(const NodeRef& child, FieldRole role) override {
    if (role == FieldRole::kBinds) return;
    if (!child->IsUnique() && !seen_.Insert(child.get()).second) return;
    if (visit_(child)) child->VisitChildren(*this);
  }

 private:
  const std::function<bool(const NodeRef&)>& visit_;
  struct Seen {};
  FlatMap<const Node*, Seen, PointerHash> seen_;
};

bool IsBufferPart(const NodeRef& n) {
  return n->kind == NodeKind::kBuffer || n->kind == NodeKind::kLayout;
}

}  // namespace

void PreOrder(const NodeRef& root, const std::function<bool(const NodeRef&)>& visit) {
  if (root) PreOrderVisitor(visit).VisitChild(root, FieldRole::kChild);
}

NodeRef PostOrderRewriter::operator()(const NodeRef& root) {
  return root ? MapChild(root, FieldRole::kChild) : root;
}

NodeRef PostOrderRewriter::MapChild(const NodeRef& child, FieldRole role) {
  if (role == FieldRole::kBinds && (child->kind == NodeKind::kVar || !into_buffers_)) return child;
  if (!into_buffers_ && IsBufferPart(child)) return child;
  if (const NodeRef* done = done_.Find(child)) return *done;
  NodeRef out = rewrite_(child->MapChildren(*this));
  done_.Add(child, out);
  return out;
}

NodeRef SubstituteNode(const NodeRef& root, const VarMap& vars) {
  if (vars.empty()) return root;
  return PostOrderRewriter(
      [&](const NodeRef& n) -> NodeRef {
        const auto* var = As<VarNode>(n);
        if (var == nullptr) return n;
        auto it = vars.find(var);
        return it == vars.end() ? n : NodeRef(it->second);
      },
      /*into_buffers=*/true)(root);
}

namespace {

// Buffers are replaced where they are used and where they are bound, so this walks bindings too.
class BufferReplacer final : public ChildMapper {
 public:
  explicit BufferReplacer(const BufferMap& buffers) : buffers_(buffers) {}
  NodeRef MapChild(const NodeRef& child, FieldRole role) override {
    if (const auto* buffer = As<BufferNode>(child)) {
      auto it = buffers_.find(buffer);
      return it == buffers_.end() ? child : NodeRef(it->second);
    }
    if (child->kind == NodeKind::kVar) return child;
    if (const NodeRef* done = done_.Find(child)) return *done;
    NodeRef out = child->MapChildren(*this);
    done_.Add(child, out);
    return out;
  }

 private:
  const BufferMap& buffers_;
  Rewritten done_;
};

}  // namespace

NodeRef SubstituteBuffersNode(const NodeRef& root, const BufferMap& buffers) {
  if (!root || buffers.empty()) return root;
  return BufferReplacer(buffers).MapChild(root, FieldRole::kChild);
}

bool UsesVar(const NodeRef& root, const VarNode* var) {
  bool found = false;
  PreOrder(root, [&](const NodeRef& n) {
    found |= n.get() == var;
    return !found;
  });
  return found;
}

bool UsesAnyVar(const NodeRef& root, const std::unordered_set<const VarNode*>& vars) {
  bool found = false;
  PreOrder(root, [&](const NodeRef& n) {
    const auto* var = As<VarNode>(n);
    found |= var != nullptr && vars.count(var) != 0;
    return !found;
  });
  return found;
}

bool UsesBuffer(const NodeRef& root, const BufferNode* buffer) {
  bool found = false;
  PreOrder(root, [&](const NodeRef& n) {
    found |= n.get() == buffer;
    return !found;
  });
  return found;
}

}  // namespace tenon

// Walking and rewriting any IR tree (expressions and statements alike).
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "ir/buffer.h"
#include "support/check.h"
#include "support/flat_map.h"

namespace tenon {

/// Calls `visit` on every node below and including `root`, parents first, following children but
/// not bindings. A node shared by several parents is visited once. `visit` returns false to skip a
/// node's children.
void PreOrder(const NodeRef& root, const std::function<bool(const NodeRef&)>& visit);

/// What nodes have become in a rewriting. A node with a single owner is met once and not kept.
class Rewritten {
 public:
  /// Null where that is not known.
  const NodeRef* Find(const NodeRef& from) {
    return from->IsUnique() ? nullptr : nodes_.Find(from.get());
  }
  void Add(const NodeRef& from, const NodeRef& to) {
    if (from->IsUnique()) return;
    *nodes_.Insert(from.get()).first = to;
    keep_.push_back(from);
  }

 private:
  FlatMap<const Node*, NodeRef, PointerHash> nodes_;
  std::vector<NodeRef> keep_;  // they stay alive while their addresses are keys
};

/// Rebuilds bottom-up. `rewrite` sees each node after its children were rewritten and returns its
/// replacement (or the node itself). Buffers and layouts are left alone unless `into_buffers`.
/// Equal pointers are rewritten once.
class PostOrderRewriter : private ChildMapper {
 public:
  using Fn = std::function<NodeRef(const NodeRef&)>;
  explicit PostOrderRewriter(Fn rewrite, bool into_buffers = false)
      : rewrite_(std::move(rewrite)), into_buffers_(into_buffers) {}
  NodeRef operator()(const NodeRef& root);

 private:
  NodeRef MapChild(const NodeRef& child, FieldRole role) override;
  Fn rewrite_;
  bool into_buffers_;
  Rewritten done_;
};

template <class T>
Ref<const T> PostOrderRewrite(const Ref<const T>& root, PostOrderRewriter::Fn rewrite,
                              bool into_buffers = false) {
  NodeRef out = PostOrderRewriter(std::move(rewrite), into_buffers)(root);
  return Ref<const T>(static_cast<const T*>(out.get()));
}

using VarMap = std::unordered_map<const VarNode*, Expr>;
using BufferMap = std::unordered_map<const BufferNode*, Buffer>;

/// Replaces variables (uses, not bindings), also inside the shapes and layouts of buffers that are
/// bound in the tree.
NodeRef SubstituteNode(const NodeRef& root, const VarMap& vars);
template <class T>
Ref<const T> Substitute(const Ref<const T>& root, const VarMap& vars) {
  NodeRef out = SubstituteNode(root, vars);
  return Ref<const T>(static_cast<const T*>(out.get()));
}
/// Replaces buffers everywhere: loads, stores, regions, bindings.
NodeRef SubstituteBuffersNode(const NodeRef& root, const BufferMap& buffers);
template <class T>
Ref<const T> SubstituteBuffers(const Ref<const T>& root, const BufferMap& buffers) {
  NodeRef out = SubstituteBuffersNode(root, buffers);
  return Ref<const T>(static_cast<const T*>(out.get()));
}

/// True when `root` mentions the variable / any of the variables / the buffer.
bool UsesVar(const NodeRef& root, const VarNode* var);
bool UsesAnyVar(const NodeRef& root, const std::unordered_set<const VarNode*>& vars);
bool UsesBuffer(const NodeRef& root, const BufferNode* buffer);

/// A double-dispatch visitor of expressions: derive from ExprFunctor<R> and override the kinds you
/// handle; the rest go to VisitDefault.
template <class R>
class ExprFunctor {
 public:
  virtual ~ExprFunctor() = default;
  virtual R Visit(const Expr& e) {
    switch (e->kind) {
#define TN_EXPR_CASE(K, T) \
  case NodeKind::k##K: return Visit##K(static_cast<const T&>(*e), e)
      TN_EXPR_CASE(IntConst, IntConst);
      TN_EXPR_CASE(FloatConst, FloatConst);
      TN_EXPR_CASE(StringConst, StringConst);
      TN_EXPR_CASE(Var, VarNode);
      TN_EXPR_CASE(Unary, Unary);
      TN_EXPR_CASE(Binary, Binary);
      TN_EXPR_CASE(Select, Select);
      TN_EXPR_CASE(Cast, CastExpr);
      TN_EXPR_CASE(Load, Load);
      TN_EXPR_CASE(Ramp, Ramp);
      TN_EXPR_CASE(Broadcast, Broadcast);
      TN_EXPR_CASE(Call, Call);
#undef TN_EXPR_CASE
      default: TN_UNREACHABLE();
    }
  }

 protected:
  virtual R VisitDefault(const Expr& e) = 0;
#define TN_EXPR_METHOD(K, T) \
  virtual R Visit##K(const T& node, const Expr& e) { return VisitDefault(e); }
  TN_EXPR_METHOD(IntConst, IntConst)
  TN_EXPR_METHOD(FloatConst, FloatConst)
  TN_EXPR_METHOD(StringConst, StringConst)
  TN_EXPR_METHOD(Var, VarNode)
  TN_EXPR_METHOD(Unary, Unary)
  TN_EXPR_METHOD(Binary, Binary)
  TN_EXPR_METHOD(Select, Select)
  TN_EXPR_METHOD(Cast, CastExpr)
  TN_EXPR_METHOD(Load, Load)
  TN_EXPR_METHOD(Ramp, Ramp)
  TN_EXPR_METHOD(Broadcast, Broadcast)
  TN_EXPR_METHOD(Call, Call)
#undef TN_EXPR_METHOD
};

}  // namespace tenon

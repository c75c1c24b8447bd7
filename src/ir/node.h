// The machinery under every IR node: fields are listed once, and walking, rebuilding, equality and
// hashing derive from that list.
//
// A node struct derives from NodeOf<Self, NodeKind::kX, Base> and defines
//
//   template <class S, class F> static void Fields(S& self, F&& f) {
//     f("condition", self.condition, FieldRole::kChild); …
//   }
//
// Field types: Ref<const SomeNode>, std::vector<Ref<const SomeNode>> (null entries are passed
// over), or a plain value (int64_t, double, bool, std::string, an enum, DType, Attrs,
// std::vector<std::string>).
//
// Roles: kChild: structure, walked and compared. kBinds: a Var or Buffer that this node introduces;
// compared up to renaming (alpha-equivalence), not walked as a use. kAttribute: a plain value that
// is compared. kIgnore: names and other things that do not matter to equality. List bindings before
// the children that use them.
//
// Nodes are immutable and shared; they are made by their checked Make functions. Depth is bounded
// by the makers and parsers of input (kMaxDepth), which is why these walks may recurse.
#pragma once

#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "ir/attrs.h"
#include "ir/dtype.h"
#include "support/ref.h"

namespace tenon {

/// Parsers and importers refuse input nested deeper than this.
inline constexpr int kMaxDepth = 512;

enum class NodeKind : uint16_t {
#define TN_EXPR(name) k##name,
#include "ir/expr.def"
#undef TN_EXPR
  kBuffer,
  kLayout,
  kRange,
  kRegion,
  kIterVar,
#define TN_STMT(name) k##name,
#include "ir/stmt_kinds.def"
#undef TN_STMT
  kPrimFunc,
};

const char* Name(NodeKind kind);

enum class FieldRole : uint8_t { kChild, kBinds, kAttribute, kIgnore };

class Node;
using NodeRef = Ref<const Node>;

/// Receives the children of a node, one call each, in field order.
class ChildVisitor {
 public:
  virtual ~ChildVisitor() = default;
  virtual void VisitChild(const NodeRef& child, FieldRole role) = 0;
};

/// Maps each child to its replacement (itself for no change).
class ChildMapper {
 public:
  virtual ~ChildMapper() = default;
  virtual NodeRef MapChild(const NodeRef& child, FieldRole role) = 0;
};

class EqualContext;
class HashContext;

class Node : public RefCounted {
 public:
  const NodeKind kind;
  virtual void VisitChildren(ChildVisitor& v) const = 0;
  /// The node with each child replaced by the mapper's answer; this very node where nothing
  /// changed.
  virtual NodeRef MapChildren(ChildMapper& m) const = 0;
  virtual bool EqualFields(const Node& other, EqualContext& c) const = 0;
  virtual void HashFields(HashContext& c) const = 0;

 protected:
  explicit Node(NodeKind k) : kind(k) {}
  Node(const Node&) = default;
};

/// True when `node` is a T (T names its kind, or a family through Classof).
template <class T>
bool IsA(const Node* node) {
  return node != nullptr && T::Classof(node->kind);
}
template <class T, class U>
bool IsA(const Ref<U>& node) {
  return IsA<T>(static_cast<const Node*>(node.get()));
}
/// The node as a T, or null when it is something else.
template <class T, class U>
const T* As(const Ref<U>& node) {
  return IsA<T>(node) ? static_cast<const T*>(static_cast<const Node*>(node.get())) : nullptr;
}
template <class T>
const T* As(const Node* node) {
  return IsA<T>(node) ? static_cast<const T*>(node) : nullptr;
}
/// The node as a reference to T; it must be one.
template <class T, class U>
Ref<const T> Cast(const Ref<U>& node) {
  return Ref<const T>(As<T>(node));
}

/// Structural equality up to the names of bound variables and buffers. Free variables and buffers
/// are equal only to themselves, unless `map_free`, when the first meeting pairs them.
class EqualContext {
 public:
  explicit EqualContext(bool map_free = false) : map_free_(map_free) {}

  bool Equal(const NodeRef& a, const NodeRef& b);
  /// The path of the first difference, innermost last, e.g. ".body.value.lhs"; empty when equal.
  std::string path() const;

  // Called by Node::EqualFields.
  bool Field(const char* name, const NodeRef& a, const NodeRef& b, FieldRole role);
  /// From here on a means b. Where trees share a subtree (a layout of two buffers), a may be bound
  /// several times.
  bool Bind(const NodeRef& a, const NodeRef& b);
  bool Differ(const char* name);

 private:
  bool map_free_;
  std::unordered_map<const Node*, const Node*> forward_, backward_;
  // Pairs of shared expressions found equal under these bindings: expressions are graphs, and each
  // is walked once.
  std::unordered_map<const Node*, const Node*> equal_;
  std::vector<std::string> path_;
  bool found_ = false;
};

/// A hash consistent with EqualContext (without map_free): bound names do not matter. Stable
/// between runs except for free variables and buffers, which hash by name.
class HashContext {
 public:
  void Add(uint64_t v) { state_ = (state_ ^ v) * 0x9E3779B97F4A7C15ull + (state_ >> 29); }
  void Add(const std::string& s);
  void AddNode(const NodeRef& n, FieldRole role);
  uint64_t value() const { return state_; }

 private:
  /// The hash of an expression by itself.
  uint64_t Part(const NodeRef& n);

  static constexpr uint64_t kStart = 0x2545F4914F6CDD1Dull;
  uint64_t state_ = kStart;
  std::unordered_map<const Node*, uint64_t> bound_;
  uint64_t bindings_ = 0;
  std::unordered_map<const Node*, uint64_t>
      shared_;  // of expressions with several parents, under these bindings
};

bool StructuralEqual(const NodeRef& a, const NodeRef& b, bool map_free = false);
/// The same, and the path of the first difference in `*path`.
bool StructuralEqual(const NodeRef& a, const NodeRef& b, std::string* path, bool map_free = false);
uint64_t StructuralHash(const NodeRef& n);

/// Implements Node for a struct with a Fields list. The definitions are in ir/node_fields.h; the
/// file that defines a node's Make instantiates them, so that no other file compiles them.
template <class Self, NodeKind K, class Base = Node>
class NodeOf : public Base {
 public:
  static bool Classof(NodeKind k) { return k == K; }
  static constexpr NodeKind kKind = K;

  void VisitChildren(ChildVisitor& v) const override;
  NodeRef MapChildren(ChildMapper& m) const override;
  bool EqualFields(const Node& other, EqualContext& c) const override;
  void HashFields(HashContext& c) const override;

 protected:
  NodeOf() : Base(K) {}

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

}  // namespace tenon

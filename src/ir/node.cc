#include "ir/node.h"

#include <algorithm>
#include <utility>

#include "ir/buffer.h"
#include "support/check.h"

namespace tenon {

const char* Name(NodeKind kind) {
  switch (kind) {
#define TN_EXPR(name) \
  case NodeKind::k##name: return #name;
#include "ir/expr.def"
#undef TN_EXPR
    case NodeKind::kBuffer: return "Buffer";
    case NodeKind::kLayout: return "Layout";
    case NodeKind::kRange: return "Range";
    case NodeKind::kRegion: return "Region";
    case NodeKind::kIterVar: return "IterVar";
#define TN_STMT(name) \
  case NodeKind::k##name: return #name;
#include "ir/stmt_kinds.def"
#undef TN_STMT
    case NodeKind::kPrimFunc: return "PrimFunc";
  }
  return "?";
}

static bool IsExpr(NodeKind kind) {
  switch (kind) {
#define TN_EXPR(name) case NodeKind::k##name:
#include "ir/expr.def"
#undef TN_EXPR
    return true;
    default: return false;
  }
}

bool EqualContext::Equal(const NodeRef& a, const NodeRef& b) {
  if (!a || !b) return a == b || Differ("");
  auto it = forward_.find(a.get());
  if (it != forward_.end()) return it->second == b.get() || Differ("");
  if (auto back = backward_.find(b.get()); back != backward_.end()) return Differ("");
  bool is_name = a->kind == NodeKind::kVar || a->kind == NodeKind::kBuffer;
  if (a.get() == b.get() && is_name) return true;
  if (a->kind != b->kind) return Differ("");
  if (is_name) {
    if (!map_free_) return Differ("");
    return Bind(a, b);
  }
  const bool shared = IsExpr(a->kind) && !a->IsUnique();
  if (auto known = shared ? equal_.find(a.get()) : equal_.end();
      known != equal_.end() && known->second == b.get()) {
    return true;
  }
  if (!a->EqualFields(*b, *this)) return false;
  if (shared) equal_[a.get()] = b.get();
  return true;
}

bool EqualContext::Bind(const NodeRef& a, const NodeRef& b) {
  if (a->kind != b->kind) return Differ("");
  if (!a->EqualFields(*b, *this)) return false;
  if (auto it = forward_.find(a.get()); it != forward_.end()) backward_.erase(it->second);
  if (auto it = backward_.find(b.get()); it != backward_.end()) forward_.erase(it->second);
  forward_[a.get()] = b.get();
  backward_[b.get()] = a.get();
  equal_.clear();
  return true;
}

bool EqualContext::Field(const char* name, const NodeRef& a, const NodeRef& b, FieldRole role) {
  bool equal = role == FieldRole::kBinds && a && b ? Bind(a, b) : Equal(a, b);
  if (!equal) path_.emplace_back(name);
  return equal;
}

bool EqualContext::Differ(const char* name) {
  if (!found_ && *name != '\0') path_.emplace_back(name);
  found_ = true;
  return false;
}

std::string EqualContext::path() const {
  std::string out;
  for (auto it = path_.rbegin(); it != path_.rend(); ++it) out += "." + *it;
  return out;
}

void HashContext::Add(const std::string& s) {
  uint64_t h = 1469598103934665603ull;
  for (unsigned char c : s) h = (h ^ c) * 1099511628211ull;
  Add(h);
}

void HashContext::AddNode(const NodeRef& n, FieldRole role) {
  if (!n) {
    Add(uint64_t{0});
    return;
  }
  Add(static_cast<uint64_t>(n->kind) + 1);
  if (role == FieldRole::kBinds) {
    n->HashFields(*this);
    bound_[n.get()] = ++bindings_;
    shared_.clear();
    return;
  }
  if (auto it = bound_.find(n.get()); it != bound_.end()) {
    Add(it->second);
    return;
  }
  if (const auto* var = As<VarNode>(n)) Add(var->name);
  if (const auto* buffer = As<BufferNode>(n)) Add(buffer->name);
  if (IsExpr(n->kind)) {
    Add(Part(n));
  } else {
    n->HashFields(*this);
  }
}

uint64_t HashContext::Part(const NodeRef& n) {
  const bool shared = !n->IsUnique();
  if (auto known = shared ? shared_.find(n.get()) : shared_.end(); known != shared_.end())
    return known->second;
  const uint64_t outer = std::exchange(state_, kStart);
  n->HashFields(*this);
  const uint64_t part = std::exchange(state_, outer);
  if (shared) shared_[n.get()] = part;
  return part;
}

bool StructuralEqual(const NodeRef& a, const NodeRef& b, bool map_free) {
  return EqualContext(map_free).Equal(a, b);
}

bool StructuralEqual(const NodeRef& a, const NodeRef& b, std::string* path, bool map_free) {
  EqualContext context(map_free);
  bool equal = context.Equal(a, b);
  *path = context.path();
  return equal;
}

uint64_t StructuralHash(const NodeRef& n) {
  HashContext context;
  context.AddNode(n, FieldRole::kChild);
  return context.value();
}

}  // namespace tenon

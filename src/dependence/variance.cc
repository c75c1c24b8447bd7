#include "dependence/variance.h"

#include "dependence/access.h"
#include "ir/visit.h"

namespace tenon {

Variance::Variance(const Var& var, const Stmt& body, const Module* module) : module_(module) {
  differing_.insert(var.get());
  size_t before = 0;
  do {  // memory that differs is read by what stands before it too, in a loop around both
    before = differing_.size();
    Scan(body, false);
  } while (differing_.size() != before);
}

bool Variance::Differs(const NodeRef& node) const {
  bool found = false;
  PreOrder(node, [&](const NodeRef& n) {
    if (IsA<BufferNode>(n)) return false;  // as what a store writes, it has no say
    found |= Has(n.get());
    if (const auto* load = As<Load>(n)) found |= Has(load->buffer.get());
    if (const auto* region = As<RegionNode>(n)) found |= Has(region->buffer.get());
    if (const auto* atomic = As<Atomic>(n)) found |= Has(atomic->buffer.get());
    return !found;
  });
  return found;
}

bool Variance::TakesApart(const StmtNode& stmt) const {
  const Node* node = &stmt;
  if (const auto* s = As<If>(node)) return Differs(s->condition);
  if (const auto* s = As<While>(node)) return Differs(s->condition);
  if (const auto* s = As<For>(node)) return Differs(s->min) || Differs(s->extent);
  return false;
}

void Variance::Scan(const Stmt& stmt, bool apart) {
  apart |= TakesApart(*stmt);
  switch (stmt->kind) {
    case NodeKind::kSeq:
      for (const Stmt& s : As<Seq>(stmt)->stmts) Scan(s, apart);
      return;
    case NodeKind::kFor: {
      const auto* loop = As<For>(stmt);
      if (TakesApart(*stmt)) differing_.insert(loop->var.get());
      return Scan(loop->body, apart);
    }
    case NodeKind::kIf:
      Scan(As<If>(stmt)->then_body, apart);
      if (As<If>(stmt)->else_body) Scan(As<If>(stmt)->else_body, apart);
      return;
    case NodeKind::kLet:
      if (Differs(As<Let>(stmt)->value)) differing_.insert(As<Let>(stmt)->var.get());
      return Scan(As<Let>(stmt)->body, apart);
    case NodeKind::kBind:
      if (Differs(As<Bind>(stmt)->data)) differing_.insert(As<Bind>(stmt)->buffer.get());
      return Scan(As<Bind>(stmt)->body, apart);
    case NodeKind::kAlloc: return Scan(As<Alloc>(stmt)->body, apart);
    case NodeKind::kWhile: return Scan(As<While>(stmt)->body, apart);
    case NodeKind::kBlock: return Scan(As<Block>(stmt)->body, apart);
    default:
      if (apart || Differs(stmt)) ScanWritten(stmt);
  }
}

// Everything that a statement touches but loads counts as written.
void Variance::ScanWritten(const Stmt& stmt) {
  if (const auto* store = As<Store>(stmt)) differing_.insert(store->buffer.get());
  if (const auto* call = As<CallFunc>(stmt); call && module_) {
    const Accesses all = AccessesOf(stmt, *module_, [](const Buffer&) { return true; });
    differing_.insert(all.writes.begin(), all.writes.end());
    return;
  }
  PreOrder(stmt, [&](const NodeRef& n) {
    if (const auto* region = As<RegionNode>(n)) differing_.insert(region->buffer.get());
    if (const auto* atomic = As<Atomic>(n)) differing_.insert(atomic->buffer.get());
    const auto* call = As<Call>(n);
    const bool address = call && call->intrinsic == Intrinsic::kBufferData;
    if (const auto* load = address ? As<Load>(call->args[0]) : nullptr)
      differing_.insert(load->buffer.get());
    return !IsA<BufferNode>(n);
  });
}

}  // namespace tenon

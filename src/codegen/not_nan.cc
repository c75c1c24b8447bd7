#include "codegen/not_nan.h"

#include <cmath>
#include <utility>
#include <vector>

#include "ir/visit.h"

namespace tenon::codegen {

namespace {

struct Memory {
  std::unordered_set<const BufferNode*> own;      // allocated here
  std::unordered_set<const BufferNode*> written;  // also by others than a store
  std::vector<std::pair<const BufferNode*, Expr>> stores;
};

Memory MemoryOf(const PrimFunc& func) {
  Memory out;
  PreOrder(func.body, [&](const NodeRef& n) {
    if (const auto* alloc = As<Alloc>(n)) {
      if (alloc->buffer->dtype.IsFloat()) out.own.insert(alloc->buffer.get());
    } else if (const auto* store = As<Store>(n)) {
      if (store->value->dtype.IsFloat()) out.stores.emplace_back(store->buffer.get(), store->value);
    } else if (const auto* region = As<RegionNode>(n)) {
      out.written.insert(region->buffer.get());
    } else if (const auto* atomic = As<Atomic>(n)) {
      out.written.insert(atomic->buffer.get());
    } else if (const auto* call = As<Call>(n); call && call->intrinsic == Intrinsic::kBufferData) {
      if (const auto* load = As<Load>(call->args[0])) out.written.insert(load->buffer.get());
    }
    return true;
  });
  return out;
}

}  // namespace

// All of them are taken to be numbers, until a store shows that one may be none.
NotNan::NotNan(const PrimFunc& func) {
  const Memory memory = MemoryOf(func);
  for (const BufferNode* b : memory.own) {
    if (!memory.written.count(b)) numbers_.insert(b);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [buffer, value] : memory.stores) {
      if (!numbers_.count(buffer) || Holds(value)) continue;
      numbers_.erase(buffer);
      changed = true;
    }
  }
}

bool NotNan::Holds(const Expr& e) const {
  int budget = 64;  // nodes: expressions are DAGs
  return Holds(e, &budget);
}

bool NotNan::Holds(const Expr& e, int* budget) const {
  if (--*budget < 0) return false;
  const auto holds = [&](const Expr& part) { return Holds(part, budget); };
  if (const auto* c = As<FloatConst>(e)) return !std::isnan(c->value);
  if (const auto* same = As<Broadcast>(e)) return holds(same->value);
  if (const auto* load = As<Load>(e)) return numbers_.count(load->buffer.get()) != 0;
  if (const auto* n = As<Select>(e)) return holds(n->on_true) && holds(n->on_false);
  if (const auto* n = As<Unary>(e)) return n->op == UnaryOp::kNeg && holds(n->value);
  if (const auto* cast = As<CastExpr>(e))
    return !cast->value->dtype.IsFloat() || holds(cast->value);
  if (const auto* n = As<Binary>(e)) {
    // The other one, where one is NaN.
    return (n->op == BinaryOp::kMax || n->op == BinaryOp::kMin) && (holds(n->lhs) || holds(n->rhs));
  }
  if (const auto* call = As<Call>(e)) {
    return (call->intrinsic == Intrinsic::kReduceMax || call->intrinsic == Intrinsic::kReduceMin ||
            call->intrinsic == Intrinsic::kAbs) &&
           holds(call->args[0]);
  }
  return false;
}

}  // namespace tenon::codegen

#include "schedule/analysis/retarget.h"

#include <algorithm>

#include "ir/visit.h"

namespace tenon::primitive {

Stmt Apply(const Retarget& r, const Stmt& stmt) {
  return PostOrderRewrite(stmt, [&](const NodeRef& n) -> NodeRef {
    if (const auto* load = As<Load>(n); load != nullptr && load->buffer == r.from) {
      return Load::Make(r.to, r.element(load->indices), load->mask);
    }
    if (const auto* store = As<Store>(n); store != nullptr && store->buffer == r.from) {
      return Store::Make(r.to, r.element(store->indices), store->value, store->mask);
    }
    if (const auto* region = As<RegionNode>(n); region != nullptr && region->buffer == r.from) {
      return RegionNode::Make(r.to, r.box(region->ranges));
    }
    return n;
  });
}

std::optional<Diagnostic> NotRetargetable(const Body& body, const Buffer& buffer) {
  if (!body.IsAlloc(buffer)) {
    return Because("buffer " + buffer->name + " is not allocated in the function");
  }
  if (buffer->layout || !buffer->strides.empty()) {
    return Because("buffer " + buffer->name + " has a layout or strides of its own");
  }
  bool plain = true;
  PreOrder(body.root(), [&](const NodeRef& n) {
    bool other = IsA<CallFunc>(n) || IsA<Launch>(n) || IsA<Copy>(n) || IsA<Atomic>(n);
    if (other && UsesBuffer(n, buffer.get())) plain = false;
    const auto* call = As<Call>(n);
    bool address = call != nullptr && call->intrinsic == Intrinsic::kBufferData;
    if (address && UsesBuffer(n, buffer.get())) plain = false;
    return plain;
  });
  if (plain) return std::nullopt;
  return Because("buffer " + buffer->name + " is used by more than loads and stores");
}

std::optional<Diagnostic> PassedToCall(const Body& body, const Buffer& buffer) {
  std::string callee;
  PreOrder(body.root(), [&](const NodeRef& n) {
    const auto* call = As<CallFunc>(n);
    if (call != nullptr && UsesBuffer(n, buffer.get())) callee = call->callee;
    return callee.empty();
  });
  if (callee.empty()) return std::nullopt;
  return Because("buffer " + buffer->name + " is passed to " + callee +
                 ", which knows its strides");
}

}  // namespace tenon::primitive

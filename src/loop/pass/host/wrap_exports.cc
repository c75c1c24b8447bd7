#include "loop/pass/host/wrap_exports.h"

#include <fmt/format.h>

#include <algorithm>

#include "arith/analyzer.h"
#include "ir/visit.h"
#include "loop/arguments.h"
#include "loop/pass/packed_abi.h"
#include "loop/requirements.h"
#include "support/check.h"

namespace tenon {

namespace {

// A kernel's parameter as it lies in memory: what a caller can hand over has no layout.
Buffer InMemory(const Buffer& b) {
  if (!b->layout) return b;
  return BufferNode::Make(b->name, b->dtype, StorageExtents(b->shape, b->layout), b->scope, nullptr,
                          b->strides, b->align);
}

// The widest access of a GPU's thread.
constexpr int64_t kWidestAccess = 16;

// What a GPU kernel's tensors must be aligned for: one with lanes reads and writes several elements
// at once, and operations that are passed a tensor want it so.
Func WithAlignedParams(const Func& kernel, const Module& module) {
  if (!kernel->IsForDevice()) return kernel;
  int64_t least = 0;
  std::unordered_map<const BufferNode*, int64_t> wanted;
  PreOrder(kernel->body, [&](const NodeRef& n) {
    const auto* loop = As<For>(n);
    if (loop && loop->for_kind == ForKind::kVectorized) least = kWidestAccess;
    const auto* call = As<CallFunc>(n);
    const Func callee = call ? module.Find(call->callee) : nullptr;
    for (size_t i = 0; callee && i < call->buffers.size(); ++i) {
      int64_t& align = wanted[call->buffers[i]->buffer.get()];
      align = std::max(align, callee->buffers[i]->align);
    }
    return !IsA<ExprNode>(n);
  });
  PrimFunc fields = *kernel;
  BufferMap aligned;
  for (Buffer& b : fields.buffers) {
    const int64_t align = std::max({b->align, least, wanted[b.get()]});
    if (align == b->align) continue;
    Buffer before = b;
    b = BufferNode::Make(b->name, b->dtype, b->shape, b->scope, b->layout, b->strides, align);
    aligned[before.get()] = b;
  }
  if (aligned.empty()) return kernel;
  fields.body = SubstituteBuffers(fields.body, aligned);
  return PrimFunc::Make(std::move(fields));
}

// Attributes that say how the function is called.
constexpr const char* kOfCalls[] = {kArgumentsAttr, kRequiresAttr};

Func HostOf(const PrimFunc& kernel) {
  PrimFunc host = kernel;
  host.name = kernel.name + ".host";
  host.func_kind = FuncKind::kHost;
  host.attrs = {{"exported", true}, {"export_name", kernel.name}};
  Place place;
  if (kernel.IsForDevice()) {
    place = Place::Device(0);
    host.target = kernel.target->Cpu();
    host.attrs.Set(packed::kDeviceTypeAttr, kernel.target->device().type);
    host.scalars.push_back(VarNode::Make(kDeviceId, DType::Int(32)));
  }
  std::vector<Region> regions;
  for (Buffer& b : host.buffers) {
    b = InMemory(b);
    regions.push_back(Whole(b));
  }
  std::vector<Expr> numbers(kernel.dims.begin(), kernel.dims.end());
  numbers.insert(numbers.end(), kernel.scalars.begin(), kernel.scalars.end());
  host.body = Launch::Make(kernel.name, std::move(regions), std::move(numbers), place);
  for (const char* name : kOfCalls) {
    if (const AttrValue* value = kernel.attrs.Find(name)) host.attrs.Set(name, *value);
  }
  return PrimFunc::Make(std::move(host));
}

}  // namespace

Module WrapExports(const Module& module, const PassContext& context) {
  Module out = module;
  for (const auto& [name, func] : module.funcs) {
    if (func->func_kind != FuncKind::kKernel || !func->attrs.Get<bool>("exported", false)) continue;
    if (auto order = ArgumentsOf(*func); !order) {
      context.Remark(fmt::format("not exported: {}", order.errors()[0].message));
      continue;
    }
    const Func aligned = WithAlignedParams(func, module);
    out.Add(HostOf(*aligned));
    PrimFunc kernel = *aligned;
    kernel.attrs.Erase("exported");
    for (const char* attr : kOfCalls) kernel.attrs.Erase(attr);
    out.Add(PrimFunc::Make(std::move(kernel)));
  }
  return out;
}

}  // namespace tenon

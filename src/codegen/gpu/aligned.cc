#include "codegen/gpu/aligned.h"

#include <algorithm>
#include <set>

#include "ir/visit.h"
#include "loop/rewrite.h"
#include "tenon/kernel_abi.h"

namespace tenon::codegen {

namespace {

// The buffers of which several elements that follow each other are read or written in one place.
std::set<const BufferNode*> MovedByLanes(const PrimFunc& kernel) {
  std::set<const BufferNode*> out;
  const auto note = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    const auto* ramp = indices.size() == 1 ? As<Ramp>(indices[0]) : nullptr;
    if (ramp && IsOne(ramp->stride)) out.insert(buffer.get());
  };
  PreOrder(kernel.body, [&](const NodeRef& n) {
    if (const auto* load = As<Load>(n)) note(load->buffer, load->indices);
    if (const auto* store = As<Store>(n)) note(store->buffer, store->indices);
    return true;
  });
  return out;
}

Func AlignedForm(const PrimFunc& kernel, const std::string& name) {
  const std::set<const BufferNode*> moved = MovedByLanes(kernel);
  PrimFunc fields = kernel;
  BufferMap aligned;
  bool gains = false;
  for (Buffer& b : fields.buffers) {
    if (b->align >= TN_KERNEL_ALIGN) continue;
    gains |= moved.count(b.get()) != 0;
    Buffer before = b;
    b = BufferNode::Make(b->name, b->dtype, b->shape, b->scope, b->layout, b->strides,
                         TN_KERNEL_ALIGN);
    aligned[before.get()] = b;
  }
  if (!gains) return nullptr;
  fields.name = name;
  fields.attrs.Set(kIsAlignedAttr, true);
  fields.body = SubstituteBuffers(fields.body, aligned);
  return PrimFunc::Make(std::move(fields));
}

}  // namespace

Module WithAlignedForms(const Module& kernels) {
  Module out = kernels;
  for (const auto& [name, func] : kernels.funcs) {
    if (func->func_kind != FuncKind::kKernel) continue;
    std::string other = name + "_aligned";
    while (out.Find(other)) other += '_';
    const Func form = AlignedForm(*func, other);
    if (!form) continue;
    PrimFunc fields = *func;
    fields.attrs.Set(kAlignedFormAttr, other);
    out.Add(PrimFunc::Make(std::move(fields)));
    out.Add(form);
  }
  return out;
}

}  // namespace tenon::codegen

#include "codegen/gpu/aligned.h"

#include <algorithm>
#include <set>

#include "ir/visit.h"
#include "loop/aligned_form.h"
#include "tenon/kernel_abi.h"

namespace tenon::codegen {

namespace {

static_assert(kKernelAlign == TN_KERNEL_ALIGN);

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

// Of a kernel that would move several elements at once if only all tensors began where they may.
bool Gains(const PrimFunc& kernel) {
  const std::set<const BufferNode*> moved = MovedByLanes(kernel);
  return std::any_of(kernel.buffers.begin(), kernel.buffers.end(), [&](const Buffer& b) {
    return b->align < kKernelAlign && moved.count(b.get()) != 0;
  });
}

}  // namespace

Module WithAlignedForms(const Module& kernels) {
  Module out = kernels;
  for (const auto& [name, func] : kernels.funcs) {
    const bool has_forms = func->attrs.Has(kAlignedFormAttr) || func->attrs.Has(kIsAlignedAttr);
    if (func->func_kind != FuncKind::kKernel || has_forms || !Gains(*func)) continue;
    std::string other = name + "_aligned";
    while (out.Find(other)) other += '_';
    const Func form = AlignedForm(*func, other);
    PrimFunc fields = *func;
    fields.attrs.Set(kAlignedFormAttr, other);
    out.Add(PrimFunc::Make(std::move(fields)));
    out.Add(form);
  }
  return out;
}

}  // namespace tenon::codegen

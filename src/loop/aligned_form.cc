#include "loop/aligned_form.h"

#include "loop/rewrite.h"

namespace tenon {

Func AlignedForm(const PrimFunc& kernel, const std::string& name) {
  PrimFunc fields = kernel;
  BufferMap aligned;
  for (Buffer& b : fields.buffers) {
    if (b->align >= kKernelAlign) continue;
    const Buffer before = b;
    b = BufferNode::Make(b->name, b->dtype, b->shape, b->scope, b->layout, b->strides,
                         kKernelAlign);
    aligned[before.get()] = b;
  }
  fields.name = name;
  fields.attrs.Set(kIsAlignedAttr, true);
  fields.body = SubstituteBuffers(fields.body, aligned);
  return PrimFunc::Make(std::move(fields));
}

}  // namespace tenon

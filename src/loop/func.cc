#include "loop/func.h"

#include "ir/node_fields.h"
#include "support/check.h"

namespace tenon {

const char* Name(FuncKind kind) {
  switch (kind) {
    case FuncKind::kKernel: return "kernel";
    case FuncKind::kDevice: return "device";
    case FuncKind::kHost: return "host";
    case FuncKind::kPacked: return "packed";
  }
  return "?";
}

Func PrimFunc::Make(PrimFunc fields) {
  TN_CHECK(!fields.name.empty() && fields.body);
  TN_CHECK(fields.dims.size() == fields.dim_lo.size() &&
           fields.dims.size() == fields.dim_hi.size() &&
           fields.dims.size() == fields.dim_step.size());
  TN_CHECK(fields.num_outputs <= static_cast<int64_t>(fields.buffers.size()));
  return MakeRef<PrimFunc>(std::move(fields));
}

PrimFunc::PrimFunc() = default;
PrimFunc::PrimFunc(const PrimFunc&) = default;
PrimFunc::PrimFunc(PrimFunc&&) noexcept = default;
PrimFunc::~PrimFunc() = default;

template class NodeOf<PrimFunc, NodeKind::kPrimFunc>;

}  // namespace tenon

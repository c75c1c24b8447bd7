#include "loop/warpgroup.h"

#include "arith/analyzer.h"
#include "loop/threads.h"

namespace tenon {

int64_t LanesOf(const PrimFunc& func) {
  if (func.func_kind != FuncKind::kDevice) return 0;
  for (const Buffer& b : func.buffers) {
    if (!IsFragment(*b)) continue;
    const std::vector<Expr> extents = StorageExtents(b->shape, b->layout);
    const bool lanes = b->layout && b->layout->threads.size() == 1 && !extents.empty();
    return lanes ? AsInt(Simplify(extents[0])).value_or(kLanes) : kLanes;
  }
  return 0;
}

}  // namespace tenon

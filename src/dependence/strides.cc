#include "dependence/strides.h"

#include <algorithm>

#include "ir/visit.h"
#include "loop/padded_rows.h"

namespace tenon {

std::vector<Expr> StridesOf(const BufferNode& b) {
  if (!b.strides.empty()) return b.strides;
  std::vector<Expr> out(b.shape.size());
  const std::optional<PaddedRows> rows = PaddedRowsOf(b);
  Expr dense = IndexConst(1);
  for (size_t d = out.size(); d-- > 0;) {
    out[d] = rows && d == rows->axis ? Simplify(rows->stride) : dense;
    dense = Simplify(out[d] * b.shape[d]);
  }
  return out;
}

Expr FlatIndex(const BufferNode& buffer, const std::vector<Expr>& indices, Analyzer* analyzer) {
  Expr out = IndexConst(0);
  for (size_t i = 0; i < indices.size(); ++i) out = out * buffer.shape[i] + indices[i];
  return analyzer->Simplify(out);
}

std::optional<std::vector<StrideDim>> StrideDims(const CallFunc& call, const PrimFunc& callee,
                                                 size_t i) {
  if (i >= callee.buffers.size() || callee.buffers[i]->strides.empty()) return std::nullopt;
  const BufferNode& param = *callee.buffers[i];
  const BufferNode& operand = *call.buffers[i]->buffer;
  if (operand.layout && !PaddedRowsOf(operand)) return std::nullopt;
  // Dimensions of one element have no say: the others of both stand for each other, in order.
  std::vector<size_t> theirs, mine;
  for (size_t d = 0; d < param.shape.size(); ++d) {
    if (!IsOne(param.shape[d])) theirs.push_back(d);
  }
  const std::vector<Range>& ranges = call.buffers[i]->ranges;
  for (size_t d = 0; d < ranges.size(); ++d) {
    if (!IsOne(ranges[d]->extent)) mine.push_back(d);
  }
  if (theirs.size() != mine.size()) return std::nullopt;
  std::vector<StrideDim> out;
  for (size_t k = 0; k < mine.size(); ++k) {
    const Expr& stride = param.strides[theirs[k]];
    if (IsOne(stride) && mine[k] + 1 == ranges.size()) continue;
    auto dim = std::find(callee.dims.begin(), callee.dims.end(), stride);
    if (dim == callee.dims.end()) return std::nullopt;
    size_t uses = 0;
    for (const Buffer& b : callee.buffers) {
      for (const Expr& e : b->shape) uses += UsesVar(e, dim->get()) ? 1 : 0;
      for (const Expr& e : b->strides) uses += UsesVar(e, dim->get()) ? 1 : 0;
    }
    const auto place = static_cast<size_t>(dim - callee.dims.begin());
    if (uses != 1 || place >= call.scalars.size()) return std::nullopt;
    out.push_back({place, mine[k]});
  }
  return out;
}

}  // namespace tenon

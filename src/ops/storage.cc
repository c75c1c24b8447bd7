#include "ops/storage.h"

#include "graph/dims.h"
#include "support/check.h"

namespace tenon::ops {

te::Indices StoredTensor::Place(const te::Indices& i) const {
  if (desc.begin.empty()) return i;
  te::Indices out;
  for (size_t k = 0; k < i.size(); ++k) out.push_back(i[k] + desc.begin[k]);
  return out;
}

Expr StoredTensor::Padded(int axis) const {
  return graph::InBlocks(dims[static_cast<size_t>(axis)], desc.BlockOf(axis));
}

bool StoredTensor::IsRagged(int axis) const {
  return !graph::ProveEqual(Padded(axis), dims[static_cast<size_t>(axis)]);
}

Expr StoredTensor::Bytes() const {
  return graph::DimMul(graph::DimProduct(buffer->shape), IndexConst(buffer->dtype.Bytes()));
}

int StoredTensor::InnermostAxis() const {
  if (!desc.blocks.empty()) return desc.blocks.back().axis;
  return desc.order.empty() ? static_cast<int>(dims.size()) - 1 : desc.order.back();
}

StoredTensor Store(const std::string& name, const graph::TensorType& type) {
  StoredTensor t;
  t.dims = type.dims;
  auto desc = ReadLayout(type.layout, t.dims);
  TN_CHECK(desc, "'{}' has a layout that kernels do not know", name);
  t.desc = *desc;
  std::vector<Expr> cells;
  for (size_t i = 0; i < t.dims.size(); ++i) {
    cells.push_back(t.desc.Cells(t.dims, static_cast<int>(i)));
  }
  StorageDesc arrangement;
  arrangement.order = t.desc.order;
  arrangement.blocks = t.desc.blocks;
  // Tensors between kernels lie in the arena, at multiples of a cache line; arguments are aligned
  // to their element only, which the caller of Store states by replacing the buffer.
  Layout layout = MakeLayout(arrangement, cells);
  t.buffer = BufferNode::Make(name, type.dtype, std::move(cells), Scope::kGlobal, layout, {}, 64);
  return t;
}

}  // namespace tenon::ops

#include "ops/storage.h"

#include <fmt/format.h>

#include "support/check.h"

namespace tenon::ops {

static int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Cells of axis i, padding to whole blocks included.
static int64_t Cells(const StorageDesc& d, const std::vector<int64_t>& dims, size_t i) {
  return RoundUp(d.size.empty() ? dims[i] : d.size[i], d.BlockOf(static_cast<int>(i)));
}

te::Indices StoredTensor::Place(const te::Indices& i) const {
  if (desc.begin.empty()) return i;
  te::Indices out;
  for (size_t k = 0; k < i.size(); ++k) out.push_back(i[k] + desc.begin[k]);
  return out;
}

int64_t StoredTensor::Padded(int axis) const {
  return RoundUp(dims[static_cast<size_t>(axis)], desc.BlockOf(axis));
}

int64_t StoredTensor::Bytes() const {
  int64_t n = buffer->dtype.Bytes();
  for (const Expr& d : buffer->shape) n *= *AsInt(d);
  return n;
}

int StoredTensor::InnermostAxis() const {
  if (!desc.blocks.empty()) return desc.blocks.back().axis;
  return desc.order.empty() ? static_cast<int>(dims.size()) - 1 : desc.order.back();
}

StoredTensor Store(const std::string& name, const graph::TensorType& type) {
  StoredTensor t;
  auto dims = type.StaticDims();
  TN_CHECK(dims, "'{}' has symbolic dims", name);
  t.dims = *dims;
  auto desc = ReadLayout(type.layout, t.dims);
  TN_CHECK(desc, "'{}' has a layout that kernels do not know", name);
  t.desc = *desc;
  std::vector<Expr> shape;
  std::vector<int64_t> cells;
  for (size_t i = 0; i < t.dims.size(); ++i) {
    cells.push_back(Cells(t.desc, t.dims, i));
    shape.push_back(IndexConst(cells.back()));
  }
  StorageDesc arrangement;
  arrangement.order = t.desc.order;
  arrangement.blocks = t.desc.blocks;
  // Tensors between kernels lie in the arena, at multiples of a cache line; arguments are aligned
  // to their element only, which the caller of Store states by replacing the buffer.
  t.buffer = BufferNode::Make(name, type.dtype, std::move(shape), Scope::kGlobal,
                              MakeLayout(arrangement, cells), {}, 64);
  return t;
}

}  // namespace tenon::ops

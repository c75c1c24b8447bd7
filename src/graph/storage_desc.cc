#include "graph/storage_desc.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/dims.h"

namespace tenon::graph {

Expr InBlocks(const Expr& size, int64_t block) {
  const Expr b = IndexConst(block);
  return DimMul(DimCeilDiv(size, b), b);
}

int64_t StorageDesc::BlockOf(int axis) const {
  for (const Blocking& b : blocks) {
    if (b.axis == axis) return b.size;
  }
  return 1;
}

static int64_t Begin(const StorageDesc& d, size_t i) { return d.begin.empty() ? 0 : d.begin[i]; }

Expr StorageDesc::Cells(const std::vector<Expr>& dims, int axis) const {
  const auto i = static_cast<size_t>(axis);
  return InBlocks(size.empty() ? dims[i] : size[i], BlockOf(axis));
}

bool operator==(const StorageDesc& a, const StorageDesc& b) {
  return a.order == b.order && a.blocks == b.blocks && a.begin == b.begin &&
         std::equal(a.size.begin(), a.size.end(), b.size.begin(), b.size.end(), ProveEqual);
}

Layout MakeLayout(const StorageDesc& desc, const std::vector<Expr>& dims) {
  if (desc.IsPlain()) return nullptr;
  std::vector<Var> coords;
  std::vector<Expr> storage, extents;
  for (size_t i = 0; i < dims.size(); ++i) coords.push_back(VarNode::Make(fmt::format("d{}", i)));
  auto cell = [&](size_t i) { return Expr(coords[i]) + Begin(desc, i); };
  for (size_t k = 0; k < dims.size(); ++k) {
    size_t axis = desc.order.empty() ? k : static_cast<size_t>(desc.order[k]);
    int64_t block = desc.BlockOf(static_cast<int>(axis));
    storage.push_back(block > 1 ? cell(axis) / block : cell(axis));
    extents.push_back(DimFloorDiv(desc.Cells(dims, static_cast<int>(axis)), IndexConst(block)));
  }
  for (const Blocking& b : desc.blocks) {
    storage.push_back(cell(static_cast<size_t>(b.axis)) % b.size);
    extents.push_back(IndexConst(b.size));
  }
  return LayoutNode::Make(std::move(coords), std::move(storage), std::move(extents));
}

namespace {

// One storage expression taken apart: (coordinate + offset) / block, % block, or neither.
struct Piece {
  int axis = -1;
  int64_t offset = 0, block = 1;
  bool inner = false;
};

std::optional<Piece> TakeApart(Expr e, const std::vector<Var>& coords) {
  Piece p;
  if (const auto* b = As<Binary>(e); b && (b->op == BinaryOp::kDiv || b->op == BinaryOp::kMod)) {
    p.block = AsInt(b->rhs).value_or(0);
    p.inner = b->op == BinaryOp::kMod;
    if (p.block < 2) return std::nullopt;
    e = b->lhs;
  }
  if (const auto* b = As<Binary>(e); b && b->op == BinaryOp::kAdd) {
    auto offset = AsInt(b->rhs);
    if (!offset) return std::nullopt;
    p.offset = *offset;
    e = b->lhs;
  }
  for (size_t i = 0; i < coords.size(); ++i) {
    if (e == Expr(coords[i])) p.axis = static_cast<int>(i);
  }
  if (p.axis < 0) return std::nullopt;
  return p;
}

// Drops what only restates the defaults, so that equal layouts have equal descriptions.
void Normalize(StorageDesc* d, const std::vector<Expr>& dims) {
  bool ordered = true, halo = false, sized = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    ordered &= d->order[i] == static_cast<int>(i);
    halo |= d->begin[i] != 0;
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t block = d->BlockOf(static_cast<int>(i));
    if (d->begin[i] == 0 && ProveEqual(d->size[i], InBlocks(dims[i], block))) d->size[i] = dims[i];
    sized |= !ProveEqual(d->size[i], dims[i]);
  }
  if (ordered) d->order.clear();
  if (!halo) d->begin.clear();
  if (!sized) d->size.clear();
}

}  // namespace

std::optional<StorageDesc> ReadLayout(const Layout& layout, const std::vector<Expr>& dims) {
  StorageDesc d;
  if (!layout) return d;
  size_t r = dims.size();
  if (layout->coords.size() != r || layout->storage.size() < r ||
      layout->extents.size() != layout->storage.size()) {
    return std::nullopt;
  }
  d.begin.resize(r);
  d.size.resize(r);
  for (size_t k = 0; k < layout->storage.size(); ++k) {
    auto piece = TakeApart(layout->storage[k], layout->coords);
    if (!piece || piece->inner != (k >= r)) return std::nullopt;
    if (piece->inner && !AsInt(layout->extents[k])) return std::nullopt;
    if (piece->inner) {
      d.blocks.push_back({piece->axis, piece->block});
      continue;
    }
    d.order.push_back(piece->axis);
    d.begin[static_cast<size_t>(piece->axis)] = piece->offset;
    d.size[static_cast<size_t>(piece->axis)] = DimMul(layout->extents[k], IndexConst(piece->block));
  }
  Normalize(&d, dims);
  return d;
}

}  // namespace tenon::graph

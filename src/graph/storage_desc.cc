#include "graph/storage_desc.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/dims.h"
#include "support/check.h"

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
         a.padding == b.padding &&
         std::equal(a.size.begin(), a.size.end(), b.size.begin(), b.size.end(), ProveEqual);
}

bool HasPadding(const StorageDesc& desc, const std::vector<Expr>& dims) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!ProveEqual(desc.Cells(dims, static_cast<int>(i)), dims[i])) return true;
  }
  return false;
}

// The size of the blocks inside blocks[i], 1 where these are the smallest of their axis.
static int64_t InnerBlock(const std::vector<Blocking>& blocks, size_t i) {
  for (size_t k = i + 1; k < blocks.size(); ++k) {
    if (blocks[k].axis == blocks[i].axis) return blocks[k].size;
  }
  return 1;
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
  for (size_t i = 0; i < desc.blocks.size(); ++i) {
    const Blocking& b = desc.blocks[i];
    const int64_t inner = InnerBlock(desc.blocks, i);
    TN_CHECK(b.size % inner == 0, "blocks of {} in blocks of {}", inner, b.size);
    const Expr place = cell(static_cast<size_t>(b.axis)) % b.size;
    storage.push_back(inner > 1 ? place / inner : place);
    extents.push_back(IndexConst(b.size / inner));
  }
  const double padding = HasPadding(desc, dims) ? desc.padding : 0;
  return LayoutNode::Make(std::move(coords), std::move(storage), std::move(extents), {}, 1,
                          padding);
}

namespace {

// One storage expression taken apart: (coordinate + offset), perhaps % block, perhaps / inner.
struct Piece {
  int axis = -1;
  int64_t offset = 0, block = 0, inner = 1;  // block 0: the whole axis
};

// The divisor of an expression e op n, which becomes e; nullopt for any other.
std::optional<int64_t> TakeOff(BinaryOp op, Expr* e) {
  const auto* b = As<Binary>(*e);
  if (!b || b->op != op) return std::nullopt;
  const std::optional<int64_t> n = AsInt(b->rhs);
  if (!n) return std::nullopt;
  *e = b->lhs;
  return n;
}

std::optional<Piece> TakeApart(Expr e, const std::vector<Var>& coords) {
  Piece p;
  p.inner = TakeOff(BinaryOp::kDiv, &e).value_or(1);
  p.block = TakeOff(BinaryOp::kMod, &e).value_or(0);
  p.offset = TakeOff(BinaryOp::kAdd, &e).value_or(0);
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
  if (!HasPadding(*d, dims)) d->padding = 0;
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
  d.padding = layout->padding;
  std::vector<int64_t> inside(r, 0);  // how large the next blocks of each axis must be
  for (size_t k = 0; k < layout->storage.size(); ++k) {
    auto piece = TakeApart(layout->storage[k], layout->coords);
    if (!piece || piece->inner < 1 || (piece->block == 0) != (k < r)) return std::nullopt;
    const auto axis = static_cast<size_t>(piece->axis);
    if (k < r) {
      if (inside[axis] != 0) return std::nullopt;
      d.order.push_back(piece->axis);
      d.begin[axis] = piece->offset;
      d.size[axis] = DimMul(layout->extents[k], IndexConst(piece->inner));
    } else {
      const std::optional<int64_t> extent = AsInt(layout->extents[k]);
      if (piece->block < 2 || piece->block != inside[axis] || piece->offset != d.begin[axis] ||
          extent != piece->block / piece->inner || piece->block % piece->inner != 0) {
        return std::nullopt;
      }
      d.blocks.push_back({piece->axis, piece->block});
    }
    inside[axis] = piece->inner;
  }
  // Every block is divided to its end.
  if (std::any_of(inside.begin(), inside.end(), [](int64_t n) { return n > 1; })) {
    return std::nullopt;
  }
  Normalize(&d, dims);
  return d;
}

}  // namespace tenon::graph

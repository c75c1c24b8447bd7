#include "loop/padded_rows.h"

#include <string>

#include "arith/analyzer.h"

namespace tenon {

namespace {

// Without folding: the form is what is wanted.
Expr Make(BinaryOp op, const Expr& a, const Expr& b) { return Binary::Make(op, a, b); }

const Binary* AsOp(const Expr& e, BinaryOp op) {
  const auto* b = As<Binary>(e);
  return b && b->op == op ? b : nullptr;
}

// The place in its row of an element at these coordinates.
Expr WithinRow(const std::vector<Expr>& shape, size_t axis, const std::vector<Var>& coords) {
  Expr within = IndexConst(0);
  for (size_t d = axis + 1; d < shape.size(); ++d) within = within * shape[d] + coords[d];
  return Simplify(within);
}

}  // namespace

Expr PaddedExtent(const Expr& size, RowPadding padding) {
  const Expr missing = Make(BinaryOp::kSub, IndexConst(padding.offset), size);
  return Make(BinaryOp::kAdd, size, Make(BinaryOp::kMod, missing, IndexConst(padding.factor)));
}

std::optional<RowPadding> PaddingOf(const Expr& extent) {
  const Binary* sum = AsOp(extent, BinaryOp::kAdd);
  const Binary* mod = sum ? AsOp(sum->rhs, BinaryOp::kMod) : nullptr;
  const Binary* missing = mod ? AsOp(mod->lhs, BinaryOp::kSub) : nullptr;
  if (!missing || !StructuralEqual(missing->rhs, sum->lhs)) return std::nullopt;
  const auto factor = AsInt(mod->rhs), offset = AsInt(missing->lhs);
  if (!factor || !offset || *factor < 1) return std::nullopt;
  return RowPadding{*factor, *offset};
}

Expr RowSize(const std::vector<Expr>& shape, size_t axis) {
  Expr size = IndexConst(1);
  for (size_t d = axis + 1; d < shape.size(); ++d) size = size * shape[d];
  return Simplify(size);
}

Layout PaddedLayout(const std::vector<Expr>& shape, size_t axis, const Expr& stride) {
  std::vector<Var> coords;
  for (size_t d = 0; d < shape.size(); ++d)
    coords.push_back(VarNode::Make("x" + std::to_string(d)));
  std::vector<Expr> storage(coords.begin(), coords.begin() + static_cast<ptrdiff_t>(axis) + 1);
  std::vector<Expr> extents(storage.size(), nullptr);
  storage.push_back(WithinRow(shape, axis, coords));
  extents.push_back(stride);
  return LayoutNode::Make(std::move(coords), std::move(storage), std::move(extents));
}

std::optional<PaddedRows> PaddedRowsOf(const BufferNode& buffer) {
  if (!buffer.layout) return std::nullopt;
  const LayoutNode& layout = *buffer.layout;
  const size_t dims = layout.storage.size();
  if (!layout.threads.empty() || dims < 2 || dims > buffer.shape.size() ||
      layout.extents.size() != dims)
    return std::nullopt;
  for (size_t d = 0; d + 1 < dims; ++d) {
    if (layout.storage[d].get() != layout.coords[d].get() || layout.extents[d]) return std::nullopt;
  }
  const Expr within = WithinRow(buffer.shape, dims - 2, layout.coords);
  const bool rows =
      layout.extents.back() && StructuralEqual(Simplify(layout.storage.back()), within);
  return rows ? std::optional(PaddedRows{dims - 2, layout.extents.back()}) : std::nullopt;
}

}  // namespace tenon

#include "loop/padded_rows.h"

namespace tenon {

namespace {

// Without folding: the form is what is wanted.
Expr Make(BinaryOp op, const Expr& a, const Expr& b) { return Binary::Make(op, a, b); }

const Binary* AsOp(const Expr& e, BinaryOp op) {
  const auto* b = As<Binary>(e);
  return b && b->op == op ? b : nullptr;
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

}  // namespace tenon

#include "schedule/reducer.h"

#include <limits>

namespace tenon::primitive {

namespace {

bool IsCombiner(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kMul:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor: return true;
    case BinaryOp::kSub:
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
    case BinaryOp::kShl:
    case BinaryOp::kShr: return false;
  }
  return false;
}

bool LoadsSame(const Expr& e, const Store& store) {
  const auto* load = As<Load>(e);
  if (load == nullptr || load->buffer != store.buffer || load->mask) return false;
  for (size_t i = 0; i < store.indices.size(); ++i) {
    if (!StructuralEqual(load->indices[i], store.indices[i])) return false;
  }
  return true;
}

}  // namespace

std::optional<Reduction> ReadReduction(const Block& block) {
  const auto* store = As<Store>(block.body);
  if (store == nullptr || store->mask) return std::nullopt;
  Ref<const Store> ref = Cast<Store>(block.body);
  if (const auto* b = As<Binary>(store->value); b != nullptr && IsCombiner(b->op)) {
    if (LoadsSame(b->lhs, *store)) return Reduction{b->op, ref, b->rhs};
    if (LoadsSame(b->rhs, *store)) return Reduction{b->op, ref, b->lhs};
  }
  const auto* call = As<Call>(store->value);
  if (call != nullptr && call->intrinsic == Intrinsic::kFma && LoadsSame(call->args[2], *store)) {
    return Reduction{BinaryOp::kAdd, ref, call->args[0] * call->args[1]};
  }
  return std::nullopt;
}

namespace {

Expr Extreme(DType type, bool smallest) {
  if (type.IsFloat()) {
    double inf = std::numeric_limits<double>::infinity();
    return MakeConst(type, smallest ? -inf : inf);
  }
  if (type.IsBool()) return BoolConst(!smallest);
  if (!type.IsInt()) return nullptr;
  if (type.IsSigned()) {
    int64_t least =
        type.bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (type.bits - 1));
    return MakeIntConst(type, smallest ? least : -(least + 1));
  }
  int64_t all = type.bits == 64 ? -1 : (int64_t{1} << type.bits) - 1;
  return MakeIntConst(type, smallest ? 0 : all);
}

}  // namespace

Expr IdentityOf(BinaryOp op, DType type) {
  switch (op) {
    case BinaryOp::kAdd: return MakeConst(type, 0);
    case BinaryOp::kMul: return MakeConst(type, 1);
    case BinaryOp::kMin: return Extreme(type, false);
    case BinaryOp::kMax: return Extreme(type, true);
    case BinaryOp::kAnd: return BoolConst(true);
    case BinaryOp::kOr: return BoolConst(false);
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor: return MakeIntConst(type, 0);
    case BinaryOp::kBitAnd: return type.IsSigned() ? MakeIntConst(type, -1) : Extreme(type, false);
    case BinaryOp::kSub:
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
    case BinaryOp::kShl:
    case BinaryOp::kShr: return nullptr;
  }
  return nullptr;
}

Expr Combine(BinaryOp op, const Expr& acc, const Expr& value) {
  return Binary::Make(op, acc, value);
}

bool PermitsReassociation(const Block& block) {
  if (block.fp == FpMode::kReassoc) return true;
  std::optional<Reduction> reduction = ReadReduction(block);
  if (!reduction) return false;
  if (!reduction->store->buffer->dtype.IsFloat()) return true;
  return reduction->op == BinaryOp::kMin || reduction->op == BinaryOp::kMax;
}

}  // namespace tenon::primitive

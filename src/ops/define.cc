#include "ops/define.h"

#include "support/check.h"

namespace tenon::ops {

using graph::IndexMapClass;
using graph::OpKind;
using te::Indices;

static Expr DefineBatchNorm(const OpContext& op, const Indices& out) {
  auto channel = [&](size_t i) { return op.in[i].at({out[1]}); };
  Expr var = channel(4);
  Expr scale =
      channel(1) / Call::Make(Intrinsic::kSqrt,
                              {var + MakeConst(var->dtype, op.node->attrs.GetFloat("epsilon"))});
  return (op.in[0].at(out) - channel(3)) * scale + channel(2);
}

Expr DefineElement(const OpContext& op, const Indices& out) {
  switch (graph::Info(op.node->op).map) {
    case IndexMapClass::kElementwise: return DefineUnary(op, op.in[0].at(out));
    case IndexMapClass::kBroadcast:
      if (op.node->op == OpKind::kWhere) {
        return Select::Make(BroadcastAt(op.in[0], out), BroadcastAt(op.in[1], out),
                            BroadcastAt(op.in[2], out));
      }
      if (op.node->op == OpKind::kExpand) return DefineMovement(op, out);
      if (op.node->op == OpKind::kBatchNorm) return DefineBatchNorm(op, out);
      return DefineBinary(op, BroadcastAt(op.in[0], out), BroadcastAt(op.in[1], out));
    case IndexMapClass::kWindow: return DefineResize(op, out);
    case IndexMapClass::kInjective:
    case IndexMapClass::kOpaque: return DefineMovement(op, out);
    case IndexMapClass::kReduction:
    case IndexMapClass::kContraction: break;
  }
  TN_UNREACHABLE();
}

Operand Define(const OpContext& op) {
  if (HasElementDefinition(op.node->op)) {
    return Memo(
        {op.out.dtype, op.out.dims, [op](const Indices& i) { return DefineElement(op, i); }});
  }
  switch (graph::Info(op.node->op).map) {
    case IndexMapClass::kReduction: return Memo(DefineReduction(op));
    case IndexMapClass::kWindow: return Memo(DefineWindow(op));
    case IndexMapClass::kContraction: {
      return Memo(op.node->op == OpKind::kConv ? DefineWindow(op) : DefineContraction(op));
    }
    default: break;
  }
  TN_UNREACHABLE();
}

}  // namespace tenon::ops

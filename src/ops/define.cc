#include "ops/define.h"

#include "graph/infer.h"
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
  auto at = [&](size_t i) { return BroadcastAt(op.in[i], out, op.out.dims); };
  switch (graph::Info(op.node->op).map) {
    case IndexMapClass::kElementwise: return DefineUnary(op, op.in[0].at(out));
    case IndexMapClass::kBroadcast:
      if (op.node->op == OpKind::kWhere) {
        return Select::Make(at(0), at(1), at(2));
      }
      if (op.node->op == OpKind::kExpand) return DefineMovement(op, out);
      if (op.node->op == OpKind::kBatchNorm) return DefineBatchNorm(op, out);
      return DefineBinary(op, at(0), at(1));
    case IndexMapClass::kWindow: return DefineResize(op, out);
    case IndexMapClass::kInjective:
    case IndexMapClass::kOpaque: return DefineMovement(op, out);
    case IndexMapClass::kReduction:
    case IndexMapClass::kContraction: break;
  }
  TN_UNREACHABLE();
}

namespace {

bool IsNarrow(DType type) { return graph::AccumulatorOf(type) != type; }

// An operator that adds up works in the wider type throughout and rounds once. Contractions see to
// it by themselves: their nodes say which types.
bool AddsUp(const graph::Node& node) {
  switch (node.op) {
    case OpKind::kMatMul:
    case OpKind::kConv:
    case OpKind::kSplitMatMul:
    case OpKind::kWinogradConv:
    case OpKind::kMaxPool:
    case OpKind::kArgReduce:
    case OpKind::kTopK: return false;
    default: return true;
  }
}

Operand DefineFirst(const OpContext& op) {
  switch (graph::Info(op.node->op).map) {
    case IndexMapClass::kReduction: return DefineReduction(op);
    case IndexMapClass::kWindow: return DefineWindow(op);
    case IndexMapClass::kContraction:
      if (op.node->op == OpKind::kWinogradConv) return DefineWinograd(op);
      return op.node->op == OpKind::kConv ? DefineWindow(op) : DefineContraction(op);
    default: break;
  }
  TN_UNREACHABLE();
}

}  // namespace

Operand Define(const OpContext& op) {
  if (HasElementDefinition(op.node->op)) {
    return Memo(
        {op.out.dtype, op.out.dims, [op](const Indices& i) { return DefineElement(op, i); }});
  }
  if (!AddsUp(*op.node) || !IsNarrow(op.out.dtype)) return Memo(DefineFirst(op));
  OpContext wide = op;
  wide.out.dtype = graph::AccumulatorOf(op.out.dtype);
  for (Operand& x : wide.in) x = As(graph::AccumulatorOf(x.dtype), std::move(x));
  return Memo(As(op.out.dtype, DefineFirst(wide)));
}

std::vector<Operand> DefineAll(const OpContext& op) {
  if (op.node->outputs.size() == 1 && op.node->op != OpKind::kTopK) return {Define(op)};
  std::vector<Operand> all = op.node->op == OpKind::kTopK ? DefineTopK(op) : DefineMaxPool(op);
  all.resize(op.node->outputs.size());
  for (Operand& x : all) x = Memo(std::move(x));
  return all;
}

}  // namespace tenon::ops

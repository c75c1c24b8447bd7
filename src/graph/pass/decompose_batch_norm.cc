#include "graph/pass/decompose_batch_norm.h"

#include "graph/pass/rewrite.h"

namespace tenon::graph {

static Expected<ValueId> Decompose(Builder& b, const Node& n) {
  const TensorType x = b.type(n.inputs[0]);  // a copy: adding nodes moves the values
  ValueId epsilon = b.Scalar(b.type(n.inputs[4]).dtype, n.attrs.GetFloat("epsilon"));
  TN_ASSIGN_OR_RETURN(ValueId var, b.Add(OpKind::kAdd, {n.inputs[4], epsilon}, n.name + ".var"));
  TN_ASSIGN_OR_RETURN(ValueId deviation, b.Add(OpKind::kSqrt, {var}, n.name + ".deviation"));
  TN_ASSIGN_OR_RETURN(ValueId scale,
                      b.Add(OpKind::kDiv, {n.inputs[1], deviation}, n.name + ".scale"));
  TN_ASSIGN_OR_RETURN(ValueId moved, b.Add(OpKind::kMul, {n.inputs[3], scale}, n.name + ".moved"));
  TN_ASSIGN_OR_RETURN(ValueId shift, b.Add(OpKind::kSub, {n.inputs[2], moved}, n.name + ".shift"));
  // [C] → [C, 1, …, 1], which broadcasts along axis 1.
  ExprAttrs shape;
  shape["shape"] = {x.dims[1]};
  for (int i = 2; i < x.rank(); ++i) shape["shape"].push_back(IndexConst(1));
  ValueId source = n.inputs[0];
  TN_ASSIGN_OR_RETURN(scale, b.Add(OpKind::kReshape, {scale}, n.name + ".scale_c", {}, shape));
  TN_ASSIGN_OR_RETURN(shift, b.Add(OpKind::kReshape, {shift}, n.name + ".shift_c", {}, shape));
  TN_ASSIGN_OR_RETURN(ValueId product, b.Add(OpKind::kMul, {source, scale}, n.name + ".scaled"));
  return b.Add(OpKind::kAdd, {product, shift}, n.name);
}

Graph DecomposeBatchNorm(const Graph& g, const GraphPassContext& context) {
  return Rewrite(g, [](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node n = b.graph().node(id);
    return n.op == OpKind::kBatchNorm ? Decompose(b, n) : kNoValue;
  });
}

}  // namespace tenon::graph

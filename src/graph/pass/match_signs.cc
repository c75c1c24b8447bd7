#include "graph/pass/match_signs.h"

#include <optional>

#include "graph/infer.h"
#include "graph/pass/constants.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

const DType kI32 = DType::Int(32);

bool IsByte(DType t) { return t.IsInt() && t.bits == 8; }
DType OtherSign(DType t) { return t.IsSigned() ? DType::UInt(8) : DType::Int(8); }

// Which operands get the other sign.
struct Turn {
  bool a, b;
};

// The least that gives signs which a unit multiplies; nullopt where nothing helps or is needed.
std::optional<Turn> TurnFor(const Machine& machine, DType a, DType b) {
  for (const Turn turn : {Turn{false, false}, {false, true}, {true, false}, {true, true}}) {
    if (!machine.MatrixUnit(turn.a ? OtherSign(a) : a, turn.b ? OtherSign(b) : b, kI32)) continue;
    if (!turn.a && !turn.b) return std::nullopt;
    return turn;
  }
  return std::nullopt;
}

// What a byte is more than the same bits of the other sign.
int Offset(DType t) { return t.IsSigned() ? -128 : 128; }

// The numbers less their offset, in the type of the other sign.
Expected<ValueId> Moved(Builder& b, ValueId v, const std::string& name) {
  const DType from = b.type(v).dtype, to = OtherSign(from);
  TN_ASSIGN_OR_RETURN(v, b.Add(OpKind::kCast, {v}, name, {{"to", to.ToString()}}));
  return b.Add(OpKind::kAdd, {v, b.Scalar(to, -Offset(from))}, name);
}

// `factor` times the sums along an axis of a matrix.
Expected<ValueId> Sums(Builder& b, ValueId v, int64_t axis, bool keepdims, int factor,
                       const std::string& name) {
  TN_ASSIGN_OR_RETURN(v, b.Add(OpKind::kCast, {v}, name, {{"to", kI32.ToString()}}));
  TN_ASSIGN_OR_RETURN(v, b.Add(OpKind::kReduce, {v}, name,
                               {{"kind", std::string("sum")},
                                {"axes", std::vector<int64_t>{axis}},
                                {"keepdims", keepdims}}));
  return b.Add(OpKind::kMul, {v, b.Scalar(kI32, factor)}, name);
}

// Whether the node is a product of bytes into 32 bits by a matrix that is known.
bool IsProduct(const Graph& g, const Node& n, const std::vector<bool>& constant) {
  if (n.op != OpKind::kMatMul || n.attrs.Get<bool>("trans_a", false)) return false;
  const TensorType &a = g.type(n.inputs[0]), &b = g.type(n.inputs[1]);
  const auto weights = static_cast<size_t>(n.inputs[1]);
  if (!IsByte(a.dtype) || !IsByte(b.dtype) || b.rank() != 2) return false;
  if (weights >= constant.size() || !constant[weights]) return false;
  const auto types = ContractionTypesOf(a.dtype, b.dtype, n.attrs);
  return types && types->accumulator == kI32 && types->result == kI32;
}

}  // namespace

Graph MatchSigns(const Graph& g, const GraphPassContext& context) {
  const std::vector<bool> constant = ConstantValues(g);
  return Rewrite(g, [&](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node n = b.graph().node(id);
    if (!IsProduct(b.graph(), n, constant)) return kNoValue;
    ValueId x = n.inputs[0], w = n.inputs[1];
    const DType left = b.type(x).dtype, right = b.type(w).dtype;
    const std::optional<Turn> turn = TurnFor(*context.machine, left, right);
    if (!turn) return kNoValue;
    ValueId rows = kNoValue, columns = kNoValue;
    if (turn->b) {
      TN_ASSIGN_OR_RETURN(rows, Sums(b, x, b.type(x).rank() - 1, true, Offset(right), n.name));
      TN_ASSIGN_OR_RETURN(w, Moved(b, w, n.name));
    }
    if (turn->a) {
      const int64_t depth = n.attrs.Get<bool>("trans_b", false) ? 1 : 0;
      TN_ASSIGN_OR_RETURN(columns, Sums(b, w, depth, false, Offset(left), n.name));
      TN_ASSIGN_OR_RETURN(x, Moved(b, x, n.name));
    }
    TN_ASSIGN_OR_RETURN(ValueId product, b.Add(OpKind::kMatMul, {x, w}, n.name, n.attrs));
    for (ValueId sums : {rows, columns}) {
      if (sums == kNoValue) continue;
      TN_ASSIGN_OR_RETURN(product, b.Add(OpKind::kAdd, {product, sums}, n.name));
    }
    return product;
  });
}

}  // namespace tenon::graph

// Of each value of f16 there may be two forms: the one that the graph had, and one of f32 that it
// is the rounding of. Nodes are looked at in order, and made anew on the wide forms of their
// operands; what still reads a narrow form of such a result reads a cast of the wide one.
#include "graph/pass/widen_f16.h"

#include <algorithm>
#include <map>

#include "graph/builder.h"
#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/pass/constants.h"

namespace tenon::graph {

namespace {

const DType kNarrow = DType::Float(16);
const DType kWide = DType::Float(32);

// Products of up to so many rows take the time of their weights' bytes.
constexpr int64_t kFewRows = 16;

enum class Kind {
  kProduct,   // of factors, which f32 multiplies exactly
  kComputes,  // its result is rounded
  kMoves,     // its result has elements of its operands, or follows from them exactly
  kJumps,     // a last bit of an operand may decide about all of the result; or it is control flow
};

Kind KindOf(const Node& n) {
  switch (n.op) {
    case OpKind::kMatMul:
    case OpKind::kConv:
    case OpKind::kAttention: return Kind::kProduct;
    case OpKind::kSigmoid:
    case OpKind::kTanh:
    case OpKind::kExp:
    case OpKind::kLog:
    case OpKind::kSqrt:
    case OpKind::kErf:
    case OpKind::kSin:
    case OpKind::kCos:
    case OpKind::kTan:
    case OpKind::kAsin:
    case OpKind::kAcos:
    case OpKind::kAtan:
    case OpKind::kSinh:
    case OpKind::kCosh:
    case OpKind::kAsinh:
    case OpKind::kAcosh:
    case OpKind::kAtanh:
    case OpKind::kReciprocal:
    case OpKind::kSoftplus:
    case OpKind::kGelu:
    case OpKind::kHardSigmoid:
    case OpKind::kHardSwish:
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kDiv:
    case OpKind::kPow:
    case OpKind::kCumSum:
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
    case OpKind::kLayerNorm:
    case OpKind::kBatchNorm:
    case OpKind::kAvgPool: return Kind::kComputes;
    case OpKind::kReduce: {
      const std::string& kind = n.attrs.GetString("kind");
      return kind == "max" || kind == "min" ? Kind::kMoves : Kind::kComputes;
    }
    case OpKind::kResize:
      return n.attrs.GetString("mode") == "nearest" ? Kind::kMoves : Kind::kComputes;
    case OpKind::kScatter:
      return n.attrs.GetString("reduction") == "none" ? Kind::kMoves : Kind::kComputes;
    case OpKind::kRelu:
    case OpKind::kNeg:
    case OpKind::kAbs:
    case OpKind::kClip:
    case OpKind::kMin:
    case OpKind::kMax:
    case OpKind::kWhere:
    case OpKind::kExpand:
    case OpKind::kMaxPool:
    case OpKind::kReshape:
    case OpKind::kTranspose:
    case OpKind::kSlice:
    case OpKind::kConcat:
    case OpKind::kPad:
    case OpKind::kGather:
    case OpKind::kGatherElements:
    case OpKind::kGatherNd: return Kind::kMoves;
    default: return Kind::kJumps;
  }
}

class Widener {
 public:
  explicit Widener(const Graph& g)
      : old_(g), b_(g), users_(Users(g)), constant_(ConstantValues(g)) {}

  Graph Run() {
    for (const Node& n : old_.nodes) Visit(n);
    Graph g = std::move(b_.graph());
    const auto replace = [&](ValueId& v) {
      if (const auto at = narrow_.find(v); at != narrow_.end()) v = at->second;
    };
    for (Node& n : g.nodes) std::for_each(n.inputs.begin(), n.inputs.end(), replace);
    std::for_each(g.outputs.begin(), g.outputs.end(), replace);
    TopologicalSort(g);
    Compact(g);
    return g;
  }

 private:
  bool IsF16(ValueId v) const {
    return v != kNoValue && b_.graph().IsTensor(v) && b_.type(v).dtype == kNarrow;
  }
  bool IsWide(ValueId v) const { return wide_.contains(v) && narrow_.contains(v); }

  void Visit(const Node& n) {
    if (n.outputs.size() != 1) return;
    if (n.op == OpKind::kCast) return VisitCast(n);
    if (!IsF16(n.outputs[0])) return;
    const bool any = std::any_of(n.inputs.begin(), n.inputs.end(),
                                 [&](ValueId v) { return v != kNoValue && IsWide(v); });
    Node made = n;
    switch (KindOf(n)) {
      case Kind::kProduct:
        if (!any && (!IsRead(n) || n.op == OpKind::kAttention)) return;
        if (!TakeFactors(any, &made)) return;
        break;
      case Kind::kComputes:
        if (!any && !IsRead(n)) return;
        if (!TakeWide(&made)) return;
        break;
      case Kind::kMoves:
        if (!any || !TakeWide(&made)) return;
        break;
      case Kind::kJumps: return;
    }
    Put(n.outputs[0], b_.Add(made.op, made.inputs, made.name, made.attrs, made.exprs));
  }

  // A conversion to more bits than f16 reads what has not been rounded.
  void VisitCast(const Node& n) {
    if (!IsWide(n.inputs[0]) || IsF16(n.outputs[0])) return;
    const TensorType& type = b_.type(n.outputs[0]);
    if (!type.dtype.IsFloat() || type.dtype.bits < 32) return;
    Expected<ValueId> made = b_.Add(OpKind::kCast, {wide_.at(n.inputs[0])}, n.name, n.attrs);
    if (made && b_.type(*made).dtype == type.dtype) narrow_[n.outputs[0]] = *made;
  }

  // Whether a node reads the result: what is only an output is rounded right away.
  bool IsRead(const Node& n) const { return !users_[static_cast<size_t>(n.outputs[0])].empty(); }

  bool TakeWide(Node* n) {
    for (ValueId& v : n->inputs) {
      if (!IsF16(v)) continue;
      v = Wide(v);
      if (v == kNoValue) return false;
    }
    return true;
  }

  bool TakeFactors(bool any, Node* n) {
    if (any && (n->op == OpKind::kAttention || !HasFewRows(*n))) {
      if (n->op != OpKind::kAttention) n->attrs.Set("result", std::string());
      return TakeWide(n);
    }
    n->attrs.Set("result", kWide.ToString());
    if (n->inputs.size() < 3 || !IsF16(n->inputs[2])) return true;
    n->inputs[2] = Wide(n->inputs[2]);  // a bias has the result's type
    return n->inputs[2] != kNoValue;
  }

  // Whether it is a product of a few rows, or of nobody knows how many, by weights of f16.
  bool HasFewRows(const Node& n) const {
    if (n.op != OpKind::kMatMul || !IsF16(n.inputs[0]) || !IsF16(n.inputs[1])) return false;
    const auto weights = static_cast<size_t>(n.inputs[1]);
    if (weights >= constant_.size() || !constant_[weights]) return false;
    int64_t rows = 1;
    const std::vector<Expr>& dims = b_.type(n.inputs[0]).dims;
    const size_t k = dims.size() - (n.attrs.Get<bool>("trans_a", false) ? 2 : 1);
    for (size_t i = 0; i < dims.size(); ++i) {
      const auto size = AsInt(dims[i]);
      if (!size) return true;
      if (i != k) rows = std::min(rows * std::min(*size, kFewRows + 1), kFewRows + 1);
    }
    return rows <= kFewRows;
  }

  ValueId Wide(ValueId v) {
    if (const auto at = wide_.find(v); at != wide_.end()) return at->second;
    // Numbers that patterns look for stay constants.
    const Value value = b_.graph().value(v);
    if (value.IsConstant() && StaticCount(value.type.tensor().dims) == 1) {
      if (const auto number = ReadFloats(value)) {
        TensorType type = value.type.tensor();
        type.dtype = kWide;
        const std::span<const double> numbers(*number);
        return wide_[v] = b_.Constant(value.name, type, MakePayload(kWide, numbers));
      }
    }
    Expected<ValueId> cast =
        b_.Add(OpKind::kCast, {v}, value.name, Attrs{{"to", kWide.ToString()}});
    return wide_[v] = cast ? *cast : kNoValue;
  }

  // The wide form of a result, and the narrow one for those who want that.
  void Put(ValueId v, const Expected<ValueId>& made) {
    if (!made || b_.type(*made).dtype != kWide ||
        b_.type(*made).dims.size() != b_.type(v).dims.size())
      return;
    const std::string name = b_.graph().value(v).name;
    Expected<ValueId> narrow =
        b_.Add(OpKind::kCast, {*made}, name, Attrs{{"to", kNarrow.ToString()}});
    if (!narrow) return;
    wide_[v] = *made;
    narrow_[v] = *narrow;
  }

  const Graph& old_;
  Builder b_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> constant_;
  std::map<ValueId, ValueId> wide_;    // of values of f16: what they round
  std::map<ValueId, ValueId> narrow_;  // what stands for results of nodes that were made anew
};

}  // namespace

Graph WidenF16(const Graph& g, const GraphPassContext& context) {
  if (context.machine->warp != 0) return g;
  const bool has_any = std::any_of(g.values.begin(), g.values.end(), [](const Value& v) {
    return v.type.IsTensor() && v.type.tensor().dtype == kNarrow;
  });
  return has_any ? Widener(g).Run() : g;
}

}  // namespace tenon::graph

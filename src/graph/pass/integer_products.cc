#include "graph/pass/integer_products.h"

#include <algorithm>
#include <optional>

#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/pass/constants.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

const DType kI32 = DType::Int(32), kF32 = DType::Float(32);

// (q - zero) · scale.
struct Quantity {
  ValueId q, scale;
  int64_t zero = 0;
};

// The operands of the node that makes v, where it is one of these; else null.
const std::vector<ValueId>* OperandsOf(const Graph& g, ValueId v, OpKind op) {
  const NodeId at = g.value(v).producer;
  return at != kNoNode && g.node(at).op == op ? &g.node(at).inputs : nullptr;
}

// What all elements of a value are, seen through casts and views of a small constant of integers.
std::optional<int64_t> SameInteger(const Builder& b, ValueId v) {
  for (OpKind op : {OpKind::kCast, OpKind::kReshape, OpKind::kCast}) {
    if (const auto* from = OperandsOf(b.graph(), v, op)) v = from->at(0);
  }
  const auto known = b.KnownInts(v);
  if (!known || known->empty()) return std::nullopt;
  const int64_t first = known->front();
  const bool same =
      std::all_of(known->begin(), known->end(), [&](int64_t z) { return z == first; });
  return same ? std::optional(first) : std::nullopt;
}

std::optional<Quantity> QuantityOf(const Builder& b, ValueId v) {
  const Graph& g = b.graph();
  const auto* product = OperandsOf(g, v, OpKind::kMul);
  if (!product || g.type(v).dtype != kF32) return std::nullopt;
  Quantity out{product->at(0), product->at(1)};
  if (const auto* difference = OperandsOf(g, out.q, OpKind::kSub)) {
    const std::optional<int64_t> zero = SameInteger(b, difference->at(1));
    if (!zero) return std::nullopt;
    out.zero = *zero;
    out.q = difference->at(0);
  }
  const auto* number = OperandsOf(g, out.q, OpKind::kCast);
  if (!number) return std::nullopt;
  out.q = number->at(0);
  const DType type = g.type(out.q).dtype;
  // What is taken off and multiplied in makes no more of it.
  if (!type.IsInt() || type.bits != 8 || g.type(out.q).dims.size() != g.type(v).dims.size())
    return std::nullopt;
  for (size_t i = 0; i < g.type(v).dims.size(); ++i) {
    if (!ProveEqual(g.type(out.q).dims[i], g.type(v).dims[i])) return std::nullopt;
  }
  return out;
}

// The same number by a byte of the other sign.
Expected<Quantity> Moved(Builder& b, const Quantity& x, const std::string& name) {
  const bool is_signed = b.type(x.q).dtype.IsSigned();
  const DType to = is_signed ? DType::UInt(8) : DType::Int(8);
  const int64_t more = is_signed ? 128 : -128;
  TN_ASSIGN_OR_RETURN(ValueId q, b.Add(OpKind::kCast, {x.q}, name, {{"to", to.ToString()}}));
  TN_ASSIGN_OR_RETURN(q, b.Add(OpKind::kAdd, {q, b.Scalar(to, static_cast<double>(more))}, name));
  return Quantity{q, x.scale, x.zero + more};
}

// One number, or one for each element of an axis alone.
bool IsAlong(const TensorType& scale, int64_t rank, int64_t axis) {
  const int64_t more = rank - scale.rank();
  for (int64_t i = 0; i < scale.rank(); ++i) {
    if (more + i != axis && !IsOne(scale.dims[static_cast<size_t>(i)])) return false;
  }
  return more >= 0;
}

// A list of one for each column or map, or of one for all, beside a result with `after` axes behind
// that one.
Expected<ValueId> BesideResult(Builder& b, ValueId list, size_t after, const std::string& name) {
  const Expr count = DimProduct(b.type(list).dims);
  std::vector<Expr> shape;
  if (!IsOne(count)) {
    shape.push_back(count);
    shape.insert(shape.end(), after, IndexConst(1));
  }
  return b.Add(OpKind::kReshape, {list}, name, {}, {{"shape", std::move(shape)}});
}

// What a node multiplies.
struct Contraction {
  Quantity x, w;
  int64_t columns = 0;       // the axis of w that is one of the result
  std::vector<int64_t> sum;  // its others
  size_t after = 0;          // axes of the result behind that of the columns
};

class Raiser {
 public:
  Raiser(const Graph& g, const Machine& machine)
      : constant_(ConstantValues(g)), machine_(machine) {}

  Expected<ValueId> Raise(Builder& b, NodeId id) const {
    const Node n = b.graph().node(id);
    if (n.op == OpKind::kMaxPool) return RaiseMaximum(b, n);
    std::optional<Contraction> c = Read(b, n);
    if (!c) return kNoValue;
    TN_ASSIGN_OR_RETURN(const bool fits, MatchUnit(b, n.name, &*c));
    if (!fits) return kNoValue;
    Attrs attrs = n.attrs;
    if (n.op == OpKind::kConv) attrs.Set("pad_value", static_cast<double>(c->x.zero));
    TN_ASSIGN_OR_RETURN(ValueId y, b.Add(n.op, {c->x.q, c->w.q}, n.name, attrs));
    if (c->x.zero != 0) {
      TN_ASSIGN_OR_RETURN(ValueId sums,
                          b.Add(OpKind::kCast, {c->w.q}, n.name, {{"to", kI32.ToString()}}));
      TN_ASSIGN_OR_RETURN(
          sums, b.Add(OpKind::kReduce, {sums}, n.name,
                      {{"kind", std::string("sum")}, {"axes", c->sum}, {"keepdims", false}}));
      const ValueId zero = b.Scalar(kI32, static_cast<double>(c->x.zero));
      TN_ASSIGN_OR_RETURN(sums, b.Add(OpKind::kMul, {sums, zero}, n.name));
      TN_ASSIGN_OR_RETURN(sums, BesideResult(b, sums, c->after, n.name));
      TN_ASSIGN_OR_RETURN(y, b.Add(OpKind::kSub, {y, sums}, n.name));
    }
    TN_ASSIGN_OR_RETURN(y, b.Add(OpKind::kCast, {y}, n.name, {{"to", kF32.ToString()}}));
    TN_ASSIGN_OR_RETURN(const ValueId s, BesideResult(b, c->x.scale, c->after, n.name));
    TN_ASSIGN_OR_RETURN(const ValueId t, BesideResult(b, c->w.scale, c->after, n.name));
    TN_ASSIGN_OR_RETURN(const ValueId scale, b.Add(OpKind::kMul, {s, t}, n.name));
    TN_ASSIGN_OR_RETURN(y, b.Add(OpKind::kMul, {y, scale}, n.name));
    if (n.inputs.size() < 3 || n.inputs[2] == kNoValue) return y;
    TN_ASSIGN_OR_RETURN(const ValueId bias, BesideResult(b, n.inputs[2], c->after, n.name));
    return b.Add(OpKind::kAdd, {y, bias}, n.name);
  }

  // round(x / scale) + zero, cast to a byte, of an x that has a byte of this scale and zero.
  static Expected<ValueId> SameCode(Builder& b, NodeId id) {
    const Graph& g = b.graph();
    const Node& n = g.node(id);
    if (n.op != OpKind::kCast) return kNoValue;
    const DType type = g.type(n.outputs[0]).dtype;
    if (!type.IsInt() || type.bits != 8) return kNoValue;
    ValueId v = n.inputs[0];
    int64_t zero = 0;
    if (const auto* sum = OperandsOf(g, v, OpKind::kAdd)) {
      const std::optional<int64_t> known = SameInteger(b, sum->at(1));
      if (!known) return kNoValue;
      zero = *known;
      v = sum->at(0);
    }
    const auto* rounded = OperandsOf(g, v, OpKind::kRound);
    const auto* quotient = rounded ? OperandsOf(g, rounded->at(0), OpKind::kDiv) : nullptr;
    if (!quotient) return kNoValue;
    const auto x = QuantityOf(b, quotient->at(0));
    const bool same = x && x->zero == zero && x->scale == quotient->at(1) &&
                      g.type(x->q).dtype == type && IsOrdinary(b, x->scale);
    return same ? x->q : kNoValue;
  }

 private:
  // The largest number has the largest byte.
  static Expected<ValueId> RaiseMaximum(Builder& b, const Node& n) {
    const auto x = QuantityOf(b, n.inputs[0]);
    if (!x || !IsOrdinary(b, x->scale) || !HasAnElement(n.attrs)) return kNoValue;
    const Attrs to_number = {{"to", kF32.ToString()}};
    TN_ASSIGN_OR_RETURN(ValueId y, b.Add(n.op, {x->q}, n.name, n.attrs));
    TN_ASSIGN_OR_RETURN(y, b.Add(OpKind::kCast, {y}, n.name, to_number));
    if (x->zero != 0) {
      ValueId zero = b.Scalar(kI32, static_cast<double>(x->zero));
      TN_ASSIGN_OR_RETURN(zero, b.Add(OpKind::kCast, {zero}, n.name, to_number));
      TN_ASSIGN_OR_RETURN(y, b.Add(OpKind::kSub, {y, zero}, n.name));
    }
    return b.Add(OpKind::kMul, {y, x->scale}, n.name);
  }

  // A scale by which products and quotients of bytes are off by less than half a step.
  static bool IsOrdinary(const Builder& b, ValueId scale) {
    if (const auto* from = OperandsOf(b.graph(), scale, OpKind::kReshape)) scale = from->at(0);
    const Graph& g = b.graph();
    if (!g.value(scale).IsConstant()) return false;
    const auto number = ReadFloats(g.value(scale), 1);
    return number && number->size() == 1 && number->front() > 1e-30 && number->front() < 1e30;
  }

  // Whether each window of a pool has an element of the input: else its maximum is no number.
  static bool HasAnElement(const Attrs& pool) {
    const std::vector<int64_t> kernel = pool.GetInts("kernel"), pads = pool.GetInts("pads");
    for (int64_t d : pool.GetInts("dilations")) {
      if (d != 1) return false;
    }
    for (size_t i = 0; i < pads.size(); ++i) {
      if (pads[i] >= kernel[i % kernel.size()]) return false;
    }
    return true;
  }

  std::optional<Contraction> Read(const Builder& b, const Node& n) const {
    if (n.op != OpKind::kMatMul && n.op != OpKind::kConv) return std::nullopt;
    if (!n.attrs.GetString("accumulator").empty() || !n.attrs.GetString("result").empty())
      return std::nullopt;
    const auto weights = static_cast<size_t>(n.inputs[1]);
    if (weights >= constant_.size() || !constant_[weights]) return std::nullopt;
    const auto x = QuantityOf(b, n.inputs[0]), w = QuantityOf(b, n.inputs[1]);
    if (!x || !w || StaticCount(b.type(x->scale).dims) != 1) return std::nullopt;
    const int64_t rank = b.type(w->q).rank();
    Contraction c{*x, *w};
    if (n.op == OpKind::kConv) {
      if (n.attrs.GetFloat("pad_value", 0) != 0) return std::nullopt;
      c.after = static_cast<size_t>(rank - 2);
    } else {
      if (rank != 2 || n.attrs.Get<bool>("trans_a", false)) return std::nullopt;
      c.columns = n.attrs.Get<bool>("trans_b", false) ? 0 : 1;
    }
    if (!IsAlong(b.type(w->scale), rank, c.columns)) return std::nullopt;
    for (int64_t i = 0; i < rank; ++i) {
      if (i != c.columns) c.sum.push_back(i);
    }
    return c;
  }

  // Gives operands the signs that a unit multiplies, weights around 0. False where that cannot be.
  Expected<bool> MatchUnit(Builder& b, const std::string& name, Contraction* c) const {
    const auto other = [](DType t) { return t.IsSigned() ? DType::UInt(8) : DType::Int(8); };
    const DType x = b.type(c->x.q).dtype, w = b.type(c->w.q).dtype;
    const bool turn_w = c->w.zero != 0;
    if (turn_w && c->w.zero != (w.IsSigned() ? -128 : 128)) return false;
    const DType weights = turn_w ? other(w) : w;
    const bool turn_x = !machine_.MatrixUnit(x, weights, kI32);
    if (turn_x && !machine_.MatrixUnit(other(x), weights, kI32)) return false;
    if (turn_x) {
      TN_ASSIGN_OR_RETURN(c->x, Moved(b, c->x, name));
    }
    if (turn_w) {
      TN_ASSIGN_OR_RETURN(c->w, Moved(b, c->w, name));
    }
    return true;
  }

  const std::vector<bool> constant_;
  const Machine& machine_;
};

// What makes bytes of a concatenation by elements makes them of its parts: who computes a part can
// do so, and bytes are moved in the place of numbers.
class Distributor {
 public:
  explicit Distributor(const Graph& g) : uses_(UseCounts(g)) {}

  Expected<ValueId> Distribute(Builder& b, NodeId id) const {
    const Node last = b.graph().node(id);
    const DType type = b.type(last.outputs[0]).dtype;
    if (last.op != OpKind::kCast || !type.IsInt() || type.bits != 8) return kNoValue;
    std::vector<Node> chain = {last};  // the last first
    ValueId v = last.inputs[0];
    while (const Node* n = StepOf(b.graph(), v)) {
      chain.push_back(*n);
      v = n->inputs[0];
    }
    const NodeId made = b.graph().value(v).producer;
    if (made == kNoNode || !IsRead(v)) return kNoValue;
    const Node concat = b.graph().node(made);
    const bool once = std::all_of(concat.inputs.begin(), concat.inputs.end(),
                                  [&](ValueId part) { return IsRead(part); });
    if (concat.op != OpKind::kConcat || !once) return kNoValue;
    std::vector<ValueId> parts;
    for (ValueId part : concat.inputs) {
      for (size_t i = chain.size(); i-- > 0;) {
        std::vector<ValueId> inputs = chain[i].inputs;
        inputs[0] = part;
        TN_ASSIGN_OR_RETURN(part, b.Add(chain[i].op, inputs, chain[i].name, chain[i].attrs));
      }
      parts.push_back(part);
    }
    return b.Add(OpKind::kConcat, parts, concat.name, concat.attrs);
  }

 private:
  // By one reader.
  bool IsRead(ValueId v) const {
    return static_cast<size_t>(v) < uses_.size() && uses_[static_cast<size_t>(v)] == 1;
  }
  // The node that makes v of one value, by elements, and of numbers that are the same for all.
  const Node* StepOf(const Graph& g, ValueId v) const {
    const NodeId made = g.value(v).producer;
    if (made == kNoNode || !IsRead(v)) return nullptr;
    const Node& n = g.node(made);
    const IndexMapClass map = Info(n.op).map;
    if (map != IndexMapClass::kElementwise && map != IndexMapClass::kBroadcast) return nullptr;
    if (n.outputs.size() != 1 || n.inputs.empty() || n.inputs[0] == kNoValue || !n.exprs.empty() ||
        g.type(v).rank() != g.type(n.inputs[0]).rank()) {
      return nullptr;
    }
    for (size_t i = 1; i < n.inputs.size(); ++i) {
      if (n.inputs[i] == kNoValue || g.type(n.inputs[i]).rank() > 0) return nullptr;
    }
    for (size_t a = 0; a < g.type(v).dims.size(); ++a) {
      if (!ProveEqual(g.type(v).dims[a], g.type(n.inputs[0]).dims[a])) return nullptr;
    }
    return &n;
  }

  const std::vector<int32_t> uses_;
};

}  // namespace

Graph IntegerProducts(const Graph& g, const GraphPassContext& context) {
  const Raiser raiser(g, *context.machine);
  const Graph raised = Rewrite(g, [&](Builder& b, NodeId n) { return raiser.Raise(b, n); });
  const Distributor distributor(raised);
  const Graph distributed =
      Rewrite(raised, [&](Builder& b, NodeId n) { return distributor.Distribute(b, n); });
  return Rewrite(distributed, Raiser::SameCode);
}

}  // namespace tenon::graph

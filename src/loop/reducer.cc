#include "loop/reducer.h"

#include <limits>
#include <unordered_map>

#include "ir/visit.h"

namespace tenon {

namespace {

using Tuple = std::vector<Expr>;

// The least or greatest value of a type; null for handles. Of floats the infinities, where they
// have them.
Expr Extreme(DType type, bool least) {
  if (type.IsFloat()) {
    return MakeConst(type, least ? LeastOf(type.Element()) : GreatestOf(type.Element()));
  }
  if (type.IsBool()) return MakeIntConst(type, least ? 0 : 1);
  if (type.IsHandle()) return nullptr;
  int64_t lowest = std::numeric_limits<int64_t>::min() >> (64 - type.bits);
  if (type.IsSigned()) return MakeIntConst(type, least ? lowest : ~lowest);
  return MakeIntConst(type, least ? 0 : -1);  // all ones, cut to the type
}

Tuple Only(Expr e) { return e ? Tuple{std::move(e)} : Tuple{}; }
bool IsNumber(DType type) { return !type.IsHandle() && !type.IsBool(); }

template <BinaryOp op>
Tuple CombineBinary(std::span<const Expr> a, std::span<const Expr> b) {
  return {Binary::Make(op, a[0], b[0])};
}

Tuple ZeroOf(std::span<const DType> t) {
  return IsNumber(t[0]) ? Only(MakeConst(t[0], 0)) : Tuple{};
}
Tuple OneOf(std::span<const DType> t) {
  return IsNumber(t[0]) ? Only(MakeConst(t[0], 1)) : Tuple{};
}
Tuple GreatestOf(std::span<const DType> t) { return Only(Extreme(t[0], false)); }
Tuple LeastOf(std::span<const DType> t) { return Only(Extreme(t[0], true)); }
Tuple TrueOf(std::span<const DType> t) {
  return t[0].IsBool() ? Only(MakeIntConst(t[0], 1)) : Tuple{};
}
Tuple FalseOf(std::span<const DType> t) {
  return t[0].IsBool() ? Only(MakeIntConst(t[0], 0)) : Tuple{};
}
Tuple NoBitsOf(std::span<const DType> t) {
  return t[0].IsInt() ? Only(MakeIntConst(t[0], 0)) : Tuple{};
}
Tuple AllBitsOf(std::span<const DType> t) {
  return t[0].IsInt() ? Only(MakeIntConst(t[0], -1)) : Tuple{};
}

// The better value wins, then the lesser index.
template <BinaryOp better>
Tuple CombineArg(std::span<const Expr> a, std::span<const Expr> b) {
  Expr wins = Or(Binary::Make(better, b[1], a[1]), And(Eq(b[1], a[1]), Lt(b[0], a[0])));
  BinaryOp pick = better == BinaryOp::kGt ? BinaryOp::kMax : BinaryOp::kMin;
  return {Select::Make(wins, b[0], a[0]), Binary::Make(pick, a[1], b[1])};
}

Tuple ArgIdentity(std::span<const DType> t, bool least) {
  Expr index = Extreme(t[0], false), value = Extreme(t[1], least);
  return index && value && !t[0].IsFloat() ? Tuple{index, value} : Tuple{};
}
Tuple ArgMaxIdentity(std::span<const DType> t) { return ArgIdentity(t, true); }
Tuple ArgMinIdentity(std::span<const DType> t) { return ArgIdentity(t, false); }

// Both sums rescaled to the common maximum.
Tuple CombineSumExp(std::span<const Expr> a, std::span<const Expr> b) {
  Expr max = Max(a[1], b[1]);
  auto scaled = [&](std::span<const Expr> x) {
    return x[0] * Call::Make(Intrinsic::kExp, {x[1] - max});
  };
  return {scaled(a) + scaled(b), max};
}

// Not -inf: two empty sides would give e^(-inf + inf).
Tuple SumExpIdentity(std::span<const DType> t) {
  if (!t[0].IsFloat() || !t[1].IsFloat()) return {};
  double lowest = t[1].code == TypeCode::kBFloat ? -3.3895313892515355e38
                  : t[1].IsFloat8()              ? LeastOf(t[1])
                  : t[1].bits == 16              ? -65504.0
                  : t[1].bits == 32              ? std::numeric_limits<float>::lowest()
                                                 : std::numeric_limits<double>::lowest();
  return {MakeConst(t[0], 0), MakeConst(t[1], lowest)};
}

constexpr Reducer kReducers[] = {
    {"add", 1, ZeroOf, CombineBinary<BinaryOp::kAdd>},
    {"mul", 1, OneOf, CombineBinary<BinaryOp::kMul>},
    {"min", 1, GreatestOf, CombineBinary<BinaryOp::kMin>},
    {"max", 1, LeastOf, CombineBinary<BinaryOp::kMax>},
    {"and", 1, TrueOf, CombineBinary<BinaryOp::kAnd>},
    {"or", 1, FalseOf, CombineBinary<BinaryOp::kOr>},
    {"bitand", 1, AllBitsOf, CombineBinary<BinaryOp::kBitAnd>},
    {"bitor", 1, NoBitsOf, CombineBinary<BinaryOp::kBitOr>},
    {"bitxor", 1, NoBitsOf, CombineBinary<BinaryOp::kBitXor>},
    {"argmax", 2, ArgMaxIdentity, CombineArg<BinaryOp::kGt>},
    {"argmin", 2, ArgMinIdentity, CombineArg<BinaryOp::kLt>},
    {"sum_exp", 2, SumExpIdentity, CombineSumExp},
};

}  // namespace

std::span<const Reducer> AllReducers() { return kReducers; }

const Reducer* FindReducer(std::string_view name) {
  for (const Reducer& r : kReducers) {
    if (name == r.name) return &r;
  }
  return nullptr;
}

namespace {

// Matches an expression with a template whose holes stand for any expression, the same one for the
// same hole.
class Matcher {
 public:
  explicit Matcher(std::span<const Var> holes) {
    for (const Var& h : holes) filled_[h.get()] = nullptr;
  }
  Expr Filling(const Var& hole) const { return filled_.at(hole.get()); }

  bool Match(const Expr& pattern, const Expr& e) {
    if (auto hole = filled_.find(As<VarNode>(pattern)); hole != filled_.end()) {
      if (hole->second) return StructuralEqual(hole->second, e);
      hole->second = e;
      return true;
    }
    if (pattern->kind != e->kind || pattern->dtype != e->dtype) return false;
    if (const auto* p = As<Binary>(pattern)) return MatchBinary(*p, *As<Binary>(e));
    if (const auto* p = As<Select>(pattern)) {
      const auto* n = As<Select>(e);
      return Match(p->condition, n->condition) && Match(p->on_true, n->on_true) &&
             Match(p->on_false, n->on_false);
    }
    if (const auto* p = As<Call>(pattern)) {
      const auto* n = As<Call>(e);
      bool same = p->intrinsic == n->intrinsic && p->args.size() == n->args.size();
      for (size_t i = 0; same && i < p->args.size(); ++i) same = Match(p->args[i], n->args[i]);
      return same;
    }
    return StructuralEqual(pattern, e);
  }

 private:
  static bool Commutes(BinaryOp op) {
    return op == BinaryOp::kAdd || op == BinaryOp::kMul || op == BinaryOp::kMin ||
           op == BinaryOp::kMax || op == BinaryOp::kAnd || op == BinaryOp::kOr ||
           op == BinaryOp::kBitAnd || op == BinaryOp::kBitOr || op == BinaryOp::kBitXor ||
           op == BinaryOp::kEq;
  }

  bool MatchBinary(const Binary& p, const Binary& n) {
    if (p.op != n.op) return false;
    auto before = filled_;
    if (Match(p.lhs, n.lhs) && Match(p.rhs, n.rhs)) return true;
    if (!Commutes(p.op)) return false;
    filled_ = before;
    return Match(p.lhs, n.rhs) && Match(p.rhs, n.lhs);
  }

  std::unordered_map<const VarNode*, Expr> filled_;
};

// fma(a, b, c) as a * b + c.
Expr WithoutFma(const Expr& e) {
  const auto* call = As<Call>(e);
  if (!call || call->intrinsic != Intrinsic::kFma) return e;
  return Binary::Make(BinaryOp::kAdd, call->args[2],
                      Binary::Make(BinaryOp::kMul, call->args[0], call->args[1]));
}

std::optional<Reduction> MatchReducer(const Reducer& reducer,
                                      const std::vector<Ref<const Store>>& stores) {
  if (stores.size() != static_cast<size_t>(reducer.arity)) return std::nullopt;
  std::vector<DType> types;
  std::vector<Var> holes;
  Tuple accumulators, values;
  for (const auto& store : stores) {
    types.push_back(store->buffer->dtype);
    accumulators.push_back(Load::Make(store->buffer, store->indices));
    holes.push_back(VarNode::Make("x", store->value->dtype));
    values.push_back(holes.back());
    if (store->value->dtype != accumulators.back()->dtype) return std::nullopt;
  }
  if (reducer.identity(types).empty()) return std::nullopt;
  Tuple combined = reducer.combine(accumulators, values);
  Matcher matcher(holes);
  for (size_t i = 0; i < stores.size(); ++i) {
    if (!matcher.Match(combined[i], WithoutFma(stores[i]->value))) return std::nullopt;
  }
  Reduction out{&reducer, stores, {}};
  for (const Var& hole : holes) {
    Expr value = matcher.Filling(hole);
    // What is combined in must not depend on what has been combined.
    for (const auto& store : stores) {
      if (!value || UsesBuffer(value, store->buffer.get())) return std::nullopt;
    }
    out.values.push_back(value);
  }
  return out;
}

}  // namespace

std::vector<Ref<const Store>> StoresOf(const Stmt& body) {
  std::vector<Stmt> parts{body};
  if (const auto* seq = As<Seq>(body)) parts = seq->stmts;
  std::vector<Ref<const Store>> out;
  for (const Stmt& s : parts) {
    const auto* store = As<Store>(s);
    if (!store || store->mask) return {};
    out.push_back(Cast<Store>(s));
  }
  return out;
}

std::optional<Reduction> DetectReducer(const Block& block) {
  std::vector<Ref<const Store>> stores = StoresOf(block.body);
  if (stores.empty()) return std::nullopt;
  if (!block.reducer.empty()) {
    const Reducer* named = FindReducer(block.reducer);
    return named ? MatchReducer(*named, stores) : std::nullopt;
  }
  for (const Reducer& reducer : kReducers) {
    if (reducer.arity != static_cast<int>(stores.size())) continue;
    // Combining makes typed expressions: `and` of floats must not be tried.
    if (auto found = MatchReducer(reducer, stores)) return found;
  }
  return std::nullopt;
}

bool IsExactInAnyOrder(const Reduction& reduction) {
  std::string_view name = reduction.reducer->name;
  if (name == "min" || name == "max" || name == "argmin" || name == "argmax") return true;
  for (const auto& store : reduction.stores) {
    if (store->buffer->dtype.IsFloat()) return false;
  }
  return true;
}

}  // namespace tenon

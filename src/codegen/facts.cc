#include "codegen/facts.h"

#include <cstdlib>
#include <limits>
#include <numeric>

namespace tenon::codegen {

namespace {

// |v|, with 1 ("nothing known") where it has none.
int64_t Magnitude(int64_t v) { return v == std::numeric_limits<int64_t>::min() ? 1 : std::abs(v); }

int64_t Product(int64_t a, int64_t b) {
  int64_t r = 0;
  if (!__builtin_mul_overflow(a, b, &r)) return r;
  return a == 0 || b == 0 ? 0 : std::max(a, b);
}

}  // namespace

IndexFact IndexFacts::OfBinary(const Binary& b) const {
  if (!b.dtype.IsIndex()) return {};
  const IndexFact l = Of(b.lhs), r = Of(b.rhs);
  const bool both = l.nonnegative && r.nonnegative;
  switch (b.op) {
    case BinaryOp::kAdd: return {both, std::gcd(l.multiple, r.multiple)};
    case BinaryOp::kSub: return {false, std::gcd(l.multiple, r.multiple)};
    case BinaryOp::kMul: return {both, Product(l.multiple, r.multiple)};
    case BinaryOp::kDiv: {
      auto d = AsInt(b.rhs);
      const bool exact = d && *d > 0 && l.multiple % *d == 0;
      return {both, exact ? l.multiple / *d : 1};
    }
    case BinaryOp::kMod: return {r.nonnegative, std::gcd(l.multiple, r.multiple)};
    case BinaryOp::kMin: return {both, std::gcd(l.multiple, r.multiple)};
    case BinaryOp::kMax: return {l.nonnegative || r.nonnegative, std::gcd(l.multiple, r.multiple)};
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kShl:
    case BinaryOp::kShr: return {};
  }
  return {};
}

IndexFact IndexFacts::Of(const Expr& e) const {
  if (const auto* c = As<IntConst>(e)) return {c->value >= 0, Magnitude(c->value)};
  if (const auto* v = As<VarNode>(e)) {
    auto it = vars_.find(v);
    return it == vars_.end() ? IndexFact{} : it->second;
  }
  if (const auto* b = As<Binary>(e)) return OfBinary(*b);
  if (const auto* b = As<Broadcast>(e)) return Of(b->value);
  if (const auto* r = As<Ramp>(e)) {
    const IndexFact base = Of(r->base), stride = Of(r->stride);
    return {base.nonnegative && stride.nonnegative && r->dtype.IsIndex(),
            std::gcd(base.multiple, stride.multiple)};
  }
  if (const auto* s = As<Select>(e)) {
    const IndexFact t = Of(s->on_true), f = Of(s->on_false);
    return {t.nonnegative && f.nonnegative, std::gcd(t.multiple, f.multiple)};
  }
  if (const auto* c = As<Call>(e)) {
    const bool team = c->intrinsic == Intrinsic::kTeamRank || c->intrinsic == Intrinsic::kTeamSize;
    return {team, 1};
  }
  return {};
}

}  // namespace tenon::codegen

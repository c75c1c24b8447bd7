// A product (or sum) in a pattern is a set of factors, and one in a graph a tree of mul and div, in
// any shape. Matching therefore keeps a list of goals, "these values multiply to what these parts
// say", and takes one at a time: a goal with one part is matched at its root; a goal with several
// is split at the node that computes it, every way in which its operands can share the parts
// (constants first, which can only be a number). Each way is tried and forgotten if the rest fails,
// so what is bound is a stack that is cut back. Gelu, for one, is
//
//   Product({Any(x), Number(0.5), Sum({Number(1), Erf(Product({Any(x), Number(0.7071)}))})})
//
// and finds itself in
//
//   %5: f32[n, 4] = div(%0, %2)        %2 is 1.4142: a product with its inverse
//   %6: f32[n, 4] = erf(%5)
//   %7: f32[n, 4] = add(%6, %3)
//   %8: f32[n, 4] = mul(%0, %7)
//   %9: f32[n, 4] = mul(%8, %4)        the factors in another order: x, the sum, a half
//
// which raise_gelu turns into %2 = gelu(%0).

#include "graph/pass/pattern.h"

#include <cmath>

namespace tenon::graph {

enum class PatternKind : uint8_t {
  kAny,
  kAs,
  kAnyNumber,
  kNumber,
  kOp,
  kProduct,
  kSum,
  kInverse,
  kOneOf
};

struct PatternNode {
  PatternKind kind;
  int slot = 0;
  double number = 0;
  OpKind op{};
  std::vector<Pattern> parts;
};

static Pattern Make(PatternNode p) { return std::make_shared<const PatternNode>(std::move(p)); }

Pattern Any(int slot) { return Make({.kind = PatternKind::kAny, .slot = slot}); }
Pattern As(int slot, Pattern p) {
  return Make({.kind = PatternKind::kAs, .slot = slot, .parts = {std::move(p)}});
}
Pattern AnyNumber(int slot) { return Make({.kind = PatternKind::kAnyNumber, .slot = slot}); }
Pattern Number(double number) { return Make({.kind = PatternKind::kNumber, .number = number}); }
Pattern Op(OpKind op, std::vector<Pattern> operands) {
  return Make({.kind = PatternKind::kOp, .op = op, .parts = std::move(operands)});
}
Pattern Product(std::vector<Pattern> factors) {
  return Make({.kind = PatternKind::kProduct, .parts = std::move(factors)});
}
Pattern Sum(std::vector<Pattern> terms) {
  return Make({.kind = PatternKind::kSum, .parts = std::move(terms)});
}
Pattern Inverse(Pattern p) {
  return Make({.kind = PatternKind::kInverse, .parts = {std::move(p)}});
}
Pattern OneOf(std::vector<Pattern> alternatives) {
  return Make({.kind = PatternKind::kOneOf, .parts = std::move(alternatives)});
}

bool Close(double a, double b) {
  return std::abs(a - b) <= 1e-6 * std::min(std::abs(a), std::abs(b));
}

namespace {

const Node* Producer(const Graph& g, ValueId v) {
  NodeId n = v == kNoValue ? kNoNode : g.value(v).producer;
  return n == kNoNode ? nullptr : &g.node(n);
}

std::optional<double> Apply(OpKind op, std::span<const double> x) {
  double r;
  // Only operators that exporters use to compute scales and the like.
  if (op == OpKind::kSqrt)
    r = std::sqrt(x[0]);
  else if (op == OpKind::kReciprocal)
    r = 1 / x[0];
  else if (op == OpKind::kNeg)
    r = -x[0];
  else if (op == OpKind::kReshape || op == OpKind::kExpand)
    r = x[0];
  else if (op == OpKind::kAdd)
    r = x[0] + x[1];
  else if (op == OpKind::kSub)
    r = x[0] - x[1];
  else if (op == OpKind::kMul)
    r = x[0] * x[1];
  else if (op == OpKind::kDiv)
    r = x[0] / x[1];
  else if (op == OpKind::kPow)
    r = std::pow(x[0], x[1]);
  else
    return std::nullopt;
  return static_cast<double>(static_cast<float>(r));
}

// A number, neither tiny nor huge, as an element of a float type.
double RoundTo(DType type, double x) {
  if (type.bits == 64 || x == 0 || !std::isfinite(x)) return x;
  const int digits = type.bits == 32 ? 24 : type == DType::BFloat16() ? 8 : 11;
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, digits)), exponent - digits);
}

std::optional<double> ScalarOf(const Graph& g, ValueId v, int depth) {
  const Value& value = g.value(v);
  if (!value.type.IsTensor()) return std::nullopt;
  const TensorType& type = value.type.tensor();
  for (const Expr& d : type.dims) {
    if (!IsOne(d)) return std::nullopt;
  }
  if (value.IsConstant()) {
    std::optional<std::vector<double>> x = ReadFloats(value, 1);
    return x && x->size() == 1 ? std::optional(x->front()) : std::nullopt;
  }
  const Node* n = Producer(g, v);
  if (!n || depth == 0 || n->inputs.empty() || n->inputs.size() > 2) return std::nullopt;
  if (n->op == OpKind::kCast) {
    if (!type.dtype.IsFloat()) return std::nullopt;
    std::optional<std::vector<int64_t>> x = ReadInts(g.value(n->inputs[0]), 1);
    if (x && x->size() == 1) return static_cast<double>(x->front());
    const std::optional<double> of = ScalarOf(g, n->inputs[0], depth - 1);
    return of ? std::optional(RoundTo(type.dtype, *of)) : of;
  }
  std::vector<double> operands;
  for (ValueId in : n->inputs) {
    std::optional<double> x = in == kNoValue ? std::nullopt : ScalarOf(g, in, depth - 1);
    if (!x) return std::nullopt;
    operands.push_back(*x);
  }
  return Apply(n->op, operands);
}

// How a number stands in the operation that reads it: x / 2 is a product with 1/2, x - 3 a sum with
// -3.
enum class Flip : uint8_t { kNone, kReciprocal, kNegative };

// Proves a list of goals with backtracking. Recursion only where there is a choice, so no deeper
// than the pattern is large.
class Matcher {
 public:
  explicit Matcher(const Graph& g) : g_(g) {}

  struct Goal {
    Pattern pattern;
    ValueId value;
    Flip flip = Flip::kNone;
  };

  bool Solve(std::vector<Goal> goals) {
    while (!goals.empty()) {
      const Goal goal = std::move(goals.back());
      goals.pop_back();
      const PatternNode& p = *goal.pattern;
      if (goal.value == kNoValue) return false;
      if (goal.flip != Flip::kNone && p.kind != PatternKind::kNumber &&
          p.kind != PatternKind::kAnyNumber)
        return false;
      switch (p.kind) {
        case PatternKind::kAny:
          if (!Bind(p.slot, goal.value)) return false;
          break;
        case PatternKind::kAs:
          if (!Bind(p.slot, goal.value)) return false;
          goals.push_back({p.parts[0], goal.value});
          break;
        case PatternKind::kAnyNumber:
        case PatternKind::kNumber:
          if (!FitsNumber(p, goal)) return false;
          break;
        case PatternKind::kOp:
          if (!Unfold(p, goal.value, &goals)) return false;
          break;
        case PatternKind::kProduct:
          return SolveParts(p, goal.value, OpKind::kMul, OpKind::kDiv, goals);
        case PatternKind::kSum: return SolveParts(p, goal.value, OpKind::kAdd, OpKind::kSub, goals);
        case PatternKind::kInverse:
          if (!UnfoldInverse(p.parts[0], goal.value, &goals)) return false;
          break;
        case PatternKind::kOneOf: return SolveOne(p, goal.value, goals);
      }
    }
    return true;
  }

  Match match;

 private:
  bool Bind(int slot, ValueId v) { return match.values.emplace(slot, v).first->second == v; }

  bool FitsNumber(const PatternNode& p, const Goal& goal) {
    std::optional<double> x = ScalarOf(g_, goal.value, 8);
    if (!x) return false;
    if (goal.flip == Flip::kReciprocal) x = 1 / *x;
    if (goal.flip == Flip::kNegative) x = -*x;
    if (p.kind == PatternKind::kNumber) return Close(*x, p.number);
    return match.numbers.emplace(p.slot, *x).first->second == *x;
  }

  bool Unfold(const PatternNode& p, ValueId v, std::vector<Goal>* goals) {
    const Node* n = Producer(g_, v);
    if (!n || n->op != p.op || n->inputs.size() != p.parts.size()) return false;
    for (size_t i = 0; i < p.parts.size(); ++i) goals->push_back({p.parts[i], n->inputs[i]});
    return true;
  }

  bool UnfoldInverse(const Pattern& inner, ValueId v, std::vector<Goal>* goals) {
    const Node* n = Producer(g_, v);
    if (!n) return false;
    if (n->op == OpKind::kReciprocal) {
      goals->push_back({inner, n->inputs[0]});
      return true;
    }
    if (n->op == OpKind::kDiv && ScalarOf(g_, n->inputs[0], 8) == 1.0) {
      goals->push_back({inner, n->inputs[1]});
      return true;
    }
    if (n->op != OpKind::kPow || inner->kind != PatternKind::kOp || inner->op != OpKind::kSqrt)
      return false;
    if (ScalarOf(g_, n->inputs[1], 8) != -0.5) return false;
    goals->push_back({inner->parts[0], n->inputs[0]});
    return true;
  }

  // One way to go on; what it bound is forgotten if it fails.
  bool Try(std::vector<Goal> goals) {
    Match before = match;
    if (Solve(std::move(goals))) return true;
    match = std::move(before);
    return false;
  }

  bool SolveOne(const PatternNode& p, ValueId v, const std::vector<Goal>& rest) {
    for (const Pattern& alternative : p.parts) {
      std::vector<Goal> goals = rest;
      goals.push_back({alternative, v});
      if (Try(std::move(goals))) return true;
    }
    return false;
  }

  static Pattern Part(const PatternNode& p, std::vector<Pattern> parts) {
    return parts.size() == 1 ? parts[0] : Make({.kind = p.kind, .parts = std::move(parts)});
  }

  // A node of `op` splits the parts between its operands; one of `inverse` takes one part away.
  bool SolveParts(const PatternNode& p, ValueId v, OpKind op, OpKind inverse,
                  const std::vector<Goal>& rest) {
    const Node* n = Producer(g_, v);
    if (!n || (n->op != op && n->op != inverse)) return false;
    const uint32_t all = (1u << p.parts.size()) - 1;
    for (uint32_t left = 1; left < all; ++left) {
      std::vector<Pattern> halves[2];
      for (size_t i = 0; i < p.parts.size(); ++i)
        halves[(left >> i & 1) != 0 ? 0 : 1].push_back(p.parts[i]);
      Goal second{Part(p, halves[1]), n->inputs[1]};
      if (n->op == inverse) {
        if (halves[1].size() != 1) continue;
        if (op == OpKind::kMul && second.pattern->kind == PatternKind::kInverse) {
          second.pattern = second.pattern->parts[0];
        } else {
          second.flip = op == OpKind::kMul ? Flip::kReciprocal : Flip::kNegative;
        }
      }
      std::vector<Goal> goals = rest;
      goals.push_back({Part(p, halves[0]), n->inputs[0]});
      goals.push_back(std::move(second));
      if (Try(std::move(goals))) return true;
    }
    return false;
  }

  const Graph& g_;
};

}  // namespace

std::optional<double> ScalarOf(const Graph& g, ValueId v) { return ScalarOf(g, v, 8); }

std::optional<Match> FindMatch(const Graph& g, ValueId v, const Pattern& p) {
  Matcher matcher(g);
  if (!matcher.Solve({{p, v}})) return std::nullopt;
  return std::move(matcher.match);
}

}  // namespace tenon::graph

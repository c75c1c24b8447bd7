// Every rewrite rule, checked by evaluating both sides on all combinations of a few telling values,
// in every type that it claims to hold in.
#include "arith/rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "arith/analyzer_impl.h"

namespace tenon {
namespace {

// The value of an expression of constants, by folding alone (no rules); null where folding gives
// up.
Expr Fold(const Expr& e) {
  if (const auto* n = As<Unary>(e)) {
    Expr v = Fold(n->value);
    return v ? FoldUnary(n->op, v) : v;
  }
  if (const auto* n = As<Binary>(e)) {
    Expr a = Fold(n->lhs), b = Fold(n->rhs);
    return a && b ? FoldBinary(n->op, a, b) : nullptr;
  }
  if (const auto* n = As<Select>(e)) {
    Expr c = Fold(n->condition);
    return c ? Fold(*AsInt(c) ? n->on_true : n->on_false) : c;
  }
  return e;
}

bool SameBits(const Expr& a, const Expr& b) {
  if (a->dtype != b->dtype) return false;
  const auto *x = As<FloatConst>(a), *y = As<FloatConst>(b);
  if (!x || !y) return AsInt(a) == AsInt(b);
  if (std::isnan(x->value) || std::isnan(y->value))
    return std::isnan(x->value) && std::isnan(y->value);
  return x->value == y->value && std::signbit(x->value) == std::signbit(y->value);
}

std::vector<Expr> ValuesOf(DType type) {
  std::vector<Expr> out;
  if (type.IsFloat()) {
    double inf = std::numeric_limits<double>::infinity();
    for (double v : {-inf, -1.5, -0.0, 0.0, 3.0, 1e38, inf, std::nan("")})
      out.push_back(FloatConst::Make(type, v));
  } else if (type.IsBool()) {
    out = {BoolConst(false), BoolConst(true)};
  } else {
    for (int64_t v : {-128, -7, -1, 0, 1, 2, 5, 127}) out.push_back(IntConst::Make(type, v));
  }
  return out;
}

std::vector<DType> TypesOf(const Rule& rule) {
  std::vector<DType> ints{DType::Int(8), DType::UInt(8), DType::Int(64), DType::Index()};
  switch (rule.type) {
    case RuleType::kInteger: return ints;
    case RuleType::kBool: return {DType::Bool()};
    case RuleType::kFloat: return {DType::Float(32)};
    case RuleType::kAny: break;
  }
  ints.push_back(DType::Float(32));
  ints.push_back(DType::Bool());
  return ints;
}

// Operators that a type does not have.
bool Applicable(const std::string& pattern, DType type) {
  bool logic =
      pattern.find("&&") != std::string::npos || pattern.find("||") != std::string::npos ||
      (pattern.find('!') != std::string::npos && pattern.find("select") == std::string::npos);
  bool bits = pattern.find("bit") != std::string::npos || pattern.find('~') != std::string::npos;
  bool arithmetic =
      pattern.find('-') != std::string::npos || pattern.find('*') != std::string::npos ||
      pattern.find('+') != std::string::npos || pattern.find("min") != std::string::npos ||
      pattern.find("max") != std::string::npos;
  if (logic) return type.IsBool();
  if (bits) return type.IsInt();
  if (arithmetic) return !type.IsBool();
  return true;
}

class RuleTest : public ::testing::TestWithParam<Rule> {};

TEST_P(RuleTest, HoldsForAllValues) {
  const Rule& rule = GetParam();
  PatternRef pattern = ParsePattern(rule.pattern), replacement = ParsePattern(rule.replacement);
  int checked = 0;
  for (DType type : TypesOf(rule)) {
    if (!Applicable(rule.pattern, type)) continue;
    std::vector<Expr> values = ValuesOf(type), bools = ValuesOf(DType::Bool());
    std::string text = std::string(rule.pattern) + rule.replacement;
    auto choices = [&](char letter) {
      bool used = text.find(letter) != std::string::npos;
      return !used ? std::vector<Expr>{values[0]} : letter == 'b' ? bools : values;
    };
    for (const Expr& x : choices('x'))
      for (const Expr& y : choices('y'))
        for (const Expr& z : choices('z'))
          for (const Expr& b : text.find('b') == 0 ? bools : choices('b'))
            for (const Expr& k : choices('k'))
              for (const Expr& l : text.find("l)") == std::string::npos &&
                                           text.find("+ l") == std::string::npos &&
                                           text.find("* l") == std::string::npos
                                       ? std::vector<Expr>{values[0]}
                                       : choices('l')) {
                Expr letters[] = {x, y, z, b->dtype.IsBool() ? b : bools[0], k, l};
                Expr want = Fold(Instantiate(*pattern, letters, type));
                if (!want) continue;
                Expr got = Fold(Instantiate(*replacement, letters, type));
                ++checked;
                ASSERT_TRUE(got && SameBits(want, got))
                    << rule.pattern << " → " << rule.replacement << " in " << type.ToString();
              }
  }
  EXPECT_GT(checked, 0) << rule.pattern;
}

// A rule that applies to what another gives may not give it back: simplification ends with a fixed
// point.
TEST_P(RuleTest, EndsInAFixedPoint) {
  const Rule& rule = GetParam();
  for (DType type : TypesOf(rule)) {
    if (!Applicable(rule.pattern, type)) continue;
    Expr constant = type.IsFloat() ? FloatConst::Make(type, 3) : IntConst::Make(type, 1);
    Expr letters[] = {VarNode::Make("x", type),
                      VarNode::Make("y", type),
                      VarNode::Make("z", type),
                      VarNode::Make("b", DType::Bool()),
                      constant,
                      constant};
    Analyzer analyzer;
    Expr once = analyzer.Simplify(Instantiate(*ParsePattern(rule.pattern), letters, type));
    Expr twice = Analyzer().Simplify(once);
    EXPECT_EQ(once.get(), twice.get()) << rule.pattern << " in " << type.ToString();
  }
}

INSTANTIATE_TEST_SUITE_P(All, RuleTest, ::testing::ValuesIn(AllRules().begin(), AllRules().end()));

}  // namespace
}  // namespace tenon

// Every family of rewrites, on all of a small range: forms with holes a, b, c, d, which take every
// constant of a range (negative ones and zero too), are simplified and compared with themselves for
// all values of x, y (index) or u, v (integers of eight bits, which wrap). Rules that are lines of
// text have rules_test.cc.
#include <gtest/gtest.h>

#include <algorithm>

#include "arith/analyzer.h"
#include "expr_fuzz.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/visit.h"

namespace tenon {
namespace {

using fuzz::Assignment;

const char kHoles[] = "abcd";

struct Form {
  const char* family;  // the file of src/arith that rewrites it
  const char* text;
};

const Form kIndexForms[] = {
    {"linear", "x * a + b - (y * c + x * d)"},
    {"linear", "(x + a) * b - (x - c) * d"},
    {"linear", "-(x * a) + (b - y) * c"},
    {"linear", "x * y * a + y * x * b + c"},
    {"div_mod", "(x * a + b) / d"},
    {"div_mod", "(x * a + b) % d"},
    {"div_mod", "(x * a + y * b + c) / d"},
    {"div_mod", "(x * a + y * b + c) % d"},
    {"div_mod", "(x / a + b) / c"},
    {"div_mod", "(x / a * b + c) % d"},
    {"div_mod", "(x % a + b) / c"},
    {"div_mod", "(x % a * b + y) % c"},
    {"div_mod", "x % (a * y) / b"},
    {"div_mod", "(x * y + a) / y"},
    {"div_mod", "(x * y + a) % y"},
    {"sums", "x / a * a + x % a"},
    {"sums", "x / a * b + x % a * c"},
    {"sums", "(x + a) / b - x / b"},
    {"sums", "min(x, a) + max(x, a)"},
    {"sums", "x * a - min(x * a, y + b)"},
    {"compare", "x * a + b < y * c"},
    {"compare", "x * a + b <= y + d"},
    {"compare", "x / a < b"},
    {"compare", "x / a >= y + b"},
    {"compare", "x % a == b"},
    {"compare", "x * a == b"},
    {"compare", "x * a != y * b + c"},
    {"compare", "min(x, a) < b"},
    {"compare", "max(x, y + a) <= x + b"},
    {"compare", "min(x * a, b) >= max(y, c)"},
    {"bounds", "min(x + a, x + b)"},
    {"bounds", "max(x * a, b)"},
    {"bounds", "min(min(x, a), y + b)"},
    {"bounds", "max(min(x, a), b)"},
    {"bounds", "min(max(x, a), max(y, b))"},
    {"logic", "x < a && x < b"},
    {"logic", "x < a || x >= b"},
    {"logic", "x == a && x >= b"},
    {"logic", "x == a && x == b"},
    {"logic", "x != a || x != b"},
    {"logic", "x == a || x != b"},
    {"logic", "x < a && x != b"},
    {"logic", "x >= a || x == b"},
    {"logic", "x - y == a && y - x < b"},
    {"logic", "x * a == b && x * c != d"},
    {"logic", "x + y < a || x + y == b"},
    {"logic", "!(x < a && y >= b)"},
    {"logic", "x != a || x <= b && y == c"},
    {"select", "select(x < a, x + b, c)"},
    {"select", "select(x == a, x, b)"},
    {"select", "select(x < a, y, y + b) * c"},
    {"select", "select(x < a, select(x < b, c, d), y)"},
};

const Form kDataForms[] = {
    {"linear", "u + a - (v - b)"},
    {"linear", "(u + a) * b"},
    {"linear", "u * a - u * b"},
    {"linear", "-(u - a) + u"},
    {"fold", "u / a"},
    {"fold", "u % a"},
    {"fold", "(u * a) / b"},
    {"fold", "(u + a) % b"},
    {"fold", "a << u"},
    {"fold", "(u << a) >> b"},
    {"fold", "bitand(u, a)"},
    {"fold", "bitxor(bitor(u, a), b)"},
    {"compare", "u + a < b"},
    {"compare", "u + a <= v + a"},
    {"compare", "u * a == b"},
    {"compare", "u - v >= a"},
    {"compare", "min(u, a) == max(u, b)"},
    {"bounds", "max(min(u, a), b)"},
    {"bounds", "min(u + a, u + b)"},
    {"logic", "u < a && u < b"},
    {"logic", "u >= a || u == b"},
    {"logic", "u == a && u == b"},
    {"logic", "u == a && u != b && u > a"},
    {"logic", "u + a < b && u + a == b"},
    {"logic", "a < u || u != b"},
    {"select", "select(u < v, u, v) + a"},
    {"select", "select(u == a, a, u)"},
};

size_t HolesIn(const std::string& text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool word =
        (i > 0 && std::isalpha(static_cast<unsigned char>(text[i - 1]))) ||
        (i + 1 < text.size() && std::isalpha(static_cast<unsigned char>(text[i + 1])));
    if (!word && text[i] >= 'a' && text[i] <= 'd') {
      count = std::max<size_t>(count, static_cast<size_t>(text[i] - 'a') + 1);
    }
  }
  return count;
}

Expr Parsed(const std::string& text, const std::vector<NodeRef>& scope) {
  Expected<Expr> e = ParseExpr(text, scope);
  EXPECT_TRUE(e) << text << (e ? "" : ToString(e.errors()));
  return e ? *e : nullptr;
}

// Calls `use` with the form for every choice of its holes among `constants`.
template <class F>
void ForEachChoice(const Form& form, DType type, const std::vector<int64_t>& constants,
                   const std::vector<Var>& vars, F&& use) {
  std::vector<Var> holes;
  std::vector<NodeRef> scope(vars.begin(), vars.end());
  for (size_t i = 0; i < HolesIn(form.text); ++i) {
    holes.push_back(VarNode::Make(std::string(1, kHoles[i]), type));
    scope.push_back(holes.back());
  }
  const Expr open = Parsed(form.text, scope);
  if (!open) return;
  std::vector<size_t> at(holes.size(), 0);
  while (true) {
    VarMap values;
    for (size_t i = 0; i < at.size(); ++i) {
      values[holes[i].get()] = IntConst::Make(type, constants[at[i]]);
    }
    use(Substitute(open, values));
    size_t i = at.size();
    while (i > 0 && ++at[i - 1] == constants.size()) at[--i] = 0;
    if (i == 0) return;
  }
}

class IndexForms : public ::testing::TestWithParam<Form> {};

// With what is known of x and y, and without.
TEST_P(IndexForms, KeepTheirValues) {
  const Form& form = GetParam();
  const Var x = VarNode::Make("x"), y = VarNode::Make("y");
  Analyzer nothing, ranges;
  ranges.Bind(x, IndexConst(-5), IndexConst(11));
  ranges.Bind(y, IndexConst(0), IndexConst(4));
  std::vector<Assignment> all;
  for (int64_t xv = -5; xv <= 5; ++xv) {
    for (int64_t yv = 0; yv < 4; ++yv) all.push_back({{x.get(), xv}, {y.get(), yv}});
  }
  const bool many = HolesIn(form.text) > 3;
  const std::vector<int64_t> constants = many ? std::vector<int64_t>{-3, -1, 0, 2, 4}
                                              : std::vector<int64_t>{-4, -3, -2, -1, 0, 1, 2, 3, 4};
  size_t checked = 0;
  ForEachChoice(form, DType::Index(), constants, {x, y}, [&](const Expr& e) {
    if (::testing::Test::HasFailure()) return;
    for (Analyzer* analyzer : {&nothing, &ranges}) {
      const Expr simple = analyzer->Simplify(e);
      for (const Assignment& env : all) {
        const auto want = fuzz::Evaluate(e, env);
        if (!want) continue;
        ++checked;
        const auto got = fuzz::Evaluate(simple, env);
        ASSERT_EQ(got, want) << ToString(e) << "\n  became " << ToString(simple)
                             << "\n  at x = " << env.at(x.get()) << ", y = " << env.at(y.get());
      }
    }
  });
  EXPECT_GT(checked, 100U);
}

// Integers of eight bits, by what docs/loop-ir.md says of data.
int64_t Wrapped(DType type, int64_t value) {
  return type.IsSigned() ? static_cast<int8_t>(value) : static_cast<uint8_t>(value);
}

int64_t Value(const Expr& e, const Assignment& env);

int64_t BinaryValue(const Binary& n, const Assignment& env) {
  const DType type = n.lhs->dtype;
  const int64_t a = Value(n.lhs, env), b = Value(n.rhs, env);
  const bool shifted = static_cast<uint64_t>(b) < 8;
  switch (n.op) {
    case BinaryOp::kAdd: return Wrapped(type, a + b);
    case BinaryOp::kSub: return Wrapped(type, a - b);
    case BinaryOp::kMul: return Wrapped(type, a * b);
    case BinaryOp::kDiv: return b == 0 ? 0 : Wrapped(type, a / b);
    case BinaryOp::kMod: return b == 0 ? 0 : Wrapped(type, a % b);
    case BinaryOp::kShl: return shifted ? Wrapped(type, a * (int64_t{1} << b)) : 0;
    case BinaryOp::kShr: return a >> (shifted ? b : 8);
    case BinaryOp::kBitAnd: return a & b;
    case BinaryOp::kBitOr: return a | b;
    case BinaryOp::kBitXor: return a ^ b;
    case BinaryOp::kMin: return std::min(a, b);
    case BinaryOp::kMax: return std::max(a, b);
    case BinaryOp::kEq: return a == b;
    case BinaryOp::kNe: return a != b;
    case BinaryOp::kLt: return a < b;
    case BinaryOp::kLe: return a <= b;
    case BinaryOp::kGt: return a > b;
    case BinaryOp::kGe: return a >= b;
    case BinaryOp::kAnd: return a && b;
    case BinaryOp::kOr: return a || b;
  }
  return 0;
}

int64_t Value(const Expr& e, const Assignment& env) {
  if (const auto* n = As<IntConst>(e)) return n->value;
  if (const auto* n = As<VarNode>(e)) return env.at(n);
  if (const auto* n = As<Select>(e)) {
    return Value(Value(n->condition, env) ? n->on_true : n->on_false, env);
  }
  if (const auto* n = As<Unary>(e)) {
    const int64_t v = Value(n->value, env);
    if (n->op == UnaryOp::kNot) return v == 0;
    return Wrapped(e->dtype, n->op == UnaryOp::kNeg ? -v : ~v);
  }
  return BinaryValue(*As<Binary>(e), env);
}

class DataForms : public ::testing::TestWithParam<Form> {};

TEST_P(DataForms, WrapAsBefore) {
  const Form& form = GetParam();
  for (const DType type : {DType::Int(8), DType::UInt(8)}) {
    const Var u = VarNode::Make("u", type), v = VarNode::Make("v", type);
    const bool two = std::string(form.text).find('v') != std::string::npos;
    std::vector<int64_t> constants = {-128, -127, -3, -1, 0, 1, 2, 3, 7, 8, 100, 127};
    if (!type.IsSigned()) constants = {0, 1, 2, 3, 7, 8, 100, 127, 128, 254, 255};
    const int64_t lowest = type.IsSigned() ? -128 : 0;
    Analyzer analyzer;
    ForEachChoice(form, type, constants, {u, v}, [&](const Expr& e) {
      if (::testing::Test::HasFailure()) return;
      const Expr simple = analyzer.Simplify(e);
      for (int64_t uv = lowest; uv < lowest + 256; ++uv) {
        for (const int64_t vv : two ? constants : std::vector<int64_t>{0}) {
          const Assignment env = {{u.get(), uv}, {v.get(), vv}};
          ASSERT_EQ(Value(simple, env), Value(e, env))
              << type.ToString() << ": " << ToString(e) << "\n  became " << ToString(simple)
              << "\n  at u = " << uv << ", v = " << vv;
        }
      }
    });
  }
}

std::string NameOf(const ::testing::TestParamInfo<Form>& info) {
  return std::string(info.param.family) + std::to_string(info.index);
}
INSTANTIATE_TEST_SUITE_P(All, IndexForms, ::testing::ValuesIn(kIndexForms), NameOf);
INSTANTIATE_TEST_SUITE_P(All, DataForms, ::testing::ValuesIn(kDataForms), NameOf);

}  // namespace
}  // namespace tenon

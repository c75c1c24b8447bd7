// Simplification of index expressions, case by case.
#include <gtest/gtest.h>

#include "arith/analyzer.h"
#include "ir/buffer.h"

namespace tenon {
namespace {

class SimplifyTest : public ::testing::Test {
 protected:
  void ExpectSimplifies(const Expr& from, const Expr& to) {
    Expr got = analyzer.Simplify(from);
    std::string path;
    EXPECT_TRUE(StructuralEqual(got, to, &path)) << "differs at " << path;
    EXPECT_EQ(analyzer.Simplify(got).get(), got.get()) << "not idempotent";
  }
  static Expr C(int64_t v) { return IndexConst(v); }

  Var i = VarNode::Make("i"), j = VarNode::Make("j"), io = VarNode::Make("io"),
      ii = VarNode::Make("ii"), m = VarNode::Make("m"), a = VarNode::Make("a"),
      b = VarNode::Make("b");
  Analyzer analyzer;
};

TEST_F(SimplifyTest, SumsOfProducts) {
  ExpectSimplifies(i + j - i, j);
  ExpectSimplifies((i + 1) * 4 - 4, Expr(i) * 4);
  ExpectSimplifies(Expr(i) * 3 + Expr(i) * 5, Expr(i) * 8);
  ExpectSimplifies((Expr(i) + j) * (Expr(i) - j) + Expr(j) * j, Expr(i) * i);
  ExpectSimplifies(C(0) - i - j + 4, C(4) - i - j);
}

TEST_F(SimplifyTest, LargestOfManyNamesEachOnce) {
  Expr chain = C(0), once = nullptr;
  for (int round = 0; round < 50; ++round) {
    for (const Var& v : {i, j, io, ii, m, a, b}) chain = Max(chain, v);
    chain = Max(chain, Expr(i) / 2 + 1);
    chain = Max(chain, Expr(j) / 2 + 1);
    Expr got = analyzer.Simplify(chain);
    if (!once) once = got;
    EXPECT_TRUE(StructuralEqual(got, once));
    EXPECT_EQ(analyzer.Simplify(got).get(), got.get()) << "not idempotent";
  }
}

TEST_F(SimplifyTest, DivModOfSplitLoops) {
  analyzer.Bind(ii, C(0), C(4));
  ExpectSimplifies((Expr(io) * 4 + ii) / 4, io);
  ExpectSimplifies((Expr(io) * 4 + ii) % 4, ii);
  ExpectSimplifies((Expr(io) * 4 + ii) / 8, Expr(io) / 2);
  ExpectSimplifies((Expr(io) * 4 + ii) % 8, Expr(io) % 2 * 4 + ii);
  ExpectSimplifies((Expr(a) * 16 + b) / 4, Expr(a) * 4 + Expr(b) / 4);
  ExpectSimplifies(Expr(a) / 4 / 8, Expr(a) / 32);
  ExpectSimplifies(Expr(a) % 32 / 4, Expr(a) / 4 % 8);
  ExpectSimplifies(Expr(a) % 32 % 8, Expr(a) % 8);
}

TEST_F(SimplifyTest, Recombination) {
  ExpectSimplifies(Expr(a) / 4 * 4 + Expr(a) % 4, a);
  ExpectSimplifies(Expr(a) / 4 % 8 * 4 + Expr(a) % 4, Expr(a) % 32);
  ExpectSimplifies(Expr(a) - Expr(a) / 4 * 4, Expr(a) % 4);
}

// What was reduced by each of the sizes apart, from places of which a part is larger than they are.
TEST_F(SimplifyTest, RecombinationOfReducedDigits) {
  const Expr place = Expr(a) * 4096 + Expr(i) * 64 + ii;
  ExpectSimplifies(place / 65 % 17 * 65 + place % 65, Simplify(place % (17 * 65)));
  ExpectSimplifies(place / (17 * 65) * (17 * 65) + place / 65 % 17 * 65 + place % 65,
                   Simplify(place));
  ExpectSimplifies((Expr(a) / 4 + j) % 8 * 4 + Expr(a) % 4, Simplify((Expr(a) + Expr(j) * 4) % 32));
}

TEST_F(SimplifyTest, SymbolicDivisor) {
  analyzer.Bind(i, C(0), m);
  ExpectSimplifies((Expr(j) * m + i) / m, j);
  ExpectSimplifies((Expr(j) * m + i) % m, i);
  ExpectSimplifies(Lt(i, m), BoolConst(true));
  ExpectSimplifies(Min(i, m - 1), i);
}

// The place of an element of several axes, put together again from what it was taken apart to.
TEST_F(SimplifyTest, RecombinationOfSeveralAxes) {
  const Expr digits = Expr(j) / m % 3;
  ExpectSimplifies(Expr(j) / m * m + Expr(j) % m, j);
  analyzer.BindInterval(m, {1, 100});
  ExpectSimplifies(Expr(j) / m / 3 * (Expr(m) * 3) + digits * m + Expr(j) % m, j);
  ExpectSimplifies((Expr(j) / m / 3 * (Expr(m) * 3) + digits * m + Expr(j) % m) * 5 + i,
                   Expr(j) * 5 + i);
}

// Nested divisions are one, where the divisors are known to be positive.
TEST_F(SimplifyTest, NestedSymbolicDivisors) {
  ExpectSimplifies(Expr(j) / 8 / m, Expr(j) / 8 / m);
  analyzer.BindInterval(m, {1, 100});
  ExpectSimplifies(Expr(j) / 8 / m, Expr(j) / (Expr(m) * 8));
  ExpectSimplifies(Expr(j) / m / 8, Expr(j) / (Expr(m) * 8));
}

TEST_F(SimplifyTest, Comparisons) {
  analyzer.Bind(i, C(0), C(16));
  ExpectSimplifies(Lt(Expr(i) * 4, C(64)), BoolConst(true));
  ExpectSimplifies(Ge(i, C(16)), BoolConst(false));
  ExpectSimplifies(Lt(Expr(j) * 4, C(15)), Lt(j, C(4)));
  ExpectSimplifies(Ge(j, C(0)), Le(C(0), j));
  ExpectSimplifies(Lt(Expr(j) / 4, C(3)), Lt(j, C(12)));
  ExpectSimplifies(Eq(Expr(j) * 4, C(3)), BoolConst(false));
  ExpectSimplifies(And(Lt(j, C(3)), Lt(j, C(5))), Lt(j, C(3)));
  ExpectSimplifies(And(Lt(j, C(3)), Ge(j, C(5))), BoolConst(false));
}

// What one comparison of a sum says decides another of it, also where one of them is an equality.
TEST_F(SimplifyTest, ComparisonsOfOneSum) {
  ExpectSimplifies(And(Eq(j, C(1)), Eq(j, C(4))), BoolConst(false));
  ExpectSimplifies(Or(Ne(j, C(1)), Ne(j, C(4))), BoolConst(true));
  ExpectSimplifies(And(Eq(j, C(1)), Lt(j, C(3))), Eq(j, C(1)));
  ExpectSimplifies(And(Lt(j, C(3)), Ne(j, C(5))), Lt(j, C(3)));
  ExpectSimplifies(Or(Ge(j, C(3)), Eq(j, C(5))), Le(C(3), j));
  ExpectSimplifies(And(Eq(Expr(i) - j, C(2)), Lt(i, j)), BoolConst(false));
  ExpectSimplifies(And(Eq(j, C(1)), Eq(i, C(4))), And(Eq(j, C(1)), Eq(i, C(4))));
  Var x = VarNode::Make("x", DType::Int(32));
  auto n = [](int64_t v) { return IntConst::Make(DType::Int(32), v); };
  ExpectSimplifies(And(Eq(x, n(1)), Eq(x, n(4))), BoolConst(false));
  ExpectSimplifies(And(Gt(x, n(1)), Ne(x, n(1))), Gt(x, n(1)));
}

TEST_F(SimplifyTest, Ramps) {
  auto ramp = [](Expr base, int64_t stride, int lanes) {
    return Ramp::Make(base, IndexConst(stride), lanes);
  };
  ExpectSimplifies(ramp(Expr(b) * 16, 1, 16) / 16, Broadcast::Make(b, 16));
  ExpectSimplifies(ramp(Expr(b) * 16, 1, 16) % 16, ramp(C(0), 1, 16));
  ExpectSimplifies(ramp(Expr(b) * 8, 1, 8) / 16, Broadcast::Make(Expr(b) / 2, 8));
  ExpectSimplifies(ramp(Expr(b) * 8, 1, 8) % 16, ramp(Expr(b) % 2 * 8, 1, 8));
  ExpectSimplifies(ramp(b, 1, 8) + Broadcast::Make(a, 8), ramp(Expr(a) + b, 1, 8));
  ExpectSimplifies(Broadcast::Make(a, 8) * ramp(b, 1, 8), Ramp::Make(Expr(a) * b, a, 8));
}

// A negative number cast to u64 is a huge one: ranges of its bits do not order it.
TEST_F(SimplifyTest, UnsignedWideOrder) {
  Var x = VarNode::Make("x", DType::Int(32));
  analyzer.BindInterval(x, {-5, -1});
  Expr wide = CastExpr::Make(DType::UInt(64), x), ten = IntConst::Make(DType::UInt(64), 10);
  ExpectSimplifies(Lt(wide, ten), Lt(wide, ten));
  ExpectSimplifies(Min(ten, wide), analyzer.Simplify(Min(ten, wide)));
  EXPECT_FALSE(AsInt(analyzer.Simplify(Min(ten, wide))));
  analyzer.BindInterval(x, {0, 9});
  ExpectSimplifies(Lt(wide, ten), BoolConst(true));
}

TEST_F(SimplifyTest, DataIntegersWrap) {
  Var x = VarNode::Make("x", DType::Int(8));
  Expr c100 = IntConst::Make(DType::Int(8), 100);
  // x + 100 > x does not hold for x = 100.
  ExpectSimplifies(Gt(x + c100, x), Gt(x + c100, x));
  ExpectSimplifies((x + c100) + c100, x + IntConst::Make(DType::Int(8), -56));
  ExpectSimplifies(IntConst::Make(DType::Int(8), -7) / IntConst::Make(DType::Int(8), 2),
                   IntConst::Make(DType::Int(8), -3));
}

}  // namespace
}  // namespace tenon

#include "arith/expr_ids.h"

#include <gtest/gtest.h>

#include "arith/analyzer.h"
#include "arith/linear.h"

namespace tenon {
namespace {

Var Index(const char* name) { return VarNode::Make(name, DType::Index()); }

TEST(ExprIds, EqualProductsAreOneNode) {
  ExprIds ids;
  const Expr n = Index("n"), m = Index("m"), k = Index("k");
  const Expr nm = ids.Product(m, n);
  EXPECT_EQ(ids.Product(m, n), nm);
  EXPECT_EQ(ids.Product(nm, k), ids.Product(nm, k));
  EXPECT_EQ(ids.Of(Binary::Make(BinaryOp::kMul, m, n)), ids.Of(nm));
  EXPECT_EQ(ProductOf(ids, {n, k, m}), ProductOf(ids, {m, n, k}));
  EXPECT_NE(ProductOf(ids, {n, n}), ProductOf(ids, {n, m}));
  const std::vector<Expr> factors = {m, n, k};
  EXPECT_EQ(ids.FactorsOf(ids.Product(nm, k)), factors);
  EXPECT_EQ(ids.FactorsOf(n), std::vector<Expr>{n});
}

TEST(ExprIds, ProductThatWasThereIsTaken) {
  ExprIds ids;
  const Expr n = Index("n"), m = Index("m");
  const Expr first = Binary::Make(BinaryOp::kMul, m, n);
  ids.Of(first);
  EXPECT_EQ(ids.Product(m, n), first);
  ids.Clear();
  EXPECT_EQ(ids.size(), 0u);
  EXPECT_NE(ids.Product(m, n), first);
}

// What a proof found of an expression, with the little that it may try, is not the last word on an
// equal one; and a sum that has left its analyzer means the same in another.
TEST(ExprIds, EqualExpressionsHaveEqualAnswers) {
  Analyzer analyzer;
  const Var n = Index("n"), i = Index("i");
  analyzer.Bind(n, IndexConst(1), IndexConst(100));
  analyzer.Bind(i, IndexConst(0), n);
  const auto quotient = [&] { return Binary::Make(BinaryOp::kDiv, i, n); };
  EXPECT_TRUE(IsZero(analyzer.Simplify(quotient())));
  EXPECT_TRUE(IsZero(analyzer.Simplify(quotient())));
  const Expr open = Binary::Make(BinaryOp::kDiv, Expr(n), Expr(i) + 1);
  EXPECT_EQ(analyzer.Simplify(open), open);
  const Expr again = Binary::Make(BinaryOp::kDiv, Expr(n), Expr(i) + 1);
  EXPECT_EQ(analyzer.Simplify(again), again);  // itself: nothing is shorter
  const Linear sum = SumOf(Expr(n) * Expr(i) + Expr(i));
  ExprIds other;
  other.Of(Expr(i) + 5);
  const auto none = AddScaled(other, sum, SumOf(Expr(i) * Expr(n) + Expr(i)), -1);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->IsConstant());
}

}  // namespace
}  // namespace tenon

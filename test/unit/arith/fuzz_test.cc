// Random expressions: simplification keeps values, is idempotent, and bounds are true bounds.
// TENON_FUZZ_CASES sets how many expressions each test tries.
#include <gtest/gtest.h>

#include <cstdlib>

#include "arith/analyzer.h"
#include "expr_fuzz.h"
#include "ir/print.h"

namespace tenon {
namespace {

using fuzz::Assignment;
using fuzz::Evaluate;
using fuzz::Generator;

int Cases() {
  const char* text = std::getenv("TENON_FUZZ_CASES");
  return text ? std::atoi(text) : 3000;
}

// i in [0, m), j in [-3, 5), m in [1, 5), w a multiple of 4 in [-8, 8], u = 4 j + 1.
class FuzzTest : public ::testing::Test {
 protected:
  FuzzTest() {
    analyzer.Bind(m, IndexConst(1), IndexConst(4));
    analyzer.Bind(i, IndexConst(0), m);
    analyzer.Bind(j, IndexConst(-3), IndexConst(8));
    analyzer.BindInterval(w, {-8, 8});
    analyzer.BindModular(w, {4, 0});
    for (int64_t mv = 1; mv < 5; ++mv)
      for (int64_t iv = 0; iv < mv; ++iv)
        for (int64_t jv = -3; jv < 5; ++jv)
          for (int64_t wv = -8; wv <= 8; wv += 4)
            all.push_back({{m.get(), mv}, {i.get(), iv}, {j.get(), jv}, {w.get(), wv}});
  }

  std::string Text(const Assignment& env) {
    std::string out;
    for (const auto& [v, x] : env) out += v->name + "=" + std::to_string(x) + " ";
    return out;
  }

  // False when the expressions differ somewhere.
  bool SameEverywhere(const Expr& e, const Expr& simple, int lanes) {
    for (const Assignment& env : all) {
      for (int lane = 0; lane < lanes; ++lane) {
        auto want = Evaluate(e, env, lane);
        if (!want) continue;
        auto got = Evaluate(simple, env, lane);
        EXPECT_EQ(got, want) << ToString(e) << "\n  became " << ToString(simple) << "\n  at "
                             << Text(env) << " lane " << lane;
        if (got != want) return false;
      }
    }
    return true;
  }

  bool CheckOne(const Expr& e, int lanes) {
    Expr simple = analyzer.Simplify(e);
    EXPECT_EQ(simple->dtype, e->dtype);
    Expr again = analyzer.Simplify(simple);
    EXPECT_EQ(again.get(), simple.get()) << "not idempotent: " << ToString(e) << "\n  → "
                                         << ToString(simple) << "\n  → " << ToString(again);
    return again == simple && SameEverywhere(e, simple, lanes);
  }

  Var i = VarNode::Make("i"), j = VarNode::Make("j"), m = VarNode::Make("m"),
      w = VarNode::Make("w");
  Analyzer analyzer;
  std::vector<Assignment> all;
};

TEST_F(FuzzTest, IndexScalars) {
  Generator g(1, {i, j, m, w});
  for (int n = 0; n < Cases(); ++n) {
    if (!CheckOne(g.Index(1 + g.Below(4)), 1)) break;
  }
}

TEST_F(FuzzTest, Conditions) {
  Generator g(2, {i, j, m, w});
  for (int n = 0; n < Cases(); ++n) {
    if (!CheckOne(g.Bool(1 + g.Below(4)), 1)) break;
  }
}

TEST_F(FuzzTest, Vectors) {
  Generator g(3, {i, j, m, w});
  for (int n = 0; n < Cases(); ++n) {
    if (!CheckOne(g.Below(4) ? g.Index(1 + g.Below(3), 4) : g.Bool(1 + g.Below(2), 4), 4)) break;
  }
}

TEST_F(FuzzTest, FreshAnalyzerAgreesWithItself) {
  Generator g(4, {i, j, m, w});
  for (int n = 0; n < Cases(); ++n) {
    Expr e = g.Index(1 + g.Below(4));
    Expr once = Simplify(e), twice = Simplify(once);
    ASSERT_EQ(once.get(), twice.get())
        << ToString(e) << "\n  → " << ToString(once) << "\n  → " << ToString(twice);
    if (!SameEverywhere(e, once, 1)) break;
  }
}

TEST_F(FuzzTest, BoundsAndResidues) {
  Generator g(5, {i, j, m, w});
  for (int n = 0; n < Cases(); ++n) {
    Expr e = g.Index(1 + g.Below(4));
    Interval range = analyzer.ConstBounds(e);
    ModularSet set = analyzer.Modular(e);
    for (const Assignment& env : all) {
      auto v = Evaluate(e, env);
      if (!v) continue;
      ASSERT_TRUE(range.min <= *v && *v <= range.max)
          << ToString(e) << " = " << *v << " not in [" << range.min << ", " << range.max << "] at "
          << Text(env);
      bool member = set.coefficient == 0 ? *v == set.base : (*v - set.base) % set.coefficient == 0;
      ASSERT_TRUE(member) << ToString(e) << " = " << *v << " is not " << set.coefficient << "k + "
                          << set.base;
    }
  }
}

TEST_F(FuzzTest, Assumptions) {
  Generator g(6, {i, j, m, w});
  for (int n = 0; n < Cases(); ++n) {
    Expr condition = g.Bool(1 + g.Below(2)), e = g.Below(2) ? g.Index(2) : g.Bool(2);
    size_t token = analyzer.Assume(condition);
    Expr simple = analyzer.Simplify(e);
    analyzer.Retract(token);
    for (const Assignment& env : all) {
      auto holds = Evaluate(condition, env);
      auto want = Evaluate(e, env);
      if (!holds || !*holds || !want) continue;
      ASSERT_EQ(Evaluate(simple, env), want)
          << ToString(e) << "\n  became " << ToString(simple) << "\n  under " << ToString(condition)
          << "\n  at " << Text(env);
    }
  }
}

TEST_F(FuzzTest, EvalIntervalContainsEveryValue) {
  Generator g(7, {i, j, m, w});
  IntervalMap domain{{i.get(), {IndexConst(0), m - 1}}, {j.get(), {IndexConst(-3), IndexConst(4)}}};
  Analyzer outer;
  outer.Bind(m, IndexConst(1), IndexConst(4));
  outer.BindInterval(w, {-8, 8});
  for (int n = 0; n < Cases(); ++n) {
    Expr e = g.Index(1 + g.Below(3));
    ExprInterval range = EvalInterval(e, domain, &outer);
    for (const Assignment& env : all) {
      auto v = Evaluate(e, env);
      if (!v) continue;
      auto lo = range.min ? Evaluate(range.min, env) : v,
           hi = range.max ? Evaluate(range.max, env) : v;
      ASSERT_TRUE(lo && hi && *lo <= *v && *v <= *hi)
          << ToString(e) << " = " << *v << " not in [" << (range.min ? ToString(range.min) : "-inf")
          << ", " << (range.max ? ToString(range.max) : "inf") << "] at " << Text(env);
    }
  }
}

}  // namespace
}  // namespace tenon

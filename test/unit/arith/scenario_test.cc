// Index arithmetic as schedules and layouts make it.
#include <gtest/gtest.h>

#include <ctime>

#include "arith/analyzer.h"
#include "ir/buffer.h"
#include "ir/print.h"

namespace tenon {
namespace {

Expr C(int64_t v) { return IndexConst(v); }

class ScenarioTest : public ::testing::Test {
 protected:
  Var Loop(const char* name, const Expr& extent) {
    Var v = VarNode::Make(name);
    analyzer.Bind(v, C(0), extent);
    return v;
  }
  std::string Simple(const Expr& e) { return ToString(NodeRef(analyzer.Simplify(e))); }
  Analyzer analyzer;
};

TEST_F(ScenarioTest, FusedLoopsOfConstantExtents) {
  Var f = Loop("f", C(4 * 6 * 5));
  Expr i = Expr(f) / 30, j = Expr(f) / 5 % 6, k = Expr(f) % 5;
  EXPECT_EQ(Simple(i * 30 + j * 5 + k), "f");
  EXPECT_TRUE(analyzer.CanProve(And(Ge(i, C(0)), Lt(i, C(4)))));
  Var a = Loop("a", C(4)), b = Loop("b", C(6)), c = Loop("c", C(5));
  Expr flat = (Expr(a) * 6 + b) * 5 + c;
  EXPECT_EQ(Simple(flat / 30), "a");
  EXPECT_EQ(Simple(flat / 5 % 6), "b");
  EXPECT_EQ(Simple(flat % 5), "c");
  EXPECT_EQ(Simple(flat % 30), "b * 5 + c");
}

TEST_F(ScenarioTest, FusedLoopsOfSymbolicExtents) {
  Var m = VarNode::Make("m"), n = VarNode::Make("n");
  analyzer.BindInterval(m, {1, 4096});
  analyzer.BindInterval(n, {1, 4096});
  Var f = Loop("f", Expr(m) * n);
  Expr i = Expr(f) / n, j = Expr(f) % n;
  EXPECT_EQ(Simple(i * n + j), "f");
  EXPECT_TRUE(analyzer.CanProve(Lt(i, m)));
  EXPECT_TRUE(analyzer.CanProve(Ge(i, C(0))));
  EXPECT_TRUE(analyzer.CanProve(Lt(j, n)));
  Var a = Loop("a", m), b = Loop("b", n);
  EXPECT_EQ(Simple((Expr(a) * n + b) / n), "a");
  EXPECT_EQ(Simple((Expr(a) * n + b) % n), "b");
  EXPECT_TRUE(analyzer.CanProve(Lt(Expr(a) * n + b, Expr(m) * n)));
}

// Rows of a broadcast result, four at a time: none of its sizes need be there at all, and each may
// be either operand's.
TEST_F(ScenarioTest, FusedLoopsOfBroadcastExtents) {
  std::vector<Expr> sizes;
  for (const char* name : {"a", "b", "c"}) {
    const Var own = VarNode::Make(name), other = VarNode::Make(name + std::string("2"));
    analyzer.BindInterval(own, {0, 4096});
    analyzer.BindInterval(other, {0, 4096});
    sizes.push_back(Select::Make(Eq(own, C(1)), other, own));
  }
  const Expr groups = (sizes[2] + 3) / 4;
  const Var f = Loop("f", sizes[0] * sizes[1] * groups);
  EXPECT_TRUE(analyzer.CanProve(Lt(Expr(f) / (groups * sizes[1]), sizes[0])));
  EXPECT_TRUE(analyzer.CanProve(Lt(Expr(f) / groups % sizes[1], sizes[1])));
  EXPECT_FALSE(analyzer.CanProve(Lt(Expr(f) % groups * 4 + 3, sizes[2])));
}

// What is known of a multiple of a sum says something of the sum.
TEST_F(ScenarioTest, FactsAboutMultiples) {
  Var x = Loop("x", C(7)), y = Loop("y", C(2)), z = Loop("z", C(4));
  EXPECT_FALSE(analyzer.CanProve(Lt(Expr(x) * 2 + y, C(2))));
  analyzer.Assume(Lt(Expr(x) * 8 + Expr(y) * 4 + z, C(3)));
  EXPECT_TRUE(analyzer.CanProve(Lt(Expr(x) * 2 + y, C(2))));
  EXPECT_FALSE(analyzer.CanProve(Lt(Expr(z), C(2))));
}

TEST_F(ScenarioTest, TilesOfASymbolicExtent) {
  Var m = VarNode::Make("m");
  analyzer.BindInterval(m, {1, 4096});
  Var io = Loop("io", (Expr(m) + 15) / 16), ii = Loop("ii", C(16));
  Expr i = Expr(io) * 16 + ii;
  EXPECT_FALSE(analyzer.CanProve(Lt(i, m)));
  EXPECT_TRUE(analyzer.CanProve(Lt(i, Expr(m) + 15)));
  EXPECT_TRUE(analyzer.CanProve(Lt(Expr(io) * 16, m)));
  analyzer.BindModular(m, {16, 0});
  EXPECT_EQ(Simple((Expr(m) + 15) / 16), "m / 16");
  analyzer.Bind(io, C(0), (Expr(m) + 15) / 16);
  EXPECT_TRUE(analyzer.CanProve(Lt(i, m)));
}

// The bounds of the quotient itself are of no use here, and there are many.
TEST_F(ScenarioTest, PairsOfTilesOfAProduct) {
  const Var m = Loop("m", C(512)), n = Loop("n", C(512));
  for (const Expr& rows : {Expr(m) * n, Expr(m) * n - Expr(m) * 7}) {
    const Expr pairs = analyzer.Simplify((rows + 31) / 32);
    const Var tile = Loop("tile", analyzer.Simplify(pairs * 2));
    EXPECT_TRUE(analyzer.CanProve(Lt(tile, pairs * 2))) << ToString(pairs);
    EXPECT_TRUE(analyzer.CanProve(Lt(Expr(tile) / 2, pairs))) << ToString(pairs);
    EXPECT_FALSE(analyzer.CanProve(Lt(Expr(tile) + 1, pairs * 2))) << ToString(pairs);
  }
}

TEST_F(ScenarioTest, GuardsUnderAssumptions) {
  Var m = VarNode::Make("m"), i = Loop("i", C(100)), k = Loop("k", C(3));
  size_t token = analyzer.Assume(Lt(Expr(i) + 3, m));
  EXPECT_TRUE(analyzer.CanProve(Lt(Expr(i) + k, m)));
  EXPECT_EQ(Simple(Min(Expr(i) + 1, m)), "i + 1");
  analyzer.Retract(token);
  EXPECT_FALSE(analyzer.CanProve(Lt(Expr(i) + k, m)));
  // A padded window: the guard decides inside its own branches.
  Expr h = Expr(i) - 1;
  Expr inside = And(Ge(h, C(0)), Lt(h, C(99)));
  Expr padded = Select::Make(inside, Max(Min(h, C(98)), C(0)), C(0));
  EXPECT_EQ(Simple(padded), "select(1 <= i, i - 1, 0)");
}

TEST_F(ScenarioTest, BlockedLayoutsGiveContiguousVectors) {
  // NCHW16c: channel co * 16 + lane.
  Var co = Loop("co", C(4));
  Expr c = Ramp::Make(Expr(co) * 16, C(1), 16);
  auto all = [](int64_t v) { return MakeIntConst(DType::Index().WithLanes(16), v); };
  EXPECT_EQ(Simple(c / all(16)), "broadcast(co, 16)");
  EXPECT_EQ(Simple(c % all(16)), "ramp(0, 1, 16)");
  Expr address = (c / all(16) * all(56) + all(7)) * all(16) + c % all(16);
  EXPECT_EQ(Simple(address), "ramp(co * 896 + 112, 1, 16)");
}

TEST_F(ScenarioTest, StorageExtentsOfBlockedLayouts) {
  Var c = VarNode::Make("c"), h = VarNode::Make("h"), n = VarNode::Make("n");
  Layout layout = LayoutNode::Make({c, h}, {Expr(c) / 16, h, Expr(c) % 16});
  auto text = [](const std::vector<Expr>& v) {
    std::string out;
    for (const Expr& e : v) out += (out.empty() ? "" : ", ") + ToString(NodeRef(e));
    return out;
  };
  EXPECT_EQ(text(StorageExtents({C(64), C(7)}, layout)), "4, 7, 16");
  EXPECT_EQ(text(StorageExtents({C(65), C(7)}, layout)), "5, 7, 16");
  EXPECT_EQ(text(StorageExtents({C(3), C(7)}, layout)), "1, 7, 3");
  EXPECT_EQ(text(StorageExtents({C(64), n}, layout)), "4, n, 16");
  EXPECT_EQ(text(StorageExtents({n, C(7)}, layout)), "(n + 15) / 16, 7, min(n - 1, 15) + 1");
  EXPECT_EQ(text(StorageExtents({C(0), C(7)}, layout)), "0, 7, 0");
}

TEST_F(ScenarioTest, AffineForms) {
  Var i = VarNode::Make("i"), j = VarNode::Make("j"), m = VarNode::Make("m");
  auto form = DetectAffine((Expr(i) + 2) * m + Expr(j) * 4 - i, {i, j});
  ASSERT_TRUE(form);
  EXPECT_EQ(ToString(NodeRef(form->coefficients[0])), "m - 1");
  EXPECT_EQ(ToString(NodeRef(form->coefficients[1])), "4");
  EXPECT_EQ(ToString(NodeRef(form->base)), "m * 2");
  EXPECT_FALSE(DetectAffine(Expr(i) * j, {i, j}));
  EXPECT_FALSE(DetectAffine(Expr(i) / 2, {i}));
  EXPECT_TRUE(DetectAffine(Expr(m) / 2 + i, {i}));
}

TEST_F(ScenarioTest, SymbolicIntervals) {
  Var i = VarNode::Make("i"), m = VarNode::Make("m"), o = VarNode::Make("o");
  analyzer.BindInterval(m, {1, 100});
  IntervalMap domain{{i.get(), {C(0), Expr(m) - 1}}};
  ExprInterval r = EvalInterval(Expr(o) * 4 - i + 2, domain, &analyzer);
  EXPECT_EQ(ToString(NodeRef(r.min)), "o * 4 - m + 3");
  EXPECT_EQ(ToString(NodeRef(r.max)), "o * 4 + 2");
}

// A size that is written in two ways, which are one by what is known of it.
TEST_F(ScenarioTest, SymbolicIntervalsOfKnownParts) {
  Var f = VarNode::Make("f"), i = VarNode::Make("i"), w = VarNode::Make("w");
  analyzer.BindInterval(w, {2, 60});
  analyzer.BindModular(w, {2, 0});
  const IntervalMap domain{{i.get(), {C(0), C(7)}}};
  const Expr at = Expr(f) * 8 + i;
  const ExprInterval r = EvalInterval(at / (Expr(w) / 2) * ((Expr(w) + 1) / 2) + at % (Expr(w) / 2),
                                      domain, &analyzer);
  ASSERT_TRUE(r.min && r.max);
  EXPECT_EQ(ToString(NodeRef(r.min)), "f * 8");
  EXPECT_EQ(ToString(NodeRef(r.max)), "f * 8 + 7");
}

TEST_F(ScenarioTest, OverflowGivesUp) {
  Var i = VarNode::Make("i");
  Expr huge = C(INT64_MAX);
  Expr e = Binary::Make(BinaryOp::kAdd, Binary::Make(BinaryOp::kMul, i, huge),
                        Binary::Make(BinaryOp::kMul, i, huge));
  EXPECT_EQ(analyzer.Simplify(e)->dtype, DType::Index());
  EXPECT_EQ(analyzer.ConstBounds(Expr(i) * INT64_MAX), (Interval{}));
  Var m = VarNode::Make("m");
  Expr least = Expr(i) * C(INT64_MIN), negated = Expr(m) * C(-1);
  for (BinaryOp op : {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kDiv,
                      BinaryOp::kMod, BinaryOp::kMin, BinaryOp::kLt, BinaryOp::kEq}) {
    for (const Expr& a : {least, negated, C(INT64_MIN), C(INT64_MAX)}) {
      for (const Expr& b : {least, negated, C(INT64_MIN), C(-1), C(INT64_MAX)}) {
        Expr wild = Binary::Make(op, a, b);
        size_t token = analyzer.Assume(Lt(wild->dtype.IsBool() ? Expr(i) : wild, C(INT64_MAX)));
        analyzer.Simplify(wild);
        analyzer.ConstBounds(wild);
        analyzer.CanProve(Lt(least, negated));
        analyzer.Retract(token);
      }
    }
  }
}

// Every level uses the one below twice: 2^60 paths, 60 nodes. A walk of paths would never end.
TEST_F(ScenarioTest, SharedNodesDoNotBlowUp) {
  Var i = Loop("i", C(7));
  Expr add = i, nested = i, choose = i;
  for (int n = 0; n < 60; ++n) {
    if (n < 40) add = Binary::Make(BinaryOp::kAdd, add, add);
    nested =
        Binary::Make(BinaryOp::kMax, nested / 3, Binary::Make(BinaryOp::kMin, nested, nested % 5));
    choose = Select::Make(Lt(choose, C(n)), choose + 1, choose % 7);
  }
  EXPECT_EQ(Simple(add), "i * 1099511627776");
  analyzer.Simplify(nested);
  analyzer.Simplify(choose);
}

// y / d is at least x, and x is known to be at least y: whoever wants to simplify the quotient
// wants to know whether y < d, for which the bound of x is wanted, which is that quotient.
TEST_F(ScenarioTest, BoundsThatLeadToThemselvesEnd) {
  Var d = Loop("d", C(8)), y = Loop("y", C(64));
  Var x = VarNode::Make("x");
  analyzer.Bind(x, C(0), Expr(y) / (Expr(d) + 1) + 1);
  analyzer.Assume(Le(y, x));
  EXPECT_EQ(Simple(Expr(y) / (Expr(d) + 1) * 0), "0");
  EXPECT_NE(Simple(Expr(y) / (Expr(d) + 1)), "");
}

// A kernel has thousands of index expressions; a network must compile in seconds. This process's
// own time counts, whatever else the machine does, with room for sanitizers.
TEST_F(ScenarioTest, ThousandsOfExpressionsTakeMilliseconds) {
  Var n = Loop("n", C(8)), co = Loop("co", C(16)), h = Loop("h", C(56)), w = Loop("w", C(56)),
      ci = Loop("ci", C(16)), kh = Loop("kh", C(3)), kw = Loop("kw", C(3));
  const std::clock_t start = std::clock();
  for (int round = 0; round < 2000; ++round) {
    Expr c = Expr(co) * 16 + ci, y = Expr(h) + kh - 1, x = Expr(w) + kw - 1 + round;
    Expr flat = (((Expr(n) * 16 + c / 16) * 56 + y) * 56 + x) * 16 + c % 16;
    analyzer.Simplify(flat);
    analyzer.CanProve(And(Ge(y, C(0)), Lt(x, C(56))));
  }
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 10);
  RecordProperty("microseconds_each", static_cast<int>(seconds * 1e6 / 2000));
}

}  // namespace
}  // namespace tenon

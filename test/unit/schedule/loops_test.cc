// Primitives on loops: legal forms by meaning at awkward sizes, illegal ones by their messages.
#include "unit/schedule/support.h"

namespace tenon::test {
namespace {

const int64_t kSizes[] = {1, 3, 4, 5, 7, 8, 13};  // around the tile of 4, and primes

Module Matmul(int64_t m, int64_t n, int64_t k) {
  return Parse(Fill(kMatmul, {{"M", m}, {"N", n}, {"K", k}}));
}

TEST(Loops, SplitAtEverySize) {
  for (int64_t m : kSizes) {
    Module before = Matmul(m, 5, m);
    Schedule s(before, "f");
    EXPECT_EQ(s.Split("i", {-1, 4}), (std::vector<std::string>{"i.0", "i.1"}));
    s.Split("k", {2, -1});
    s.Split("j", {-1, 2, 2});
    EXPECT_EQ(s.GetLoops("C"),
              (std::vector<std::string>{"i.0", "i.1", "j.0", "j.1", "j.2", "k.0", "k.1"}));
    ExpectSame(before, s);
  }
}

TEST(Loops, GuardOnlyWhereSplitIsUneven) {
  Schedule even(Matmul(8, 8, 8), "f");
  even.Split("i", {-1, 4});
  EXPECT_EQ(Print(even.func()).find("where"), std::string::npos) << Print(even.func());
  Schedule odd(Matmul(7, 8, 8), "f");
  odd.Split("i", {-1, 4});
  EXPECT_NE(Print(odd.func()).find("where i.0 * 4 + i.1 < 7"), std::string::npos)
      << Print(odd.func());
}

TEST(Loops, TileByHand) {
  for (int64_t m : kSizes) {
    Module before = Matmul(m, 9, 6);
    Schedule s(before, "f");
    auto i = s.Split("i", {-1, 4});
    auto j = s.Split("j", {-1, 4});
    auto k = s.Split("k", {-1, 2});
    s.Reorder({i[0], j[0], k[0], k[1], i[1], j[1]});
    s.Parallel(i[0]);
    s.Unroll(i[1]);
    s.Vectorize(j[1]);
    s.Annotate(k[0], "producer_stages", int64_t{3});
    ExpectSame(before, s);
  }
}

TEST(Loops, FuseAndSplitAgain) {
  for (int64_t m : kSizes) {
    Module before = Matmul(m, 6, 3);
    Schedule s(before, "f");
    std::string f = s.Fuse({"i", "j"});
    EXPECT_EQ(f, "i_j");
    auto p = s.Split(f, {-1, 4});
    s.Parallel(p[0]);
    ExpectSame(before, s);
  }
}

TEST(Loops, ParallelFusedInnerDivisible) {
  Module before = Matmul(8, 8, 3);
  Schedule s(before, "f");
  auto i = s.Split("i", {-1, 4});
  auto j = s.Split("j", {-1, 4});
  s.Reorder({i[0], j[0], i[1], j[1]});
  s.Parallel(s.Fuse({i[0], j[0]}));
  ExpectSame(before, s);
}

TEST(Loops, PartitionSpatialAndReduce) {
  for (int64_t m : {5, 7, 13}) {
    Module before = Matmul(m, 6, m);
    Schedule s(before, "f");
    EXPECT_EQ(s.Partition("i", {1, 4}), (std::vector<std::string>{"i.p0", "i.p1", "i.p2"}));
    EXPECT_EQ(s.GetBlocks(), (std::vector<std::string>{"C.p0", "C.p1", "C.p2"}));
    s.Partition("k.p1", {2});
    s.PartitionEqual("j.p2", 4);
    s.Parallel("i.p1");
    ExpectSame(before, s);
  }
}

TEST(Loops, PartitionOfTheTailDropsGuards) {
  Module before = Matmul(13, 6, 5);
  Schedule s(before, "f");
  s.Split("i", {-1, 4});
  s.Partition("i.0", {3});
  ExpectSame(before, s);
  std::string text = Print(s.func());
  EXPECT_EQ(text.find("where"), text.rfind("where")) << text;
}

TEST(Loops, PartitionEqualSizes) {
  Schedule s(Matmul(10, 2, 2), "f");
  auto parts = s.PartitionEqual("i", 4);
  std::vector<int64_t> sizes;
  for (const auto& p : parts) sizes.push_back(s.GetExtent(p));
  EXPECT_EQ(sizes, (std::vector<int64_t>{3, 3, 2, 2}));
}

const char kSymbolic[] = R"(
func @f<m: 1..=64 step $S, n: 1..=64>(A: f32[m, n], out C: f32[m, n]) {
  for i in 0..m, j in 0..n {
    block C(vi: spatial = i, vj: spatial = j) {
      reads A[vi, vj]; writes C[vi, vj]
      C[vi, vj] = A[vi, vj] * 2f32 + f32(vi)
    }
  }
})";

TEST(Loops, SymbolicExtents) {
  Module before = Parse(Fill(kSymbolic, {{"S", 1}}));
  Schedule s(before, "f");
  s.Split("i", {-1, 4});
  s.Split("j", {3, -1});
  s.Reorder({"j.0", "i.0", "i.1", "j.1"});
  s.Parallel("i.0");
  s.Partition("j.0", {1});
  for (int64_t m : {1, 3, 4, 5, 17}) ExpectSame(before, s, {{"m", m}, {"n", 7}});
}

TEST(Loops, SymbolicFuse) {
  Module before = Parse(Fill(kSymbolic, {{"S", 1}}));
  Schedule s(before, "f");
  auto f = s.Split(s.Fuse({"i", "j"}), {-1, 8});
  s.Parallel(f[0]);
  for (int64_t m : {1, 3, 4, 5, 17}) ExpectSame(before, s, {{"m", m}, {"n", 7}});
}

TEST(Loops, ErrorsOfSplit) {
  Module m = Matmul(8, 8, 8);
  Schedule unknown(m, "f");
  EXPECT_EQ(unknown.Split("ii", {-1, 2}).size(), 2u);
  ExpectError(unknown, "split(ii, [-1, 2]): no loop is named \"ii\"");
  Schedule two(m, "f");
  two.Split("i", {-1, -1});
  ExpectError(two, "at most one factor may be -1");
  Schedule few(m, "f");
  few.Split("i", {2, 2});
  ExpectError(few, "the product 4 of the factors is not known to reach the extent 8");
  Schedule zero(m, "f");
  zero.Split("i", {-1, 0});
  ExpectError(zero, "factor 0 is not a positive size");
  Schedule parallel(m, "f");
  parallel.Parallel("i");
  parallel.Split("i", {-1, 2});
  ExpectError(parallel, "split(i, [-1, 2]): loop i is parallel, expected serial");
}

TEST(Loops, ErrorsOfNests) {
  Module m = Parse(Fill(kChain, {{"M", 4}, {"N", 6}}));
  Schedule apart(m, "f");
  apart.Fuse({"i", "y"});
  ExpectError(apart, "fuse(i, y): loops i and y are not perfectly nested");
  Schedule order(m, "f");
  order.Fuse({"j", "i"});
  ExpectError(order, "expected the outermost loop first");
  Schedule twice(m, "f");
  twice.Reorder({"j", "j"});
  ExpectError(twice, "loop j is named twice");
}

TEST(Loops, ErrorsOfParallelAndVectorize) {
  Module m = Matmul(8, 8, 8);
  Schedule reduce(m, "f");
  reduce.Parallel("k");
  ExpectError(reduce, "parallel(k) of block C: loop k runs over its reduction");
  Schedule vector(m, "f");
  vector.Vectorize("k");
  ExpectError(vector, "vectorize(k) of block C: loop k runs over its reduction");
  Schedule nested(m, "f");
  nested.Parallel("i");
  nested.Parallel("j");
  ExpectError(nested, "it is nested with loop i, which is parallel");
  Schedule symbolic(Parse(Fill(kSymbolic, {{"S", 1}})), "f");
  symbolic.Vectorize("j");
  ExpectError(symbolic, "expected a constant extent, got n");
}

TEST(Loops, OrderedLoopsKeepTheirOrder) {
  Module m = Parse(Fill(kScan, {{"M", 6}, {"N", 5}}));
  Schedule s(m, "f");
  s.Split("t", {-1, 4});
  s.Reorder({"i", "t.0", "t.1"});
  s.Parallel("i");
  ExpectSame(m, s);
  Schedule parallel(m, "f");
  parallel.Parallel("t");
  ExpectError(parallel, "runs over an ordered variable");
  Schedule swapped(m, "f");
  swapped.Split("t", {-1, 4});
  swapped.Reorder({"t.1", "t.0"});
  ExpectError(swapped, "of block P: the order of loop t.0 matters");
}

TEST(Loops, ReorderOfAFusedReductionNeedsDecompose) {
  Module m = Matmul(4, 4, 6);
  Schedule s(m, "f");
  s.Split(s.Fuse({"j", "k"}), {-1, 4});
  s.Reorder({"j_k.1", "j_k.0"});
  ExpectError(s, "runs over spatial and reduce variables at once");
}

TEST(Loops, FuseWithAReductionOfNothingNeedsDecompose) {
  Module m = Matmul(4, 3, 0);
  Schedule s(m, "f");
  s.Fuse({"j", "k"});
  ExpectError(s,
              "fuse(j, k) of block C: the loops are over its space and over what it reduces, 0 "
              "elements, which may be none");
  Schedule first(m, "f");
  first.DecomposeReduction("C", "j");
  first.Fuse({"j", "k"});
  EXPECT_TRUE(first.ok());
}

TEST(Loops, VectorizedMaximum) {
  Module m = Parse(Fill(kSoftmax, {{"M", 3}, {"N", 8}}));
  Schedule s(m, "f");
  s.DecomposeReduction("mx", "j");
  s.Vectorize("j");
  ExpectSame(m, s);
}

TEST(Loops, DecisionsAreTakenFromTheTable) {
  Module m = Matmul(8, 8, 8);
  Schedule s(m, "f");
  EXPECT_EQ(s.Decide("tile", {2, 4, 8}, 4), 4);
  s.Split("i", {-1, 4});
  ExpectSame(m, s);
  EXPECT_EQ(s.trace().steps[0].ToString(), "4 = decide(\"tile\", [2, 4, 8], 4)");
  Schedule t(m, "f");
  t.UseDecisions({{"tile", 8}, {"other", 1}});
  EXPECT_EQ(t.Decide("tile", {2, 4, 8}, 4), 8);
  EXPECT_EQ(t.Decide("other", {2, 4}, 2), 2);
  EXPECT_EQ(t.trace().Decisions(), (std::map<std::string, int64_t>{{"other", 2}, {"tile", 8}}));
}

}  // namespace
}  // namespace tenon::test

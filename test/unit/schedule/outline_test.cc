// outline: the call means what the code did, and equal pieces become one function.
#include "unit/schedule/support.h"

namespace tenon::test {
namespace {

// Tiles the matmul by 4 x 4 with an accumulator of its own and outlines the tile.
std::string OutlineTile(Schedule* s, bool with_init) {
  std::string out = s->CacheWrite("C", "C", Scope::kRegister);
  auto i = s->Split("i", {-1, 4});
  auto j = s->Split("j", {-1, 4});
  s->Reorder({i[0], j[0], "k", i[1], j[1]});
  s->ReverseComputeAt(out, j[0]);
  s->DecomposeReduction("C", "k");
  s->Unroll(i[1]);
  s->Vectorize(j[1]);
  s->Parallel(i[0]);
  return s->Outline(with_init ? j[0] : "k", "tile");
}

TEST(Outline, TileOfAMatmul) {
  for (int64_t m : {4, 8, 12}) {
    for (bool with_init : {false, true}) {
      Module before = Parse(Fill(kMatmul, {{"M", m}, {"N", 8}, {"K", 5}}));
      Schedule s(before, "f");
      EXPECT_EQ(OutlineTile(&s, with_init), "tile");
      ExpectSame(before, s);
    }
  }
}

TEST(Outline, UnevenTiles) {
  for (int64_t m : {1, 3, 5, 7, 13}) {
    Module before = Parse(Fill(kMatmul, {{"M", m}, {"N", 9}, {"K", 3}}));
    Schedule s(before, "f");
    OutlineTile(&s, false);
    ExpectSame(before, s);
  }
}

TEST(Outline, OneFunctionForManySizes) {
  Module first = Parse(Fill(kMatmul, {{"M", 8}, {"N", 8}, {"K", 5}}));
  Schedule a(first, "f");
  EXPECT_EQ(OutlineTile(&a, false), "tile");
  Module second = Parse(Fill(kMatmul, {{"M", 12}, {"N", 16}, {"K", 7}}));
  second.Add(a.module().Find("tile"));
  Schedule b(second, "f");
  EXPECT_EQ(OutlineTile(&b, false), "tile");
  EXPECT_EQ(b.module().funcs.size(), 2u) << Print(b.module());
  ExpectSame(second, b);
}

TEST(Outline, EqualPartsOfALoop) {
  Module before = Parse(Fill(kChain, {{"M", 8}, {"N", 6}}));
  Schedule s(before, "f");
  s.ComputeInline("T");
  s.Partition("x", {4});
  EXPECT_EQ(s.Outline("x.p0", "half"), "half");
  EXPECT_EQ(s.Outline("x.p1", "half"), "half");
  EXPECT_EQ(s.module().funcs.size(), 2u) << Print(s.module());
  ExpectSame(before, s);
}

TEST(Outline, DifferentCodeGetsAnotherName) {
  Module before = Parse(Fill(kChain, {{"M", 8}, {"N", 6}}));
  Schedule s(before, "f");
  EXPECT_EQ(s.Outline("j", "row"), "row");
  EXPECT_EQ(s.Outline("y", "row"), "row_2");
  ExpectSame(before, s);
}

TEST(Outline, PackedPanelsHaveStrides) {
  Module before = Parse(R"(
func @f(A: f32[8, 5], B: f32[5, 8] layout (k, j) -> (j / 4, k, j % 4), out C: f32[8, 8]) {
  for i in 0..8, j in 0..8, k in 0..5 {
    block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) fp: contract {
      reads A[vi, vk], B[vk, vj]; writes C[vi, vj]
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    }
  }
})");
  Schedule s(before, "f");
  OutlineTile(&s, false);
  ExpectSame(before, s);
  EXPECT_EQ(Print(s.module()).find("stride_B"), std::string::npos) << Print(s.module());
  EXPECT_NE(Print(s.module()).find("stride_A"), std::string::npos) << Print(s.module());
  // Two panels at once do not lie at regular strides.
  Schedule two(before, "f");
  two.Outline("i", "all");
  ExpectError(two, "the region of B that it touches is not at regular strides in memory");
}

TEST(Outline, SymbolicSizes) {
  Module before = Parse(R"(
func @f<m: 1..=64, n: 1..=64>(A: f32[m, n], out C: f32[m, n]) {
  for i in 0..m, j in 0..n {
    block C(vi: spatial = i, vj: spatial = j) {
      reads A[vi, vj]; writes C[vi, vj]
      C[vi, vj] = A[vi, vj] + f32(vi)
    }
  }
})");
  Schedule s(before, "f");
  auto i = s.Split("i", {-1, 4});
  auto j = s.Split("j", {-1, 4});
  s.Reorder({i[0], j[0], i[1], j[1]});
  s.Outline(i[1], "tile");
  for (int64_t m : {1, 4, 5}) ExpectSame(before, s, {{"m", m}, {"n", 7}});
}

TEST(Outline, Errors) {
  Module m = Parse(Fill(kMatmul, {{"M", 4}, {"N", 4}, {"K", 8}}));
  Schedule split(m, "f");
  auto k = split.Split("k", {-1, 4});
  split.Outline(k[1], "inner");
  ExpectError(split, "outline(k.1, inner) of block C: its reduction over vk runs outside too");
  Schedule unknown(m, "f");
  unknown.Outline("q", "x");
  ExpectError(unknown, "no block is named \"q\"");
  Schedule twice(m, "f");
  twice.Outline("j", "x");
  twice.Parallel("i");
  ExpectError(twice, "the loop holds statements that are in no block");
}

}  // namespace
}  // namespace tenon::test

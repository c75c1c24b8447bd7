// Where blocks are computed: compute_at and its kin, inlining, caches, reductions.
#include <fmt/format.h>

#include "unit/schedule/support.h"

namespace tenon::test {
namespace {

const int64_t kSizes[] = {1, 3, 4, 5, 7, 8, 13};

Module Make(const char* text, std::map<std::string, int64_t> values) {
  return Parse(Fill(text, values));
}

TEST(ComputeAt, ChainAtTiles) {
  for (int64_t m : kSizes) {
    Module before = Make(kChain, {{"M", m}, {"N", 6}});
    Schedule s(before, "f");
    auto x = s.Split("x", {-1, 4});
    s.ComputeAt("T", x[0]);
    s.Parallel(x[0]);
    ExpectSame(before, s);
    if (m > 4) {
      EXPECT_EQ(s.GetExtent("T.ax0"), 4);
    }
  }
}

TEST(ComputeAt, OverlappingWindows) {
  for (int64_t m : kSizes) {
    Module before = Make(kBlur, {{"M", m}});
    Schedule s(before, "f");
    auto i = s.Split("i", {-1, 4});
    s.ComputeAt("T", i[0]);
    s.Parallel(i[0]);
    ExpectSame(before, s);
    if (m > 4) {
      EXPECT_EQ(s.GetExtent("T.ax0"), 6);
    }
    Schedule inner(before, "f");
    inner.ComputeAt("T", "i");
    ExpectSame(before, inner);
    EXPECT_EQ(inner.GetLoops("T"), (std::vector<std::string>{"i", "T.ax0"}));
    inner.ComputeRoot("T");
    ExpectSame(before, inner);
  }
}

TEST(ComputeAt, PaddedConvolution) {
  for (int64_t h : {1, 4, 5, 7}) {
    Module before = Make(kConv, {{"C", 3}, {"H", h}, {"W", 5}, {"O", 2}});
    Schedule s(before, "f");
    auto th = s.Split("h", {-1, 4});
    auto tw = s.Split("w", {-1, 4});
    s.Reorder({th[0], tw[0], "o", th[1], tw[1]});
    s.ComputeAt("P", tw[0]);
    s.ReverseComputeAt("Z", "o");
    s.DecomposeReduction("Y", "c");
    s.Parallel(th[0]);
    ExpectSame(before, s);
  }
}

TEST(ComputeAt, SoftmaxRows) {
  for (int64_t m : kSizes) {
    Module before = Make(kSoftmax, {{"M", m}, {"N", 5}});
    Schedule s(before, "f");
    s.ComputeAt("sm", "di");
    s.ComputeAt("ex", "di");
    s.ComputeAt("mx", "di");
    EXPECT_EQ(s.GetChildBlocks("di"), (std::vector<std::string>{"mx", "ex", "sm", "D"}));
    s.Parallel("di");
    ExpectSame(before, s);
  }
}

TEST(ComputeAt, ReverseSoftmaxRows) {
  Module before = Make(kSoftmax, {{"M", 5}, {"N", 7}});
  Schedule s(before, "f");
  auto i = s.Split("i", {-1, 2});
  s.ReverseComputeAt("ex", i[0]);
  s.ReverseComputeAt("sm", i[0]);
  s.ReverseComputeAt("D", i[0]);
  s.Parallel(i[0]);
  ExpectSame(before, s);
}

TEST(ComputeAt, FusedParallelTiles) {
  for (int64_t m : kSizes) {
    Module before = Make(kMatmulRelu, {{"M", m}, {"N", 9}, {"K", 5}});
    Schedule s(before, "f");
    auto i = s.Split("i", {-1, 4});
    auto j = s.Split("j", {-1, 4});
    s.Reorder({i[0], j[0], i[1], j[1], "k"});
    std::string f = s.Fuse({i[0], j[0]});
    s.ReverseComputeAt("D", f);
    s.Parallel(f);
    ExpectSame(before, s);
  }
}

TEST(ComputeAt, CachedMatmul) {
  for (int64_t m : kSizes) {
    Module before = Make(kMatmul, {{"M", m}, {"N", 9}, {"K", m}});
    Schedule s(before, "f");
    std::string out = s.CacheWrite("C", "C", Scope::kLocal);
    auto i = s.Split("i", {-1, 4});
    auto j = s.Split("j", {-1, 4});
    auto k = s.Split("k", {-1, 2});
    s.Reorder({i[0], j[0], k[0], k[1], i[1], j[1]});
    s.ReverseComputeAt(out, j[0]);
    std::string a = s.CacheRead("C", "A", Scope::kLocal);
    s.ComputeAt(a, i[0]);
    std::string b = s.CacheRead("C", "B", Scope::kLocal);
    s.ComputeAt(b, k[0]);
    EXPECT_EQ(s.DecomposeReduction("C", k[0]), "C.init");
    s.Unroll(i[1]);
    s.Vectorize(j[1]);
    s.Parallel(i[0]);
    ExpectSame(before, s);
  }
}

TEST(ComputeAt, RowReductionOfAMatmulTile) {
  Module before = Parse(R"(
func @f(A: f32[6, 4], B: f32[4, 8], out S: f32[6]) {
  alloc C: f32[6, 8] in global
  for i in 0..6, j in 0..8, k in 0..4 {
    block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) {
      reads A[vi, vk], B[vk, vj]; writes C[vi, vj]
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    }
  }
  for x in 0..6, y in 0..8 {
    block S(vx: spatial = x, vy: reduce = y) {
      reads C[vx, vy]; writes S[vx]
      init { S[vx] = 0f32 }
      S[vx] = S[vx] + C[vx, vy]
    }
  }
})");
  Schedule rows(before, "f");
  rows.ReverseComputeAt("S", "i");
  ExpectSame(before, rows);
  Schedule tiles(before, "f");
  auto j = tiles.Split("j", {-1, 4});
  tiles.ReverseComputeAt("S", j[0]);
  ExpectSame(before, tiles);
  Schedule wrong(before, "f");
  wrong.Reorder({"j", "i"});
  wrong.ReverseComputeAt("S", "j");
  ExpectSame(before, wrong);
}

TEST(ComputeAt, Errors) {
  Module chain = Make(kChain, {{"M", 4}, {"N", 6}});
  Schedule output(chain, "f");
  output.ComputeAt("D", "i");
  ExpectError(output, "compute_at(D, i) of block D: it writes D, which is not allocated");
  Schedule consumer(chain, "f");
  consumer.ComputeAt("T", "i");
  ExpectError(consumer, "compute_at(T, i) of block T: its consumer D is not under loop i");
  Schedule unfinished(Make(kMatmulRelu, {{"M", 4}, {"N", 4}, {"K", 4}}), "f");
  unfinished.ReverseComputeAt("D", "k");
  ExpectError(unfinished,
              "of block D: loop k has not finished C: it runs over the reduction of block C");
  Schedule window(Make(kBlur, {{"M", 5}}), "f");
  window.ReverseComputeAt("D", "t");
  ExpectError(window, "what it reads of T is not finished by one iteration of loop t");
  Schedule none(chain, "f");
  none.ReverseComputeAt("T", "x");
  ExpectError(none, "loop x comes after it");
}

TEST(Inline, IntoEveryConsumer) {
  for (int64_t m : kSizes) {
    Module before = Make(kChain, {{"M", m}, {"N", 6}});
    Schedule s(before, "f");
    s.ComputeInline("T");
    EXPECT_EQ(s.GetBlocks(), (std::vector<std::string>{"D"}));
    s.Vectorize("y");
    ExpectSame(before, s);
    Schedule blur(Make(kBlur, {{"M", m}}), "f");
    blur.ComputeInline("T");
    ExpectSame(Make(kBlur, {{"M", m}}), blur);
  }
}

TEST(Inline, PaddingIntoConvolution) {
  Module before = Make(kConv, {{"C", 2}, {"H", 4}, {"W", 5}, {"O", 3}});
  Schedule s(before, "f");
  s.ComputeInline("P");
  ExpectSame(before, s);
}

TEST(Inline, Reverse) {
  for (int64_t m : kSizes) {
    Module before = Make(kChain, {{"M", m}, {"N", 6}});
    Schedule s(before, "f");
    s.Split("i", {-1, 4});
    s.ReverseComputeInline("D");
    EXPECT_EQ(s.GetBlocks(), (std::vector<std::string>{"D"}));
    ExpectSame(before, s);
  }
}

// Each value stands twice in the next one.
TEST(Inline, ExpressionsOfNoEnd) {
  std::string text = "func @f(A: f32[4], out D: f32[4]) {\n";
  constexpr int kSteps = 40;
  for (int i = 0; i < kSteps; ++i) text += fmt::format("  alloc T{}: f32[4]\n", i);
  for (int i = 0; i <= kSteps; ++i) {
    const std::string from = i == 0 ? "A" : fmt::format("T{}", i - 1);
    const std::string to = i == kSteps ? "D" : fmt::format("T{}", i);
    text += fmt::format(
        "  for i{0} in 0..4 {{\n    block {1}(v: spatial = i{0}) {{\n      reads {2}[v]; writes "
        "{1}[v]\n      {1}[v] = {2}[v] + {2}[v]\n    }}\n  }}\n",
        i, to, from);
  }
  Schedule s(Parse(text + "}\n"), "f");
  int done = 0;
  for (; done < kSteps && s.ok(); ++done) s.ComputeInline(fmt::format("T{}", done));
  EXPECT_LT(done, 20);
  ExpectError(s, "the expression that it makes has more than 65536 nodes");
  Schedule reverse(Parse(text + "}\n"), "f");
  for (done = 0; done < kSteps && reverse.ok(); ++done) reverse.ReverseComputeInline("D");
  EXPECT_LT(done, 20);
  ExpectError(reverse, "the expression that it makes has more than 65536 nodes");
}

TEST(Inline, Errors) {
  Schedule reduction(Make(kMatmulRelu, {{"M", 4}, {"N", 4}, {"K", 4}}), "f");
  reduction.ComputeInline("C");
  ExpectError(reduction, "compute_inline(C) of block C: it has reduce or ordered variables");
  Schedule through(Make(kMatmulRelu, {{"M", 4}, {"N", 4}, {"K", 4}}), "f");
  through.ReverseComputeInline("D");
  ExpectError(through, "its producer C is a reduction");
  Schedule output(Make(kChain, {{"M", 4}, {"N", 6}}), "f");
  output.ComputeInline("D");
  ExpectError(output, "it writes D, which is not allocated in the function");
  Schedule window(Make(kBlur, {{"M", 5}}), "f");
  window.ReverseComputeInline("D");
  ExpectError(window, "reverse_compute_inline(D) of block D: it does not read T");
}

TEST(Cache, ReadInsideAndOutside) {
  for (int64_t m : kSizes) {
    Module before = Make(kChain, {{"M", m}, {"N", 6}});
    Schedule s(before, "f");
    EXPECT_EQ(s.CacheRead("T", "A", Scope::kShared), "A.shared");
    auto i = s.Split("i", {-1, 4});
    s.ComputeAt("A.shared", i[0]);
    s.CacheRead("D", "T", Scope::kLocal);
    s.SetScope("T.local", Scope::kRegister);
    ExpectSame(before, s);
  }
}

TEST(Cache, Errors) {
  Module m = Make(kChain, {{"M", 4}, {"N", 6}});
  Schedule read(m, "f");
  read.CacheRead("D", "A", Scope::kLocal);
  ExpectError(read, "cache_read(D, A, local) of block D: it does not read A");
  Schedule write(m, "f");
  write.CacheWrite("D", "T", Scope::kLocal);
  ExpectError(write, "it does not write T");
  Schedule scope(m, "f");
  scope.SetScope("A", Scope::kLocal);
  ExpectError(scope, "buffer A is not allocated in the function");
  Schedule late(Make(kMatmul, {{"M", 4}, {"N", 4}, {"K", 4}}), "f");
  late.DecomposeReduction("C", "k");
  late.CacheWrite("C", "C", Scope::kLocal);
  ExpectError(late, "block C.init writes C too");
}

TEST(Reduction, DecomposeAtEachLevel) {
  for (int64_t m : kSizes) {
    for (const char* at : {"i.0", "i.1", "j", "k.0"}) {
      Module before = Make(kMatmul, {{"M", m}, {"N", 3}, {"K", m}});
      Schedule s(before, "f");
      s.Split("i", {-1, 4});
      s.Split("k", {-1, 4});
      s.DecomposeReduction("C", at);
      ExpectSame(before, s);
    }
  }
}

TEST(Reduction, DecomposeWithLoopsInside) {
  for (int64_t m : kSizes) {
    Module before = Make(kMatmulRelu, {{"M", m}, {"N", 5}, {"K", 3}});
    Schedule s(before, "f");
    auto j = s.Split("j", {-1, 4});
    s.Reorder({"k", "i", j[1]});
    s.Vectorize(j[1]);
    s.DecomposeReduction("C", "k");
    s.Reorder({"i", "k"});
    ExpectSame(before, s);
  }
}

TEST(Reduction, RFactorEveryWay) {
  for (int64_t n : kSizes) {
    Module before = Make(kRowSum, {{"M", 3}, {"N", n}});
    for (const char* loop : {"j.0", "j.1"}) {
      for (int64_t axis : {0, 1, -1}) {
        Schedule s(before, "f");
        s.Split("j", {-1, 4});
        EXPECT_EQ(s.RFactor(loop, axis), "S.rf");
        s.Parallel(loop);
        s.ReverseComputeAt("S", "i");
        ExpectSame(before, s);
      }
    }
    Schedule whole(before, "f");
    whole.RFactor("j", 0);
    ExpectSame(before, whole);
  }
}

TEST(Reduction, Errors) {
  Module m = Make(kMatmul, {{"M", 4}, {"N", 4}, {"K", 4}});
  Schedule outside(m, "f");
  outside.Reorder({"k", "i"});
  outside.DecomposeReduction("C", "i");
  ExpectError(
      outside,
      "decompose_reduction(C, i) of block C: loop k, outside loop i, runs over its reduction");
  Schedule twice(m, "f");
  twice.DecomposeReduction("C", "k");
  twice.DecomposeReduction("C", "k");
  ExpectError(twice, "the block is not a reduction with an init");
  Schedule spatial(m, "f");
  spatial.RFactor("i", 0);
  ExpectError(spatial, "loop i does not run over its reduction");
  Schedule axis(m, "f");
  axis.RFactor("k", 4);
  ExpectError(axis, "axis 4 is outside [-3, 2]");
}

Layout Packed(int64_t lanes) {
  Var i = VarNode::Make("i"), j = VarNode::Make("j");
  return LayoutNode::Make({i, j}, {j / lanes, i, j % lanes});
}

TEST(Buffers, LayoutKeepsMeaning) {
  for (int64_t n : kSizes) {
    Module before = Make(kChain, {{"M", 3}, {"N", n}});
    Schedule s(before, "f");
    s.TransformLayout("T", Packed(4));
    s.TransformLayout("D", Packed(2));
    ExpectSame(before, s);
  }
  Var i = VarNode::Make("i"), j = VarNode::Make("j");
  Schedule same(Make(kChain, {{"M", 3}, {"N", 4}}), "f");
  same.TransformLayout("T", LayoutNode::Make({i, j}, {i + j}));
  ExpectError(same, "the layout is not known to give every element of T a place of its own");
}

TEST(Specialize, OnADim) {
  Module before = Parse(R"(
func @f<m: 1..=64>(A: f32[m, 8], out C: f32[m, 8]) {
  alloc T: f32[m, 8] in global
  for i in 0..m, j in 0..8 {
    block T(vi: spatial = i, vj: spatial = j) {
      reads A[vi, vj]; writes T[vi, vj]
      T[vi, vj] = A[vi, vj] * 2f32
    }
  }
  for x in 0..m, y in 0..8 {
    block C(vx: spatial = x, vy: spatial = y) {
      reads T[vx, vy]; writes C[vx, vy]
      C[vx, vy] = T[vx, vy] + 1f32
    }
  }
})");
  Schedule s(before, "f");
  s.Specialize(Eq(s.func()->dims[0], IndexConst(16)));
  EXPECT_EQ(s.GetBlocks(), (std::vector<std::string>{"T.s", "C.s", "T", "C"}));
  EXPECT_EQ(s.GetExtent("i.s"), 16);
  s.Split("x.s", {-1, 4});
  s.ComputeAt("T.s", "x.s.0");
  s.ComputeInline("T");
  for (int64_t m : {1, 15, 16, 17}) ExpectSame(before, s, {{"m", m}});
}

}  // namespace
}  // namespace tenon::test

// lower_blocks, flatten_storage, vectorize, unroll, simplify on plain kernels.
#include "ir/visit.h"
#include "loop/edit.h"
#include "loop/pass/math/name_shared.h"
#include "pass_test.h"

namespace tenon {
namespace {

const char kMatmul[] = R"(
func @matmul<m, n, k>(A: f32[m, k], B: f32[k, n], out C: f32[m, n]) {
  for i in 0..m, j in 0..n, r in 0..k {
    block C(vi: spatial = i, vj: spatial = j, vk: reduce = r) fp: contract {
      reads A[vi, vk], B[vk, vj]
      writes C[vi, vj]
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    }
  }
}
)";

const char kTiled[] = R"(
func @tiled<m, n, k>(A: f32[m, k], B: f32[k, n], out C: f32[m, n]) {
  for io in 0..(m + 3) / 4 parallel {
    for jo in 0..(n + 7) / 8, r in 0..k {
      for ii in 0..4 unrolled {
        for ji in 0..8 vectorized {
          block C(vi: spatial in 0..m = io * 4 + ii, vj: spatial in 0..n = jo * 8 + ji, vk: reduce = r) where io * 4 + ii < m && jo * 8 + ji < n fp: contract {
            reads A[vi, vk], B[vk, vj]
            writes C[vi, vj]
            init { C[vi, vj] = 0f32 }
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
          }
        }
      }
    }
  }
}
)";

const std::vector<const char*> kKernelPasses = {
    "compact_buffers", "lower_blocks",    "simplify",  "split_guards",   "cut_tiles", "simplify",
    "plan_storage",    "flatten_storage", "vectorize", "lower_parallel", "unroll",    "simplify"};

// After each prefix of the kernel pipeline the function means the same; from lower_parallel on with
// a team of three.
void ExpectPipelineKeepsMeaning(const std::string& text, const std::string& name,
                                const std::vector<std::map<std::string, int64_t>>& dims) {
  Module before = Parse(text), after = before;
  bool team = false;
  for (const char* pass : kKernelPasses) {
    after = RunPasses(after, {pass});
    team |= std::string(pass) == "lower_parallel";
    for (const auto& d : dims) {
      SCOPED_TRACE(pass);
      ExpectSameMeaning(before, after, name, d, team ? 3 : 1, 1);
      if (testing::Test::HasFailure()) return;
    }
  }
  if (getenv("SHOW")) puts(Print(after).c_str());
}

TEST(LowerBlocks, ReductionWithInit) {
  Module before = Parse(kMatmul);
  Module after = RunPasses(before, {"lower_blocks", "simplify"});
  for (int64_t m : {1, 3}) {
    for (int64_t k : {1, 5})
      ExpectSameMeaning(before, after, "matmul", {{"m", m}, {"n", 2}, {"k", k}});
  }
}

TEST(KernelPasses, TiledMatmulAtAwkwardSizes) {
  std::vector<std::map<std::string, int64_t>> dims;
  for (int64_t m : {0, 1, 3, 4, 5, 13}) {
    for (int64_t n : {0, 1, 7, 8, 9, 17}) dims.push_back({{"m", m}, {"n", n}, {"k", 3}});
  }
  ExpectPipelineKeepsMeaning(kTiled, "tiled", dims);
}

// Tiles of registers that m and n cut: whole ones, those of each number of rows and of vectors, and
// those without any.
TEST(KernelPasses, RegisterTilesAtAwkwardSizes) {
  const char text[] = R"(
func @tiled<m, n>(A: f32[m, 5], B: f32[5, n], out C: f32[m, n], out D: f32[m, n]) {
  for io in 0..(m + 7) / 8 parallel {
   for ib in 0..2, jo in 0..(n + 7) / 8 {
    alloc t: f32[4, 8] in register {
      for r in 0..5 {
        for ii in 0..4 unrolled {
         for jb in 0..2 unrolled {
          for ji in 0..4 vectorized {
            block t(vi: spatial in 0..m = io * 8 + ib * 4 + ii, vj: spatial in 0..n = jo * 8 + jb * 4 + ji, vk: reduce = r) where io * 8 + ib * 4 + ii < m && jo * 8 + jb * 4 + ji < n fp: contract {
              reads A[vi, vk], B[vk, vj]
              writes t[vi - io * 8 - ib * 4, vj - jo * 8]
              init { t[vi - io * 8 - ib * 4, vj - jo * 8] = 0f32 }
              t[vi - io * 8 - ib * 4, vj - jo * 8] = t[vi - io * 8 - ib * 4, vj - jo * 8] + A[vi, vk] * B[vk, vj]
            }
          }
         }
        }
      }
      for ic in 0..4 unrolled {
       for jd in 0..2 unrolled {
        for jc in 0..4 vectorized {
          block C(vi: spatial in 0..m = io * 8 + ib * 4 + ic, vj: spatial in 0..n = jo * 8 + jd * 4 + jc) where io * 8 + ib * 4 + ic < m && jo * 8 + jd * 4 + jc < n {
            reads t[vi - io * 8 - ib * 4, vj - jo * 8]
            writes C[vi, vj], D[vi, vj]
            C[vi, vj] = t[vi - io * 8 - ib * 4, vj - jo * 8]
            D[vi, vj] = select(vi < 3, t[vi - io * 8 - ib * 4, vj - jo * 8], 7f32)
          }
        }
       }
      }
    }
   }
  }
}
)";
  std::vector<std::map<std::string, int64_t>> dims;
  for (int64_t m : {0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16}) {
    for (int64_t n : {0, 1, 3, 4, 5, 7, 8, 9, 11, 16, 17}) dims.push_back({{"m", m}, {"n", n}});
  }
  ExpectPipelineKeepsMeaning(text, "tiled", dims);
}

// Padded convolution over rows: guards that only the kernel loop can settle.
TEST(KernelPasses, PaddedConvolution) {
  const char text[] = R"(
func @conv<h>(X: f32[h, 20], W: f32[3, 3], out Y: f32[h, 20]) {
  alloc P: f32[h + 2, 22] in local {
    for i in 0..h parallel {
      for a in 0..3, b in 0..22 {
        block P(vi: spatial in 0..h + 2 = i + a, vj: spatial in 0..22 = b) {
          reads X[vi - 1, vj - 1]
          writes P[vi, vj]
          P[vi, vj] = select(1 <= vi && vi <= h && 1 <= vj && vj <= 20, X[vi - 1, vj - 1], 0f32)
        }
      }
      for j in 0..20 vectorized {
        for kh in 0..3, kw in 0..3 {
          block Y(vi: spatial = i, vj: spatial = j, vk: reduce = kh, vl: reduce = kw) fp: contract {
            reads P[vi + vk, vj + vl], W[vk, vl]
            writes Y[vi, vj]
            init { Y[vi, vj] = 0f32 }
            Y[vi, vj] = Y[vi, vj] + P[vi + vk, vj + vl] * W[vk, vl]
          }
        }
      }
    }
  }
}
)";
  ExpectPipelineKeepsMeaning(text, "conv", {{{"h", 0}}, {{"h", 1}}, {{"h", 2}}, {{"h", 7}}});
}

TEST(KernelPasses, VectorReductionAndPrivateBuffers) {
  const char text[] = R"(
func @norm<m>(X: f32[m, 24], out S: f32[m], out Y: f32[m, 24]) {
  for i in 0..m parallel {
    block S.init(vi: spatial = i) {
      writes S[vi]
      S[vi] = 0f32
    }
    for j in 0..24 vectorized {
      block S(vi: spatial = i, vj: reduce = j) fp: reassoc {
        reads X[vi, vj], S[vi]; writes S[vi]
        S[vi] = S[vi] + X[vi, vj]
      }
    }
    for l in 0..24 vectorized {
      block Y(vi: spatial = i, vj: spatial = l) {
        reads S[vi], X[vi, vj]; writes Y[vi, vj]
        alloc t: f32[2] in register {
          t[0] = X[vi, vj] - S[vi]
          t[1] = t[0] + 1f32
          Y[vi, vj] = select(vj < 5, t[1], t[0])
        }
      }
    }
  }
}
)";
  ExpectPipelineKeepsMeaning(text, "norm", {{{"m", 0}}, {{"m", 1}}, {{"m", 5}}});
}

// The team's own intermediate, in a layout, between two parallel nests: a barrier and a workspace.
TEST(KernelPasses, SharedIntermediate) {
  const char text[] = R"(
func @two<m: 0..=40>(X: f32[m, 20], out Y: f32[m, 20]) {
  alloc T: f32[m, 20] layout (i, j) -> (j / 8, i, j % 8) in global {
    for i in 0..m parallel {
      for j in 0..20 {
        block T(vi: spatial = i, vj: spatial = j) {
          reads X[vi, vj]; writes T[vi, vj]
          T[vi, vj] = X[vi, vj] * 2f32
        }
      }
    }
    for k in 0..m parallel {
      for l in 0..20 {
        block Y(vi: spatial = k, vj: spatial = l) {
          reads T[m - 1 - vi, vj]; writes Y[vi, vj]
          Y[vi, vj] = T[m - 1 - vi, vj] + 1f32
        }
      }
    }
  }
}
)";
  ExpectPipelineKeepsMeaning(text, "two", {{{"m", 0}}, {{"m", 1}}, {{"m", 4}}, {{"m", 7}}});
}

// Written out, the value has 2^40 nodes; what is shared behind a condition, and reads what is only
// there where the condition holds, stays behind it.
TEST(NameShared, ValuesThatMeetThemselvesStayShort) {
  const std::string behind = "((x[i + 8] * 2f32 + 1f32) * 2f32 + 1f32)";
  const Module before = Parse(R"(
func @f(x: f32[16], out y: f32[16]) {
  for i in 0..16 {
    y[i] = select(i < 8, )" + behind +
                              " * " + behind + R"(, x[i])
  }
}
)");
  const Func f = before.Find("f");
  const Func grown = WithBody(f, PostOrderRewrite(f->body, [&](const NodeRef& n) -> NodeRef {
                                if (const auto* product = As<Binary>(n);
                                    product && StructuralEqual(product->lhs, product->rhs))
                                  return product->lhs * product->lhs;
                                const auto* store = As<Store>(n);
                                if (!store) return n;
                                Expr deep = store->value;
                                for (int k = 0; k < 40; ++k)
                                  deep = (deep + deep) * FloatConst::Make(DType::Float(32), 0.5);
                                return Store::Make(store->buffer, store->indices, deep);
                              }));
  Module after;
  after.Add(NameShared(grown));
  EXPECT_LT(Print(after).size(), 10'000u);
  ExpectSameMeaning(before, after, "f");
}

}  // namespace
}  // namespace tenon

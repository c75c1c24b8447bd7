// What NVRTC makes of emitted source: facts of the PTX that speed rests on, for every architecture.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "cuda.h"
#include "matmul.h"

namespace tenon {
namespace {

using codegen::CompileCuda;
using codegen::CudaFormat;
using test::Has;
using test::PtxOf;

TEST(Nvrtc, MatmulOnEveryArchitecture) {
  NEEDS_NVRTC();
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"}) {
    const std::string ptx = PtxOf(test::kMatmul, arch);
    EXPECT_TRUE(Has(ptx, std::string(".target ") + arch)) << arch;
    EXPECT_TRUE(Has(ptx, "ld.global.nc.v4.f32")) << arch;
    EXPECT_TRUE(Has(ptx, "st.shared.v4.f32")) << arch;
    EXPECT_TRUE(Has(ptx, "st.global.v4.f32")) << arch;
    EXPECT_TRUE(Has(ptx, "bar.sync")) << arch;
    EXPECT_TRUE(Has(ptx, "fma.rn.f32")) << arch;
    EXPECT_TRUE(Has(ptx, ".maxntid 256")) << arch;
    EXPECT_FALSE(Has(ptx, ".local")) << arch;
  }
}

TEST(Nvrtc, CubinIsAnElfFile) {
  NEEDS_NVRTC();
  auto cubin = CompileCuda(test::SourceOf(test::kMatmul, "sm_90a"), "matmul.cu", "sm_90a",
                           CudaFormat::kCubin);
  ASSERT_TRUE(cubin) << ToString(cubin.errors());
  EXPECT_EQ(cubin->substr(0, 4),
            "\x7f"
            "ELF");
}

std::string Threads(const std::string& body, const std::string& params) {
  return "func @f(" + params + ") target \"cuda\" {\n  for t in 0..128 thread threadIdx.x {\n" +
         body + "\n  }\n}\n";
}

// What a block allows decides: rounding products, and the machine's approximations.
TEST(Nvrtc, ArithmeticIsWhatTheBlockAllows) {
  NEEDS_NVRTC();
  auto ptx = [](const std::string& mode) {
    return PtxOf(
        Threads("    block b() fp: " + mode + " { C[t] = exp(A[t]) / C[t] + A[t] * A[t + 1] }",
                "A: f32[129], out C: f32[128]"));
  };
  const std::string strict = ptx("strict"), contract = ptx("contract"), reassoc = ptx("reassoc");
  EXPECT_TRUE(Has(strict, "mul.f32") || Has(strict, "mul.rn.f32"));
  EXPECT_TRUE(Has(strict, "div.rn.f32"));
  EXPECT_TRUE(Has(contract, "div.rn.f32"));
  EXPECT_TRUE(Has(reassoc, "div.approx"));
  EXPECT_FALSE(Has(reassoc, "div.rn"));
  EXPECT_LT(reassoc.size(), contract.size());
}

TEST(Nvrtc, HalvesAreConvertedByInstructions) {
  NEEDS_NVRTC();
  auto ptx = [](const std::string& type, const char* arch) {
    return PtxOf(
        Threads("    C[t] = A[t] + A[t]", "A: " + type + "[128], out C: " + type + "[128]"), arch);
  };
  EXPECT_TRUE(Has(ptx("f16", "sm_75"), "cvt.rn.f16.f32"));
  EXPECT_TRUE(Has(ptx("bf16", "sm_80"), "cvt.rn.bf16.f32"));
  EXPECT_FALSE(Has(ptx("bf16", "sm_75"), "cvt.rn.bf16.f32"));
}

// NVRTC's dot products of halves widen a negative sum of small unsigned numbers as if it were none,
// an index that is 2^32 too large.
TEST(Nvrtc, NegativeSumsOfSmallNumbers) {
  NEEDS_NVRTC();
  const std::string ptx = PtxOf(R"(func @f<n>(A: f64[n * 54], out C: f64[1728]) target "cuda" {
  for z in 0..27 thread blockIdx.z {
    for t in 0..64 thread threadIdx.x {
      C[z * 64 + t] = A[n * (z % 3) * 9 + n * (z / 3 % 3) * 3 + t - z % 3 * 72 - z / 3 % 3 * 24]
    }
  }
}
)");
  EXPECT_TRUE(Has(ptx, "ld.global"));
  EXPECT_FALSE(Has(ptx, "dp2a"));
}

// Every atomic of the table, and a fence on the side that the order speaks of.
TEST(Nvrtc, Atomics) {
  NEEDS_NVRTC();
  std::string params, body;
  for (const std::string type : {"i32", "u32", "i64", "u64", "f32", "f64"}) {
    params += fmt::format("{}out C{}: {}[128]", params.empty() ? "" : ", ", type, type);
    std::vector<const char*> ops = {"+"};
    if (type != "f64") ops.insert(ops.end(), {"min", "max"});
    if (type[0] != 'f') ops.insert(ops.end(), {"bitand", "bitor", "bitxor"});
    for (const char* op : ops)
      body += fmt::format("    atomic {} C{}[t], 1{} relaxed at grid\n", op, type, type);
  }
  const std::string ptx = PtxOf(Threads(body, params));
  EXPECT_FALSE(Has(ptx, "membar"));
  EXPECT_TRUE(Has(ptx, ".add.f32"));
  EXPECT_TRUE(Has(ptx, ".max.s64"));
  EXPECT_TRUE(Has(ptx, ".cas.b32"));
  const std::string ordered = test::SourceOf(
      Threads("    atomic + C[0], 1i32 release at grid\n    atomic + C[1], 1i32 acquire at cta",
              "out C: i32[2]"));
  const size_t fence = ordered.find("__threadfence();"), first = ordered.find("atomicAdd");
  const size_t second = ordered.find("atomicAdd", first + 1);
  EXPECT_LT(fence, first);
  EXPECT_GT(ordered.find("__threadfence_block();"), second);
}

// Barriers of clusters and grids are the machine's own, and what a barrier is for is read again.
TEST(Nvrtc, BlocksMeet) {
  NEEDS_NVRTC();
  const std::string text = R"(
func @f(A: f32[8] align 64, out C: f32[8] align 64) target "cuda" {cooperative: true, noalias: true} {
  for b in 0..4 thread blockIdx.x {
    for c in 0..2 thread clusterCtaIdx.x {
      C[b * 2 + c] = A[b * 2 + c]
      sync cluster
      C[b * 2 + c] = C[b * 2 + (1 - c)]
      sync grid
      C[b * 2 + c] = C[(b * 2 + c + 1) % 8]
    }
  }
}
)";
  const std::string ptx = PtxOf(text, "sm_90");
  EXPECT_TRUE(Has(ptx, "barrier.cluster.arrive.release.aligned"));
  EXPECT_TRUE(Has(ptx, "barrier.cluster.wait.acquire.aligned"));
  EXPECT_TRUE(Has(ptx, "%envreg1"));
  EXPECT_TRUE(Has(ptx, "ld.acquire.gpu.global.u32"));
  const std::string source = test::SourceOf(text, "sm_90");
  EXPECT_TRUE(Has(source, "(blockIdx.x / 2)")) << source;
  EXPECT_TRUE(Has(source, "(blockIdx.x % 2)"));
  EXPECT_FALSE(Has(source, "float* __restrict__ C"));
}

// Every function that the language is said to have exists, for f32 and f64; so do the helpers.
TEST(Nvrtc, FunctionsAndHelpersExist) {
  NEEDS_NVRTC();
  std::string body;
  for (const char* type : {"f32", "f64"}) {
    for (const char* f :
         {"exp",        "exp2",  "log",   "log2",  "sqrt",  "rsqrt", "sin",     "cos",
          "tan",        "tanh",  "erf",   "abs",   "floor", "ceil",  "sigmoid", "trunc",
          "round_even", "exp10", "expm1", "log10", "log1p", "asin",  "acos",    "atan",
          "sinh",       "cosh",  "asinh", "acosh", "atanh"})
      body += fmt::format("    C{t}[t] = {f}(A{t}[t])\n", fmt::arg("t", type), fmt::arg("f", f));
    body += fmt::format(
        "    C{t}[t] = fma(A{t}[t], A{t}[t], pow(A{t}[t], 2{t}))\n"
        "    C{t}[t] = atan2(A{t}[t], hypot(A{t}[t], 2{t}))\n"
        "    C{t}[t] = select(is_nan(A{t}[t]) || is_inf(A{t}[t]), inf.{t}, nan.{t})\n"
        "    C{t}[t] = min(max(A{t}[t], 0{t}), A{t}[t] % 3{t})\n"
        "    C{t}[t] = {t}(i32(A{t}[t])) + {t}(u64(A{t}[t])) + {t}(i8(A{t}[t]))\n"
        "    C{t}[t] = {t}(f16(A{t}[t])) + {t}(bf16(A{t}[t]))\n",
        fmt::arg("t", type));
  }
  body += "    Ci[t] = Ai[t] / 3i64 + Ai[t] % 5i64 + (Ai[t] << 2i64) + (Ai[t] >> 1i64)\n";
  body += "    Ci[t] = pow(abs(Ai[t]), 3i64) + min(Ai[t], 4611686018427387904i64)\n";
  body +=
      "    Ci[t] = popcount(Ai[t]) + clz(Ai[t]) + i64(clz(i8(Ai[t]))) + "
      "i64(popcount(i32(Ai[t])))\n";
  PtxOf(Threads(body,
                "Af32: f32[128], Af64: f64[128], Ai: i64[128], out Cf32: f32[128], out Cf64: "
                "f64[128], out Ci: i64[128]"));
}

TEST(Nvrtc, DeviceFunctionsAndDynamicSharedMemory) {
  NEEDS_NVRTC();
  const std::string ptx = PtxOf(
      "func @twice(X: f32[1], out Y: f32[1], s: f32) kind device target \"cuda\" {\n"
      "  Y[0] = X[0] * s\n}\n" +
      Threads("    alloc s: f32[20000] in shared\n    s[t] = A[t]\n    sync cta\n    sync warp\n"
              "    call @twice(s[127 - t..+1], C[t..+1]; 2f32)",
              "A: f32[128], out C: f32[128]"));
  EXPECT_TRUE(Has(ptx, ".extern .shared")) << ptx;
}

// ---- NVRTC itself ----

TEST(Nvrtc, AnArchitectureThatItCannotMakeNamesTheVersion) {
  NEEDS_NVRTC();
  const int first = codegen::FindNvrtc()->archs.front();
  if (first > 53) {
    auto old = CompileCuda("", "a.cu", "sm_53", CudaFormat::kPtx);
    ASSERT_FALSE(old);
    EXPECT_TRUE(Has(ToString(old.errors()), "sm_53 needs NVRTC of CUDA 12, but "))
        << ToString(old.errors());
  }
  auto wrong = CompileCuda("", "a.cu", "gfx90a", CudaFormat::kPtx);
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(Has(ToString(wrong.errors()), "expected a CUDA architecture such as sm_80"));
}

TEST(Nvrtc, ErrorsNameTheLine) {
  NEEDS_NVRTC();
  auto bad = CompileCuda("__global__ void f() {\n  int x = y;\n  z();\n}\n", "mine.cu", "sm_80",
                         CudaFormat::kPtx);
  ASSERT_FALSE(bad);
  ASSERT_EQ(bad.errors().size(), 2u) << ToString(bad.errors());
  EXPECT_EQ(bad.errors()[0].loc.file, "mine.cu");
  EXPECT_EQ(bad.errors()[0].loc.line, 2);
  EXPECT_TRUE(Has(bad.errors()[0].message, "identifier \"y\" is undefined"));
  EXPECT_EQ(bad.errors()[1].loc.line, 3);
}

// Looked for once in a process, so in one of its own.
TEST(NvrtcDeathTest, AbsenceSaysWhereItWasLookedFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("TENON_NVRTC", "/nowhere", 1);
        auto made = CompileCuda("", "a.cu", "sm_80", CudaFormat::kPtx);
        fputs(made ? "made" : ToString(made.errors()).c_str(), stderr);
        exit(made ? 1 : 0);
      },
      testing::ExitedWithCode(0), "needs NVRTC of CUDA 12 or 13.*\n.*looked for /nowhere");
}

TEST(NvrtcDeathTest, IsLookedForBesideThePythonsOfPath) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::filesystem::path env = std::filesystem::path(testing::TempDir()) / "nvrtc_env";
  std::filesystem::create_directories(env / "bin");
  std::filesystem::create_directories(env / "lib/python3.12/site-packages/nvidia/cu13/lib");
  std::ofstream(env / "bin/python3") << "";
  // No library, but one that is there: the error lists what was tried.
  EXPECT_EXIT(
      {
        unsetenv("TENON_NVRTC");
        setenv("PATH", (env / "bin").c_str(), 1);
        auto made = CompileCuda("", "a.cu", "sm_80", CudaFormat::kPtx);
        fputs(made ? "made" : ToString(made.errors()).c_str(), stderr);
        exit(0);
      },
      testing::ExitedWithCode(0), "made|nvrtc_env/lib/python3.12/site-packages/nvidia/cu13/lib");
}

}  // namespace
}  // namespace tenon

// What NVRTC makes of emitted source: facts of the PTX that speed rests on, for every architecture.
#include "cuda.h"

namespace tenon {
namespace {

using codegen::CompileCuda;
using codegen::CudaFormat;
using test::Has;
using test::PtxOf;

// A tiled product: 64 x 64 of C by 16 x 16 threads, 4 x 4 each in registers, tiles in shared
// memory, brought there 16 bytes at a time.
constexpr char kMatmul[] = R"(
func @matmul(A: f32[1048576] align 64, B: f32[1048576] align 64, out C: f32[1048576] align 64)
    target "cuda" {noalias: true} {
  for by in 0..16 thread blockIdx.y {
    for bx in 0..16 thread blockIdx.x {
      for ty in 0..16 thread threadIdx.y {
        for tx in 0..16 thread threadIdx.x {
          alloc As: f32[1024] in shared
          alloc Bs: f32[1024] in shared
          alloc acc: f32[16] in local
          for i in 0..16 { acc[i] = 0f32 }
          for ko in 0..64 {
            As[ramp((ty * 16 + tx) * 4, 1, 4)] =
                A[ramp((by * 64 + (ty * 16 + tx) / 4) * 1024 + ko * 16 + tx % 4 * 4, 1, 4)]
            Bs[ramp((ty * 16 + tx) * 4, 1, 4)] =
                B[ramp((ko * 16 + ty) * 1024 + bx * 64 + tx * 4, 1, 4)]
            sync cta
            for k in 0..16 {
              for i in 0..4 {
                for j in 0..4 {
                  block update() fp: contract {
                    acc[i * 4 + j] = acc[i * 4 + j] + As[(ty * 4 + i) * 16 + k] * Bs[k * 64 + tx * 4 + j]
                  }
                }
              }
            }
            sync cta
          }
          for i in 0..4 {
            C[ramp((by * 64 + ty * 4 + i) * 1024 + bx * 64 + tx * 4, 1, 4)] = acc[ramp(i * 4, 1, 4)]
          }
        }
      }
    }
  }
}
)";

TEST(Nvrtc, MatmulOnEveryArchitecture) {
  NEEDS_NVRTC();
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"}) {
    const std::string ptx = PtxOf(kMatmul, arch);
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
  auto cubin =
      CompileCuda(test::SourceOf(kMatmul, "sm_90a"), "matmul.cu", "sm_90a", CudaFormat::kCubin);
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

// Every atomic of the table, and a fence on the side that the order speaks of.
TEST(Nvrtc, Atomics) {
  NEEDS_NVRTC();
  std::string params, body;
  for (const char* type : {"i32", "u32", "i64", "u64", "f32", "f64"}) {
    const std::string t = type, c = "C" + t;
    params += (params.empty() ? "" : ", ") + ("out " + c + ": " + t + "[128]");
    body += "    atomic + " + c + "[t], 1" + t + " relaxed at grid\n";
    if (t != "f64") {
      for (const char* op : {"min", "max"})
        body += "    atomic " + std::string(op) + " " + c + "[t], 1" + t + " relaxed at grid\n";
    }
    if (t[0] != 'f') {
      for (const char* op : {"bitand", "bitor", "bitxor"})
        body += "    atomic " + std::string(op) + " " + c + "[t], 1" + t + " relaxed at grid\n";
    }
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

// Every function that the language is said to have exists, for f32 and f64; so do the helpers.
TEST(Nvrtc, FunctionsAndHelpersExist) {
  NEEDS_NVRTC();
  std::string body;
  for (const char* type : {"f32", "f64"}) {
    const std::string t = type, x = "A" + t + "[t]", c = "    C" + t + "[t] = ";
    for (const char* f : {"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tan",
                          "tanh", "erf", "sigmoid", "abs", "floor", "ceil", "trunc", "round_even"})
      body += c + f + "(" + x + ")\n";
    body += c + "fma(" + x + ", " + x + ", pow(" + x + ", 2" + t + "))\n";
    body += c + "select(is_nan(" + x + ") || is_inf(" + x + "), inf." + t + ", nan." + t + ")\n";
    body += c + "min(max(" + x + ", 0" + t + "), " + x + " % 3" + t + ")\n";
    body += c + t + "(i32(" + x + ")) + " + t + "(u64(" + x + ")) + " + t + "(i8(" + x + "))\n";
    body += c + t + "(f16(" + x + ")) + " + t + "(bf16(" + x + "))\n";
  }
  body += "    Ci[t] = Ai[t] / 3i64 + Ai[t] % 5i64 + (Ai[t] << 2i64) + (Ai[t] >> 1i64)\n";
  body += "    Ci[t] = pow(abs(Ai[t]), 3i64) + min(Ai[t], 4611686018427387904i64)\n";
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

}  // namespace
}  // namespace tenon

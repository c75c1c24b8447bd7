// The text of emitted OpenCL C, and what is refused.
#include "opencl.h"

namespace tenon {
namespace {

using test::ErrorOf;
using test::Has;
using test::SourceOf;

std::string Threads(const std::string& body, const std::string& params = "out C: f32[1024]") {
  return "func @f(" + params + ") target \"opencl\" {\n  for t in 0..128 thread threadIdx.x {\n" +
         body + "\n  }\n}\n";
}

std::string BodyOf(const std::string& source) {
  return source.substr(source.find("value##UL\n") + 10);
}

// Address spaces, the group's size, shared memory before everything else, wide accesses.
TEST(OpenClSource, ReadsLikeOpenCl) {
  EXPECT_EQ(BodyOf(SourceOf(R"(
func @reverse<n: 1..=65536 step 4>(A: f32[n] align 64, out C: f32[n] align 64)
    target "opencl" {noalias: true} {
  for bx in 0..(n + 255) / 256 thread blockIdx.x {
    for tx in 0..64 thread threadIdx.x {
      let i = bx * 256 + tx * 4
      if i < n {
        alloc s: f32[256] in shared
        s[ramp(252 - tx * 4, 1, 4)] = A[ramp(i, 1, 4)]
        C[ramp(i, 1, 4)] = s[ramp(252 - tx * 4, 1, 4)]
      }
    }
  }
}
)")),
            R"(
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void reverse(
    const __global float* restrict A, __global float* restrict C, int64_t n_64) {
  const int32_t n = (int32_t)n_64;
  __local __attribute__((aligned(16))) float s[256];
  const int32_t bx = (int32_t)get_group_id(0);
  const int32_t tx = (int32_t)get_local_id(0);
  const int32_t i = bx * 256 + tx * 4;
  if (i < n) {
    __attribute__((aligned(16))) float v0[4];
    *(float4*)(v0) = *(const __global float4*)(A + i);
    *(__local float4*)(s + 252 - tx * 4) = *(const float4*)(v0);
    __attribute__((aligned(16))) float v1[4];
    *(float4*)(v1) = *(const __local float4*)(s + 252 - tx * 4);
    *(__global float4*)(C + i) = *(const float4*)(v1);
  }
}
)");
}

// A function is written once for each choice of memories.
TEST(OpenClSource, FunctionsKnowTheMemoryOfTheirBuffers) {
  const std::string text = SourceOf(
      "func @put(X: f32[1], out Y: f32[1]) kind device target \"opencl\" { Y[0] = X[0] }\n" +
      Threads("    alloc s: f32[128] in shared\n    alloc r: f32[1] in register\n"
              "    call @put(C[t..t + 1], s[t..t + 1])\n    call @put(s[t..t + 1], r[0..1])\n"
              "    call @put(r[0..1], C[t..t + 1])\n    call @put(r[0..1], C[t..t + 1])"));
  EXPECT_TRUE(Has(text, "static void put(const __global float* X, __local float* Y);")) << text;
  EXPECT_TRUE(Has(text, "static void put_1(const __local float* X, float* Y);")) << text;
  EXPECT_TRUE(Has(text, "static void put_2(const float* X, __global float* Y);")) << text;
  EXPECT_FALSE(Has(text, "put_3")) << text;
}

// Where PoCL would lose the branch's other way; elsewhere a loop has the barriers that it says.
TEST(OpenClSource, ALoopWithBarriersDoesNotEndInABranch) {
  const std::string barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);";
  const auto count = [&](const std::string& last) {
    const std::string text =
        SourceOf(Threads("    alloc s: f32[128] in shared\n    for i in 0..8 {\n      s[t] = "
                         "1f32\n      sync cta\n" +
                         last + "\n    }"));
    size_t found = 0;
    for (size_t at = text.find(barrier); at != std::string::npos; at = text.find(barrier, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count("      if t < 1 { C[i] = s[127 - t] }"), 2U);
  EXPECT_EQ(count("      let j = i * 2\n      if t < 1 { C[j] = s[127 - t] }"), 2U);
  EXPECT_EQ(count("      C[i * 128 + t] = s[127 - t]"), 1U);
}

TEST(OpenClSource, ExtensionsAreAskedForWhereTheyAreUsed) {
  const std::string plain = SourceOf(Threads("    C[t] = 1f32"));
  EXPECT_FALSE(Has(plain, "EXTENSION"));
  EXPECT_TRUE(Has(SourceOf(Threads("    C[t] = 1f64", "out C: f64[128]")), "cl_khr_fp64 : enable"));
  const std::string sum =
      SourceOf(Threads("    atomic + C[0], 1i64 relaxed at grid", "out C: i64[1]"));
  EXPECT_TRUE(Has(sum, "cl_khr_int64_base_atomics : enable")) << sum;
  EXPECT_TRUE(Has(sum, "atom_add((__global long*)(C), (long)(INT64_C(1)));")) << sum;
  const std::string float_sum = SourceOf(Threads("    atomic + C[0], 1f32 relaxed at grid"));
  EXPECT_TRUE(Has(float_sum, "#define tn_cmpxchg_32 atomic_cmpxchg")) << float_sum;
  EXPECT_FALSE(Has(float_sum, "EXTENSION"));
}

TEST(OpenClSource, NamesOfTheLanguageAreNotTaken) {
  const std::string text = SourceOf(
      "func @f(local: f32[128], out half: f32[128]) target \"opencl\" {\n"
      "  for global in 0..128 thread threadIdx.x { half[global] = local[global] }\n}\n");
  EXPECT_TRUE(Has(text, "half_1[global_1] = local_1[global_1];")) << text;
  EXPECT_TRUE(Has(ErrorOf("func @dot(out C: f32[1]) target \"opencl\" { C[0] = 0f32 }\n"),
                  "a kernel needs an identifier that OpenCL C does not use itself"));
}

TEST(OpenClSource, RefusesWhatTheLanguageHasNot) {
  EXPECT_TRUE(
      Has(ErrorOf(Threads("    sync warp")), "function 'f': error: unsupported: sync warp"));
  EXPECT_TRUE(Has(ErrorOf(Threads("    atomic + C[0], 1f32 release at grid")),
                  "unsupported: atomic release at grid in OpenCL C"));
  EXPECT_TRUE(Has(ErrorOf("func @f(out C: f32[1], p: handle) target \"opencl\" { C[0] = 0f32 }\n"),
                  "unsupported: parameters of type handle"));
  EXPECT_TRUE(Has(ErrorOf("func @g(out C: f32[4]) kind device target \"opencl\" {\n"
                          "  alloc s: f32[4] in shared\n  s[0] = 1f32\n  C[0] = s[0]\n}\n" +
                          Threads("    call @g(C[t..t + 4])")),
                  "unsupported: shared memory of a function that is no kernel in OpenCL C"));
  EXPECT_TRUE(Has(ErrorOf(Threads("    for u in 0..4 thread threadIdx.y { C[u] = 0f32 }")),
                  "a block of 512 threads, but generic has at most 256"));
}

TEST(OpenClSource, RefusesOtherTargets) {
  auto source = codegen::EmitOpenCl(test::Parsed(Threads("    C[t] = 0f32")),
                                    Target::Parse("cuda -arch=sm_80").value(), {});
  ASSERT_FALSE(source);
  EXPECT_TRUE(Has(ToString(source.errors()), "OpenCL code is made for an opencl target but got"));
}

}  // namespace
}  // namespace tenon

// The text of emitted CUDA C++, and what is refused.
#include "cuda.h"

namespace tenon {
namespace {

using test::BodyOf;
using test::ErrorOf;
using test::Has;
using test::SourceOf;

constexpr char kAdd[] = R"(
func @add<n: 1..=65536 step 4>(A: f32[n] align 64, B: f32[n] align 64, out C: f32[n] align 64)
    target "cuda" {noalias: true} {
  for bx in 0..(n + 511) / 512 thread blockIdx.x {
    for tx in 0..128 thread threadIdx.x {
      let i = bx * 512 + tx * 4
      if i < n {
        C[ramp(i, 1, 4)] = A[ramp(i, 1, 4)] + B[ramp(i, 1, 4)]
      }
    }
  }
}
)";

// Four lanes in one access, indices of 32 bits that come in as 64, the block's size as a bound.
TEST(CudaSource, ReadsLikeCuda) {
  EXPECT_EQ(BodyOf(SourceOf(kAdd)), R"(
extern "C" __global__ __launch_bounds__(128) void add(const float* __restrict__ A,
    const float* __restrict__ B, float* __restrict__ C, int64_t n_64) {
  const int32_t n = (int32_t)n_64;
  const int32_t bx = (int32_t)blockIdx.x;
  const int32_t tx = (int32_t)threadIdx.x;
  const int32_t i = bx * 512 + tx * 4;
  if (i < n) {
    __align__(16) float v0[4];
    __align__(16) float v1[4];
    *(float4*)(v1) = *(const float4*)(A + i);
    __align__(16) float v2[4];
    *(float4*)(v2) = *(const float4*)(B + i);
    #pragma unroll
    for (int32_t lane = 0; lane < 4; ++lane) {
      v0[lane] = v1[lane] + v2[lane];
    }
    *(float4*)(C + i) = *(const float4*)(v0);
  }
}
)");
  EXPECT_EQ(SourceOf(kAdd), SourceOf(kAdd));
}

std::string Threads(const std::string& body, const std::string& params = "out C: f32[1024]") {
  return "func @f(" + params + ") target \"cuda\" {\n  for t in 0..128 thread threadIdx.x {\n" +
         body + "\n  }\n}\n";
}

// Loops over what a thread's registers can hold are unrolled; over more they are not, whose
// unrolled text no compiler would finish.
TEST(CudaSource, UnrollsWhatFitsRegisters) {
  auto is_unrolled = [](int count) {
    const std::string n = std::to_string(count);
    const std::string source = SourceOf(Threads("alloc L: f32[" + n + "] in local\nfor i in 0.." +
                                                n + " { L[i] = 2f32 }\nC[t] = L[t % " + n + "]"));
    return source.find("#pragma unroll") != std::string::npos;
  };
  EXPECT_TRUE(is_unrolled(64));
  EXPECT_TRUE(is_unrolled(255));
  EXPECT_FALSE(is_unrolled(256));
  EXPECT_FALSE(is_unrolled(16384));
}

// What another thread writes before a barrier is read anew after it: no promise says that only this
// thread writes there.
TEST(CudaSource, MemoryThatThreadsExchangeIsNotRestricted) {
  const std::string source = SourceOf(R"(
func @f(A: f32[64], out C: f32[64], out D: f32[64]) target "cuda" {noalias: true} {
  for t in 0..64 thread threadIdx.x {
    C[t] = A[t]
    sync cta
    D[t] = C[63 - t]
  }
}
)");
  EXPECT_NE(source.find("f(const float* __restrict__ A, float* C,\n    float* __restrict__ D)"),
            std::string::npos)
      << source;
}

// What is known of an address decides how much moves at once.
TEST(CudaSource, AccessesAreAsWideAsAlignmentIsProved) {
  auto copy = [](const char* index, const char* align) {
    return SourceOf(Threads(std::string("    C[ramp(") + index + ", 1, 4)] = broadcast(1f32, 4)",
                            std::string("out C: f32[1024]") + align));
  };
  EXPECT_TRUE(Has(copy("t * 4", " align 16"), "(float4*)(C"));
  EXPECT_TRUE(Has(copy("t * 2", " align 16"), "(float2*)(C"));
  EXPECT_TRUE(Has(copy("t * 4", " align 8"), "(float2*)(C"));
  EXPECT_FALSE(Has(copy("t", " align 16"), "(float2*)(C"));
  EXPECT_FALSE(Has(copy("t * 4", ""), "(float2*)(C"));
  const std::string halves = SourceOf(Threads("    C[ramp(t * 4, 1, 4)] = A[ramp(t * 4, 1, 4)]",
                                              "A: f16[512] align 16, out C: f16[512] align 16"));
  EXPECT_TRUE(Has(halves, "*(uint2*)(C + t * 4) = *(const uint2*)(v0);")) << halves;
}

// A lane that may not be read is not, wide or narrow.
TEST(CudaSource, LoadsOfAnUntakenSideStayThere) {
  const std::string text =
      SourceOf(Threads("    C[ramp(t * 4, 1, 4)] = select(ramp(t * 4, 1, 4) < broadcast(10, 4), "
                       "A[ramp(t * 4, 1, 4)], broadcast(0f32, 4))",
                       "A: f32[10] align 16, out C: f32[512] align 16"));
  EXPECT_FALSE(Has(text, "float4*)(A")) << text;
  EXPECT_TRUE(Has(text, "float4*)(C")) << text;
}

// Where the side is the same for all lanes it is a branch with a wide load: the last tile's rows.
TEST(CudaSource, SidesOfAllLanesAreWide) {
  const auto text = [](const std::string& from, const std::string& param) {
    return SourceOf(Threads("    C[ramp(t, 128, 4)] = select(t < 100, " + from +
                                "[ramp(t * 4, 1, 4)], broadcast(0f32, 4))",
                            param + "A: f32[512] align 16, out C: f32[512]"));
  };
  const std::string memory = text("A", "");
  EXPECT_TRUE(Has(memory, "if (t < 100) {")) << memory;
  EXPECT_TRUE(Has(memory, "= *(const float4*)(A + t * 4);")) << memory;
  EXPECT_FALSE(Has(memory, "A[")) << memory;
  const std::string odd = text("B", "B: f32[512], ");  // nothing is known of its address
  EXPECT_FALSE(Has(odd, "if (t < 100) {")) << odd;
}

TEST(CudaSource, IndicesAreNarrowOnlyWhereTheyFit) {
  auto text = [](const std::string& range) {
    return SourceOf("func @f<n: 1.." + range +
                    ">(out C: f32[n]) target \"cuda\" {\n"
                    "  for b in 0..(n + 127) / 128 thread blockIdx.x {\n"
                    "    for t in 0..128 thread threadIdx.x {\n"
                    "      if b * 128 + t < n { C[b * 128 + t] = 1f32 }\n    }\n  }\n}\n");
  };
  EXPECT_TRUE(Has(text("=2147483520"), "const int32_t b"));
  EXPECT_TRUE(Has(text("=2147483647"), "const int64_t b"));  // n + 127 does not fit
  EXPECT_TRUE(Has(text(""), "const int64_t b"));
}

TEST(CudaSource, SharedMemoryAbove48KiBIsTheLaunchs) {
  auto text = [](int64_t floats, const std::string& arch) {
    const std::string n = std::to_string(floats);
    return Threads("    alloc a: f32[16] in shared\n    alloc s: f32[" + n +
                   "] in shared align 128\n    a[0] = 1f32\n    s[t] = 1f32\n    sync cta\n"
                   "    C[t] = s[127 - t] + a[0]");
  };
  EXPECT_TRUE(Has(SourceOf(text(12000, "")), "__shared__ __align__(128) float s[12000];"));
  const std::string large = SourceOf(text(20000, ""));
  EXPECT_TRUE(Has(large, "extern __shared__ __align__(1024) unsigned char tn_shared[];"));
  EXPECT_TRUE(Has(large, "float* const s = (float*)(tn_shared + 128);"));
  EXPECT_TRUE(Has(ErrorOf(text(60000, "")), "240128 bytes of shared memory in a block, but sm_80"));
}

TEST(CudaSource, HostFunctionsAreLeftOut) {
  const std::string text = SourceOf(std::string(kAdd) +
                                    "func @main() kind host target \"llvm\" { return 0i32 }\n"
                                    "func @cpu(out C: f32[4]) target \"llvm\" { C[0] = 0f32 }\n");
  EXPECT_FALSE(Has(text, "main"));
  EXPECT_FALSE(Has(text, "cpu"));
}

TEST(CudaSource, RefusesWhatNoThreadCanRun) {
  EXPECT_TRUE(Has(ErrorOf(Threads("    C[team_rank<index>()] = 1f32")),
                  "function 'f': error: unsupported: team_rank on a GPU"));
  EXPECT_TRUE(Has(ErrorOf(Threads("    extern<handle>(\"puts\")")), "extern on a GPU"));
  EXPECT_TRUE(Has(ErrorOf(Threads("    alloc g: f32[4] in global\n    g[0] = 1f32")),
                  "unsupported: alloc of g in global memory on a GPU"));
  EXPECT_TRUE(Has(ErrorOf(Threads("    sync cluster")), "sync cluster needs sm_90"));
  EXPECT_TRUE(Has(ErrorOf(Threads("    sync grid")), "sync grid in a launch that is not coop"));
  EXPECT_TRUE(Has(ErrorOf(Threads("    sync team")), "unsupported: sync team"));
  EXPECT_TRUE(Has(ErrorOf(Threads("    for i in 0..4 parallel { C[i] = 0f32 }")), "parallel loop"));
  EXPECT_TRUE(Has(ErrorOf(Threads("    atomic * C[0], 2f32 relaxed at grid")), "atomic * of f32"));
}

TEST(CudaSource, RefusesWhatIsNotInThreadForm) {
  EXPECT_TRUE(Has(ErrorOf(Threads("    if t < 4 {\n      for u in 0..4 thread threadIdx.y {\n"
                                  "        C[u] = 0f32\n      }\n    }")),
                  "the loop 'u' over threadIdx.y is not part of the nest"));
  EXPECT_TRUE(Has(ErrorOf(Threads("    for u in 0..4 thread threadIdx.x { C[u] = 0f32 }")),
                  "two loops over threadIdx.x"));
  EXPECT_TRUE(Has(ErrorOf(Threads("    for u in 0..16 thread threadIdx.y { C[u] = 0f32 }")),
                  "a block of 2048 threads, but sm_80 has at most 1024"));
  EXPECT_TRUE(Has(ErrorOf(Threads("    for u in 0..4 thread vthread { C[u] = 0f32 }")),
                  "the loop 'u' over vthread is not part of the nest"));
  EXPECT_TRUE(Has(ErrorOf("func @f<n>(out C: f32[n]) target \"cuda\" {\n"
                          "  for t in 0..n thread threadIdx.x { C[t] = 0f32 }\n}\n"),
                  "threadIdx.x needs a constant number of threads"));
}

TEST(CudaSource, RefusesOtherTargets) {
  auto source = codegen::EmitCuda(test::Parsed(kAdd), Target::Parse("opencl").value(), {});
  ASSERT_FALSE(source);
  EXPECT_TRUE(Has(ToString(source.errors()), "CUDA code is made for a cuda target but got"));
}

}  // namespace
}  // namespace tenon

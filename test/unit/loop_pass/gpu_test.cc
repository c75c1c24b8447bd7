// A scheduled GPU kernel through all passes up to code generation: blocks, a tile in shared memory
// loaded by all threads, sums in their own.
#include <gtest/gtest.h>

#include "ir/visit.h"
#include "pass_test.h"

namespace tenon {
namespace {

constexpr char kMatmul[] = R"(
func @f<n: 1..=64>(A: f32[n, 16], B: f32[16, n], out C: f32[n, n]) target "cuda" {
  alloc B.shared: f32[16, n] in shared
  alloc A.shared: f32[n, 16] in shared
  alloc C.local: f32[n, n] in local
  for i.0 in 0..(n + 7) / 8 thread blockIdx.y {
    for j.0 in 0..(n + 7) / 8 thread blockIdx.x {
      for k.0 in 0..4 {
        for A.shared.ax0_2 in 0..8 thread threadIdx.y {
          for A.shared.ax1_2 in 0..4 thread threadIdx.x {
            block A.shared(A.shared.v0: spatial in 0..n = i.0 * 8 + A.shared.ax0_2, A.shared.v1: spatial in 0..16 = k.0 * 4 + A.shared.ax1_2) where i.0 * 8 + A.shared.ax0_2 < n {
              reads A[A.shared.v0, A.shared.v1]; writes A.shared[A.shared.v0, A.shared.v1]
              A.shared[A.shared.v0, A.shared.v1] = A[A.shared.v0, A.shared.v1]
            }
          }
        }
        for B.shared.ax0_2 in 0..4 thread threadIdx.y {
          for B.shared.ax1_2 in 0..8 thread threadIdx.x {
            block B.shared(B.shared.v0: spatial in 0..16 = k.0 * 4 + B.shared.ax0_2, B.shared.v1: spatial in 0..n = j.0 * 8 + B.shared.ax1_2) where j.0 * 8 + B.shared.ax1_2 < n {
              reads B[B.shared.v0, B.shared.v1]; writes B.shared[B.shared.v0, B.shared.v1]
              B.shared[B.shared.v0, B.shared.v1] = B[B.shared.v0, B.shared.v1]
            }
          }
        }
        for i.1 in 0..8 thread threadIdx.y {
          for j.1 in 0..8 thread threadIdx.x {
            for k.1 in 0..4 {
              block C(vi: spatial in 0..n = i.0 * 8 + i.1, vj: spatial in 0..n = j.0 * 8 + j.1, vk: reduce in 0..16 = k.0 * 4 + k.1) where i.0 * 8 + i.1 < n && j.0 * 8 + j.1 < n fp: contract {
                reads A.shared[vi, vk], B.shared[vk, vj]; writes C.local[vi, vj]
                init { C.local[vi, vj] = 0f32 }
                C.local[vi, vj] = C.local[vi, vj] + A.shared[vi, vk] * B.shared[vk, vj]
              }
            }
          }
        }
      }
      for C.local.ax0_2 in 0..8 thread threadIdx.y {
        for C.local.ax1_2 in 0..8 thread threadIdx.x {
          block C.local(vi.local: spatial in 0..n = i.0 * 8 + C.local.ax0_2, vj.local: spatial in 0..n = j.0 * 8 + C.local.ax1_2) where i.0 * 8 + C.local.ax0_2 < n && j.0 * 8 + C.local.ax1_2 < n {
            reads C.local[vi.local, vj.local]; writes C[vi.local, vj.local]
            C[vi.local, vj.local] = C.local[vi.local, vj.local]
          }
        }
      }
    }
  }
}
)";

TEST(GpuKernels, ScheduledMatmul) {
  const Module before = Parse(kMatmul);
  const Module after =
      RunPasses(before, {"compact_buffers", "lower_blocks", "simplify", "bind_threads",
                         "split_guards", "simplify", "plan_storage", "flatten_storage", "vectorize",
                         "lower_parallel", "unroll", "simplify", "expand_math"});
  Status lowered = Verify(after, Stage::kLowered);
  ASSERT_TRUE(lowered) << ToString(lowered.errors());
  const Func f = before.Find("f"), g = after.Find("f");
  for (int64_t n : {1, 7, 8, 9, 17}) {
    InterpOptions options;
    options.dims["n"] = n;
    Expected<std::vector<InterpArg>> args = SmallIntegerArgs(*f, options.dims, 1);
    ASSERT_TRUE(args);
    std::vector<InterpArg> want = *args, got = *args;
    ASSERT_TRUE(Interpret(before, "f", want, options));
    for (InterpArg& arg : got) arg.shape = {arg.num_elements()};
    Expected<std::vector<InterpArg>> extra = SmallIntegerArgs(*g, options.dims, 1);
    ASSERT_TRUE(extra);
    got.insert(got.end(), extra->begin() + static_cast<int64_t>(got.size()), extra->end());
    Status ran = InterpretOrders(after, "f", got, options);
    ASSERT_TRUE(ran) << ToString(ran.errors()) << Print(after);
    EXPECT_EQ(got[2].bytes, want[2].bytes) << n;
  }
}

// Partial sums of threads, each adding its neighbour's; then rows turned round in shared memory.
constexpr char kRowSum[] = R"(
func @f<n: 1..=64>(A: f32[n, 32], out C: f32[n]) target "cuda" {
  for b in 0..n thread blockIdx.x {
    alloc S: f32[8] in shared
    for t in 0..8 thread threadIdx.x {
      S[t] = 0f32
      for k in 0..4 { S[t] = S[t] + A[b, t * 4 + k] }
    }
    alloc R: f32[2] in shared
    for u in 0..2 thread threadIdx.x {
      R[u] = 0f32
      for m in 0..4 { R[u] = R[u] + S[u * 4 + m] }
    }
    C[b] = R[0] + R[1]
  }
}
)";
constexpr char kTurned[] = R"(
func @f<n: 1..=64>(A: f32[n, 32], out C: f32[n, 32]) target "cuda" {
  for b in 0..n thread blockIdx.x {
    for k in 0..4 {
      alloc S: f32[8] in shared
      for t in 0..8 thread threadIdx.x { S[t] = A[b, k * 8 + t] }
      for u in 0..8 thread threadIdx.x { C[b, k * 8 + u] = S[7 - u] }
    }
  }
}
)";

// The module without the barrier of that number; null where it has less.
Func WithoutBarrier(const Func& func, int number) {
  int seen = 0;
  PrimFunc fields = *func;
  fields.body = PostOrderRewrite(func->body, [&](const NodeRef& n) -> NodeRef {
    if (n->kind != NodeKind::kSync || seen++ != number) return n;
    return Seq::Make({});
  });
  return seen > number ? PrimFunc::Make(std::move(fields)) : nullptr;
}

// What a kernel does without one of its barriers; "": the interpreter has nothing to say.
std::string ReportWithout(const Func& func) {
  Module module;
  module.Add(func);
  InterpOptions options;
  options.dims["n"] = 9;
  Expected<std::vector<InterpArg>> args = SmallIntegerArgs(*func, options.dims, 1);
  EXPECT_TRUE(args);
  const Status status = InterpretOrders(module, "f", *args, options);
  return status ? "" : ToString(status.errors());
}

TEST(GpuKernels, EachBarrierThatIsLeftOutIsReported) {
  for (const char* text : {kMatmul, kRowSum, kTurned}) {
    const Module module =
        RunPasses(Parse(text), {"compact_buffers", "lower_blocks", "simplify", "bind_threads"});
    const Func func = module.Find("f");
    EXPECT_EQ(ReportWithout(func), "");
    int barriers = 0;
    for (; Func fewer = WithoutBarrier(func, barriers); ++barriers) {
      const std::string report = ReportWithout(fewer);
      const bool says = report.find("with no sync between") != std::string::npos ||
                        report.find("is read before it is written") != std::string::npos;
      EXPECT_TRUE(says) << barriers << ": " << report << Print(fewer);
    }
    EXPECT_EQ(barriers, 2) << Print(func);
  }
}

}  // namespace
}  // namespace tenon

// Kernels in their bound form: right ones under every order of threads, and each report.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "interp/interp.h"
#include "unit/interp/support.h"

namespace tenon {
namespace {

std::vector<double> Count(int64_t n, const std::function<int64_t(int64_t)>& f) {
  std::vector<double> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<double>(f(i)));
  return out;
}

InterpArg F32(std::vector<int64_t> shape, const std::vector<double>& values) {
  return InterpArg::Tensor(DType::Float(32), std::move(shape), values);
}
InterpArg Out(std::vector<int64_t> shape) {
  return InterpArg::Output(DType::Float(32), std::move(shape));
}

std::vector<double> Values(const InterpArg& arg) {
  std::vector<double> out;
  for (int64_t i = 0; i < arg.num_elements(); ++i) out.push_back(arg.Get(i));
  return out;
}

// What the interpreter reports of a kernel of one output of 8 elements, in some order of threads.
std::string ReportOf(const std::string& body) {
  Module m = Parse("func @f(A: f32[8], out C: f32[8]) target \"cuda\" {bound: 1} {\n" + body + "}");
  std::vector<InterpArg> args{F32({8}, Count(8, [](int64_t i) { return i; })),
                              F32({8}, std::vector<double>(8))};
  Status status = InterpretOrders(m, "f", args);
  return status ? "" : ToString(status.errors());
}

TEST(Grid, VectorAdd) {
  Module m = Parse(R"(
func @f<n>(A: f32[n], B: f32[n], out C: f32[n]) target "cuda" {bound: 1} {
  for b in 0..(n + 7) / 8 thread blockIdx.x {
    for t in 0..8 thread threadIdx.x {
      if b * 8 + t < n { C[b * 8 + t] = A[b * 8 + t] + B[b * 8 + t] }
    }
  }
})");
  for (int64_t n : {0, 1, 7, 8, 9, 31}) {
    std::vector<InterpArg> args{F32({n}, Count(n, [](int64_t i) { return i; })),
                                F32({n}, Count(n, [](int64_t i) { return 2 * i; })), Out({n})};
    Status status = InterpretOrders(m, "f", args);
    ASSERT_TRUE(status) << ToString(status.errors());
    EXPECT_EQ(Values(args[2]), Count(n, [](int64_t i) { return 3 * i; }));
  }
}

// Tiles of 4 x 4 in shared memory, filled anew at each step of k; `sync` is the barrier at its end.
std::string Matmul(const char* first, const char* last) {
  return std::string(R"(
func @f<n>(A: f32[n, 8], B: f32[8, n], out C: f32[n, n]) target "cuda" {bound: 1} {
  for by in 0..(n + 3) / 4 thread blockIdx.y {
    for bx in 0..(n + 3) / 4 thread blockIdx.x {
      for ty in 0..4 thread threadIdx.y {
        for tx in 0..4 thread threadIdx.x {
          alloc SA: f32[4, 4] in shared
          alloc SB: f32[4, 4] in shared
          alloc acc: f32[1] in local
          acc[0] = 0
          for k in 0..2 {
            SA[ty, tx] = select(by * 4 + ty < n, A[by * 4 + ty, k * 4 + tx], 0f32)
            SB[ty, tx] = select(bx * 4 + tx < n, B[k * 4 + ty, bx * 4 + tx], 0f32)
            )") +
         first + R"(
            for i in 0..4 { acc[0] = acc[0] + SA[ty, i] * SB[i, tx] }
            )" +
         last + R"(
          }
          if by * 4 + ty < n && bx * 4 + tx < n { C[by * 4 + ty, bx * 4 + tx] = acc[0] }
        }
      }
    }
  }
})";
}

std::vector<InterpArg> MatmulArgs(int64_t n) {
  auto value = [](int64_t i) { return i * 7 % 5 - 2; };
  return {F32({n, 8}, Count(n * 8, value)), F32({8, n}, Count(n * 8, value)), Out({n, n})};
}

TEST(Grid, TiledMatmul) {
  Module m = Parse(Matmul("sync cta", "sync cta"));
  for (int64_t n : {0, 1, 3, 4, 5, 7}) {
    std::vector<InterpArg> args = MatmulArgs(n);
    Status status = InterpretOrders(m, "f", args);
    ASSERT_TRUE(status) << ToString(status.errors());
    for (int64_t i = 0; i < n * n; ++i) {
      double want = 0;
      for (int64_t k = 0; k < 8; ++k)
        want += args[0].Get(i / n * 8 + k) * args[1].Get(k * n + i % n);
      EXPECT_EQ(args[2].Get(i), want) << n << " " << i;
    }
  }
}

TEST(Grid, MatmulWithoutABarrierIsReported) {
  std::vector<InterpArg> args = MatmulArgs(4);
  // The first thread begins the next step while others still read the tile of this one.
  Status status = Interpret(Parse(Matmul("sync cta", "")), "f", args);
  ASSERT_FALSE(status);
  EXPECT_NE(ToString(status.errors())
                .find("race: SA[0, 0] is read by thread 1 of block 0 and "
                      "was written by thread 0 of block 0 with no sync between"),
            std::string::npos)
      << ToString(status.errors());
  args = MatmulArgs(4);
  status = Interpret(Parse(Matmul("", "sync cta")), "f", args);
  ASSERT_FALSE(status);
  // The first thread runs alone until its barrier, and finds memory that nobody has written.
  EXPECT_NE(ToString(status.errors()).find("SA[0, 1] is read before it is written"),
            std::string::npos)
      << ToString(status.errors());
}

// 16 threads, each with two of 32 elements, then halves: across the block, then within a warp.
TEST(Grid, BlockReduction) {
  Module m = Parse(R"(
func @f(A: f32[2, 64], out C: f32[2]) target "cuda" {bound: 1} {
  for b in 0..2 thread blockIdx.x {
    for t in 0..64 thread threadIdx.x {
      alloc S: f32[64] in shared
      S[t] = A[b, t]
      sync cta
      if t < 32 { S[t] = S[t] + S[t + 32] }
      sync cta
      for s in 0..5 {
        let h = index(16i32 >> i32(s))
        if t < h { S[t] = S[t] + S[t + h] }
        sync warp
      }
      if t == 0 { C[b] = S[0] }
    }
  }
})");
  std::vector<InterpArg> args{F32({2, 64}, Count(128, [](int64_t i) { return i; })), Out({2})};
  Status status = InterpretOrders(m, "f", args);
  ASSERT_TRUE(status) << ToString(status.errors());
  EXPECT_EQ(Values(args[1]), (std::vector<double>{2016, 6112}));
}

TEST(Grid, WarpBarriersOrderNoOtherWarp) {
  std::string report = ReportOf(R"(
  for t in 0..64 thread threadIdx.x {
    alloc S: f32[64] in shared
    S[t] = 1
    sync warp
    if t == 40 { C[0] = S[41] + S[3] }
  }
)");
  EXPECT_NE(report.find("race: S[3] is read by thread 40 of block 0 and was written by thread 3"),
            std::string::npos)
      << report;
}

TEST(Grid, WritesOfTwoThreads) {
  std::string report = ReportOf("  for t in 0..8 thread threadIdx.x { C[t / 2] = 1 }\n");
  EXPECT_NE(report.find("race: C[0] is written by thread 1 of block 0 and was written by thread 0 "
                        "of block 0 with no sync between"),
            std::string::npos)
      << report;
}

// Barriers of a block order nothing between blocks, whatever the order they happen to run in.
TEST(Grid, WritesOfTwoBlocks) {
  std::string report = ReportOf(R"(
  for b in 0..2 thread blockIdx.x {
    for t in 0..4 thread threadIdx.x {
      C[b * 4 + t] = A[t]
      sync cta
      if b == 1 { C[4 + t] = C[t] }
    }
  }
)");
  EXPECT_NE(report.find("race: C[0] is read by thread 0 of block 1 and was written by thread 0 of "
                        "block 0"),
            std::string::npos)
      << report;
}

TEST(Grid, DivergentBarriers) {
  std::string report = ReportOf(R"(
  for t in 0..8 thread threadIdx.x {
    C[t] = A[t]
    if t < 6 { sync cta }
  }
)");
  EXPECT_NE(report.find("sync cta: 6 of the 8 threads of block 0 wait at a barrier that thread 6 "
                        "never reaches"),
            std::string::npos)
      << report;
  report = ReportOf(R"(
  for t in 0..8 thread threadIdx.x {
    C[t] = A[t]
    if t < 6 { sync cta } else { sync cta }
  }
)");
  EXPECT_NE(
      report.find("sync cta: 8 of the 8 threads of block 0 wait at different barriers: thread "
                  "0 at one, thread 6 at another"),
      std::string::npos)
      << report;
}

// The content of shared memory is gone when its allocation is entered again.
TEST(Grid, UnwrittenSharedMemory) {
  std::string report = ReportOf(R"(
  for t in 0..8 thread threadIdx.x {
    for i in 0..2 {
      alloc S: f32[8] in shared
      if i == 0 { S[t] = A[t] }
      sync cta
      C[t] = S[7 - t]
      sync cta
    }
  }
)");
  EXPECT_NE(report.find("S[7] is read before it is written"), std::string::npos) << report;
}

TEST(Grid, AllocationsByScope) {
  Module m = Parse(R"(
func @f(out C: f32[2, 4], out D: f32[4]) target "cuda" {bound: 1} {
  for b in 0..2 thread blockIdx.x {
    for t in 0..4 thread threadIdx.x {
      alloc G: f32[2, 4] in global
      alloc S: f32[1] in shared
      alloc L: f32[1] in local
      alloc R: f32[1] in register
      L[0] = f32(t)
      R[0] = f32(b)
      if t == 2 { S[0] = f32(b + 5) }
      G[b, t] = L[0] + R[0]
      sync cta
      C[b, t] = S[0] + L[0] * 10f32
      if b == 0 { D[t] = G[0, 3 - t] }
    }
  }
})");
  std::vector<InterpArg> args{Out({2, 4}), Out({4})};
  Status status = InterpretOrders(m, "f", args);
  ASSERT_TRUE(status) << ToString(status.errors());
  EXPECT_EQ(Values(args[0]), (std::vector<double>{5, 15, 25, 35, 6, 16, 26, 36}));
  EXPECT_EQ(Values(args[1]), (std::vector<double>{3, 2, 1, 0}));
}

TEST(Grid, AtomicsDoNotRace) {
  Module m = Parse(R"(
func @f(A: f32[8], out C: f32[1]) target "cuda" {bound: 1} {
  for b in 0..2 thread blockIdx.x {
    for t in 0..4 thread threadIdx.x { atomic + C[0], A[b * 4 + t] relaxed at grid }
  }
})");
  std::vector<InterpArg> args{F32({8}, Count(8, [](int64_t i) { return i; })), F32({1}, {0})};
  Status status = InterpretOrders(m, "f", args);
  ASSERT_TRUE(status) << ToString(status.errors());
  EXPECT_EQ(args[1].Get(0), 28);
}

TEST(Grid, AtomicsRaceWithPlainAccesses) {
  std::string report = ReportOf(R"(
  for t in 0..8 thread threadIdx.x {
    atomic max C[0], f32(t) relaxed at grid
    if t == 3 { C[1] = C[0] }
  }
)");
  EXPECT_NE(report.find("race: C[0]"), std::string::npos) << report;
}

}  // namespace
}  // namespace tenon

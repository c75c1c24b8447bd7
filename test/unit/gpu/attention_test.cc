// A softmax between two products on tensor cores, in registers: every pass keeps its meaning, under
// every order of threads, and lanes exchange row maxima and sums by shuffles.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/codegen.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "driver/pipeline.h"
#include "interp/interp.h"
#include "intrin/tile_intrinsic.h"
#include "loop/parse.h"

namespace tenon {
namespace {

constexpr int64_t kRows = 16, kLength = 32, kWidth = 16;

// O = softmax(Q K^T) V, 16 rows of K and V at a time: a row's maximum so far and the sum of its
// weights, once in each of the four lanes that share the row.
constexpr char kKernel[] = R"(
func @f(Q: f16[16, 16], K: f16[32, 16], V: f16[32, 16], out O: f32[16, 16]) target "cuda -arch=sm_80" {
  for b in 0..1 thread blockIdx.x {
    alloc query: f16[16, 16] in fragment
    alloc right: f16[16, 16] in fragment
    alloc lower: f16[16, 16] in fragment
    alloc score: f32[16, 16] in fragment
    alloc weight: f16[16, 16] in fragment
    alloc sum: f32[16, 16] in fragment
    alloc most: f32[16, 4] in fragment
    alloc mine: f32[16, 4] in fragment
    alloc next: f32[16, 4] in fragment
    alloc total: f32[16, 4] in fragment
    alloc whole: f32[16, 4] in fragment
    alloc SQ: f16[16, 16] in shared
    for n0 in 0..16, m0 in 0..16 { SQ[n0, m0] = Q[n0, m0] }
    call @ptx.ldmatrix.a.f16(SQ, query; 16)
    for i0 in 0..16, j0 in 0..16 { sum[i0, j0] = 0 }
    for i1 in 0..16, q1 in 0..4 {
      most[i1, q1] = -1000
      total[i1, q1] = 0
    }
    for t in 0..2 {
      alloc SK: f16[16, 16] in shared
      alloc SV: f16[16, 16] in shared
      for n1 in 0..16, m1 in 0..16 {
        SK[n1, m1] = K[t * 16 + n1, m1]
        SV[n1, m1] = V[t * 16 + n1, m1]
      }
      for i2 in 0..16, j2 in 0..16 { score[i2, j2] = 0 }
      call @ptx.ldmatrix.b.f16(SK, right; 16)
      for n in 0..2 {
        call @ptx.mma.m16n8k16.f16(query, right[0..16, n * 8..+8], score[0..16, n * 8..+8])
      }
      for i3 in 0..16, q3 in 0..4 { mine[i3, q3] = most[i3, q3] }
      for i4 in 0..16, j4 in 0..16 { mine[i4, j4 / 2 % 4] = max(mine[i4, j4 / 2 % 4], score[i4, j4]) }
      call @ptx.quad.max.f32(mine, next)
      for i5 in 0..16, j5 in 0..16 { sum[i5, j5] = sum[i5, j5] * exp(most[i5, j5 / 2 % 4] - next[i5, j5 / 2 % 4]) }
      for i6 in 0..16, q6 in 0..4 {
        total[i6, q6] = total[i6, q6] * exp(most[i6, q6] - next[i6, q6])
        most[i6, q6] = next[i6, q6]
      }
      for i7 in 0..16, j7 in 0..16 {
        score[i7, j7] = exp(score[i7, j7] - most[i7, j7 / 2 % 4])
        total[i7, j7 / 2 % 4] = total[i7, j7 / 2 % 4] + score[i7, j7]
        weight[i7, j7] = f16(score[i7, j7])
      }
      call @ptx.ldmatrix.b.trans.f16(SV, lower; 16)
      for m in 0..2 {
        call @ptx.mma.m16n8k16.f16(weight, lower[0..16, m * 8..+8], sum[0..16, m * 8..+8])
      }
    }
    call @ptx.quad.add.f32(total, whole)
    for i8 in 0..16, j8 in 0..16 { O[i8, j8] = sum[i8, j8] / whole[i8, j8 / 2 % 4] }
  }
}
)";

Module Kernel() {
  auto module = ParseModule(kKernel, "kernel");
  EXPECT_TRUE(module) << (module ? "" : ToString(module.errors()));
  for (const char* name : {"ptx.ldmatrix.a.f16", "ptx.ldmatrix.b.f16", "ptx.ldmatrix.b.trans.f16",
                           "ptx.mma.m16n8k16.f16", "ptx.quad.max.f32", "ptx.quad.add.f32"}) {
    module->Add(*MeaningOf(*BuiltinTileIntrinsics().Find(name)));
  }
  return *module;
}

// Multiples of 1/8, so that products of factors are exact.
double Number(int64_t i) { return static_cast<double>((i * 7 + i / 5) % 13 - 6) / 8; }

InterpArg Numbers(std::vector<int64_t> shape, int64_t rows, int64_t from) {
  std::vector<double> values;
  for (int64_t i = 0; i < rows * kWidth; ++i) values.push_back(Number(i + from));
  return InterpArg::Tensor(DType::Float(16), std::move(shape), values);
}

double Wanted(int64_t row, int64_t column) {
  double sum = 0, total = 0;
  for (int64_t n = 0; n < kLength; ++n) {
    double score = 0;
    for (int64_t k = 0; k < kWidth; ++k)
      score += Number(row * kWidth + k) * Number(n * kWidth + k + 3);
    sum += std::exp(score) * Number(n * kWidth + column + 5);
    total += std::exp(score);
  }
  return sum / total;
}

void CheckAttention(const Module& module, const std::string& after, bool orders = false) {
  const bool flat = module.Find("f")->buffers[0]->rank() == 1;
  auto shape = [&](int64_t rows) {
    return flat ? std::vector<int64_t>{rows * kWidth} : std::vector<int64_t>{rows, kWidth};
  };
  std::vector<InterpArg> args{Numbers(shape(kRows), kRows, 0), Numbers(shape(kLength), kLength, 3),
                              Numbers(shape(kLength), kLength, 5),
                              InterpArg::Output(DType::Float(32), shape(kRows))};
  InterpOptions options;
  options.max_steps = int64_t{1} << 32;
  Status status =
      orders ? InterpretOrders(module, "f", args, options) : Interpret(module, "f", args, options);
  ASSERT_TRUE(status) << "after " << after << ": " << ToString(status.errors());
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kWidth; ++j)
      ASSERT_NEAR(args[3].Get(i * kWidth + j), Wanted(i, j), 2e-3) << "after " << after;
  }
}

TEST(Attention, EveryPassKeepsTheSoftmaxBetweenProducts) {
  const Target target = Target::Parse("cuda -arch=sm_80").value();
  Module module = Kernel();
  CheckAttention(module, "nothing");
  driver::PassHooks hooks;
  hooks.verify = true;
  hooks.after_pass = [&](const std::string& pass, const Module&, const Module& after, double) {
    CheckAttention(after, pass);
  };
  auto lowered =
      driver::RunPipeline(driver::DevicePipeline(), module, driver::ContextOf(target), hooks);
  ASSERT_TRUE(lowered) << ToString(lowered.errors());
  CheckAttention(*lowered, "everything", /*orders=*/true);
}

TEST(Attention, RowsAreReducedByShuffles) {
  if (auto nvrtc = codegen::FindNvrtc(); !nvrtc) GTEST_SKIP() << ToString(nvrtc.errors());
  const Target target = Target::Parse("cuda -arch=sm_80").value();
  auto lowered =
      driver::RunPipeline(driver::DevicePipeline(), Kernel(), driver::ContextOf(target), {});
  ASSERT_TRUE(lowered);
  auto source = codegen::EmitCuda(*lowered, target, {});
  ASSERT_TRUE(source) << ToString(source.errors());
  auto ptx = codegen::CompileCuda(*source, "f.cu", "sm_80", codegen::CudaFormat::kPtx);
  ASSERT_TRUE(ptx) << ToString(ptx.errors()) << *source;
  size_t shuffles = 0;
  for (size_t at = ptx->find("shfl.sync.bfly"); at != std::string::npos;
       at = ptx->find("shfl.sync.bfly", at + 1))
    ++shuffles;
  EXPECT_GE(shuffles, 8U) << *ptx;  // two rows a lane, two steps, maxima and sums
  EXPECT_EQ(ptx->find(".local"), std::string::npos) << *ptx;  // fragments are registers
}

}  // namespace
}  // namespace tenon

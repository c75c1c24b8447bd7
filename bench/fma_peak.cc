#include "fma_peak.h"

#include <cstdint>

#include "thread_rates.h"

namespace tenon::bench {

namespace {

// Sixteen (twelve) independent chains hide the latency. Inline assembly, so that no compiler has a
// say.
constexpr int64_t kSteps = 100000;

__attribute__((target("avx512f"), noinline)) double Run512() {
  double start = ThreadSeconds();
  for (int64_t i = 0; i < kSteps; ++i) {
    asm volatile(
        "vfmadd231ps %%zmm0, %%zmm1, %%zmm8\n vfmadd231ps %%zmm0, %%zmm1, %%zmm9\n"
        "vfmadd231ps %%zmm0, %%zmm1, %%zmm10\n vfmadd231ps %%zmm0, %%zmm1, %%zmm11\n"
        "vfmadd231ps %%zmm0, %%zmm1, %%zmm12\n vfmadd231ps %%zmm0, %%zmm1, %%zmm13\n"
        "vfmadd231ps %%zmm0, %%zmm1, %%zmm14\n vfmadd231ps %%zmm0, %%zmm1, %%zmm15\n"
        "vfmadd231ps %%zmm0, %%zmm1, %%zmm16\n vfmadd231ps %%zmm0, %%zmm1, %%zmm17\n"
        "vfmadd231ps %%zmm0, %%zmm1, %%zmm18\n vfmadd231ps %%zmm0, %%zmm1, %%zmm19\n"
        "vfmadd231ps %%zmm0, %%zmm1, %%zmm20\n vfmadd231ps %%zmm0, %%zmm1, %%zmm21\n"
        "vfmadd231ps %%zmm0, %%zmm1, %%zmm22\n vfmadd231ps %%zmm0, %%zmm1, %%zmm23\n" ::
            : "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16",
              "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23");
  }
  return 16.0 * 16 * 2 * kSteps / (ThreadSeconds() - start) * 1e-9;
}
__attribute__((target("avx2,fma"), noinline)) double Run256() {
  double start = ThreadSeconds();
  for (int64_t i = 0; i < kSteps; ++i) {
    asm volatile(
        "vfmadd231ps %%ymm0, %%ymm1, %%ymm4\n vfmadd231ps %%ymm0, %%ymm1, %%ymm5\n"
        "vfmadd231ps %%ymm0, %%ymm1, %%ymm6\n vfmadd231ps %%ymm0, %%ymm1, %%ymm7\n"
        "vfmadd231ps %%ymm0, %%ymm1, %%ymm8\n vfmadd231ps %%ymm0, %%ymm1, %%ymm9\n"
        "vfmadd231ps %%ymm0, %%ymm1, %%ymm10\n vfmadd231ps %%ymm0, %%ymm1, %%ymm11\n"
        "vfmadd231ps %%ymm0, %%ymm1, %%ymm12\n vfmadd231ps %%ymm0, %%ymm1, %%ymm13\n"
        "vfmadd231ps %%ymm0, %%ymm1, %%ymm14\n vfmadd231ps %%ymm0, %%ymm1, %%ymm15\n" ::
            : "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
              "xmm14", "xmm15");
  }
  return 12.0 * 8 * 2 * kSteps / (ThreadSeconds() - start) * 1e-9;
}

}  // namespace

double FmaPeak() { return __builtin_cpu_supports("avx512f") ? Run512() : Run256(); }

double FmaPeak(int threads) {
  return SumOverThreads(threads, [] { return FmaPeak(); });
}

}  // namespace tenon::bench

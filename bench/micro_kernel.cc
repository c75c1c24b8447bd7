// What our code generation makes of packed GEMM micro-kernels: GFLOP/s, the ratio to the FMA peak
// of the same core at the same moment, and the milliseconds that a kernel costs to compile.
//
//   bench_micro_kernel [seconds per kernel, default 0.3] [-S: print the assembly instead]
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

#include "artifact/temporary_library.h"
#include "codegen/codegen.h"
#include "fma_peak.h"
#include "support/check.h"
#include "support/gemm_ir.h"
#include "target/target.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;
using MicroKernel = void (*)(const float*, const float*, float*, int64_t k, int64_t ldc);

// Processor time of this process: what compiling costs, whatever else the machine does.
double CpuMs() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

struct Tile {
  int64_t mr, nr;
};

float* AlignedFloats(int64_t n) {
  auto* p =
      static_cast<float*>(std::aligned_alloc(64, static_cast<size_t>((n * 4 + 63) / 64 * 64)));
  for (int64_t i = 0; i < n; ++i) p[i] = static_cast<float>(i % 7) * 0.25f;
  return p;
}

// Best of many short runs, peak and kernel taking turns, because the clock drifts.
void Measure(MicroKernel kernel, Tile tile, double seconds, double compile_ms) {
  constexpr int64_t kK = 384, kCalls = 200;
  float* a = AlignedFloats(kK * tile.mr);
  float* b = AlignedFloats(kK * tile.nr);
  float* c = AlignedFloats(tile.mr * tile.nr);
  double best = 0, peak = 0;
  for (auto start = Clock::now(); Seconds(start) < seconds;) {
    peak = std::max(peak, bench::FmaPeak());
    auto from = Clock::now();
    for (int64_t i = 0; i < kCalls; ++i) kernel(a, b, c, kK, tile.nr);
    const double flops = 2.0 * static_cast<double>(kCalls * kK * tile.mr * tile.nr);
    best = std::max(best, flops / Seconds(from) * 1e-9);
  }
  fmt::print("{:>3}x{:<3} {:>8.1f} GFLOP/s  peak {:>6.1f}  ratio {:.3f}  compile {:.2f} ms\n",
             tile.mr, tile.nr, best, peak, best / peak, compile_ms);
  std::free(a);
  std::free(b);
  std::free(c);
}

// Fifty different kernels, as a network has them, on `threads` threads.
void CompileMany(const Target& target, int32_t lanes, int threads) {
  constexpr int kKernels = 50;
  std::atomic<int> next{0};
  auto work = [&] {
    for (int i = next++; i < kKernels; i = next++) {
      Module module;
      const int64_t mr = 1 + i % (lanes == 16 ? 14 : 6);
      module.Add(test::GemmMicroKernel(fmt::format("kernel{}", i), mr, 2 * lanes, lanes));
      TN_CHECK(codegen::EmitObject(module, target, {}));
    }
  };
  const double cpu = CpuMs();
  auto start = Clock::now();
  std::vector<std::thread> workers;
  for (int t = 1; t < threads; ++t) workers.emplace_back(work);
  work();
  for (std::thread& w : workers) w.join();
  fmt::print("{} kernels on {} threads: {:.0f} ms, {:.2f} ms of processor each\n", kKernels,
             threads, Seconds(start) * 1e3, (CpuMs() - cpu) / kKernels);
}

int Run(double seconds, bool assembly) {
  const Target target = Target::Host();
  const int32_t lanes = target.VectorLanes(32);
  const std::vector<Tile> tiles =
      lanes == 16
          ? std::vector<Tile>{{12, 32}, {14, 32}, {13, 32}, {6, 64}, {8, 48}, {9, 48}, {1, 64}}
          : std::vector<Tile>{{4, 24}, {6, 16}, {4, 16}};
  fmt::print("target {}\n", target.ToString());
  for (Tile tile : tiles) {
    Module module;
    module.Add(test::GemmMicroKernel("kernel", tile.mr, tile.nr, lanes));
    if (assembly) {
      fmt::print("{}\n", *codegen::EmitAssembly(module, target, {}));
      continue;
    }
    const double start = CpuMs();
    const std::string object = *codegen::EmitObject(module, target, {});
    const double compile_ms = CpuMs() - start;
    auto library =
        artifact::LoadTemporaryLibrary({{"kernel.o", object}}, {"kernel"}, target.triple());
    if (!library) {
      fmt::print(stderr, "{}\n", ToString(library.errors()));
      return 1;
    }
    Measure(reinterpret_cast<MicroKernel>(library->Find("kernel")), tile, seconds, compile_ms);
  }
  if (assembly) return 0;
  for (int threads : {1, 2}) CompileMany(target, lanes, threads);
  return 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const bool assembly = argc > 1 && std::strcmp(argv[1], "-S") == 0;
  return tenon::Run(argc > 1 && !assembly ? std::atof(argv[1]) : 0.3, assembly);
}

#include "read_peak.h"

#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

namespace tenon::bench {

namespace {

using Clock = std::chrono::steady_clock;

// Inline assembly, so that no compiler leaves out loads whose values nobody wants. Eight lines a
// turn, prefetched well ahead as kernels that stream do: the hardware's own prefetching leaves a
// third of the rate.
constexpr int64_t kTurn = 512;
constexpr int64_t kAhead = 4096;

__attribute__((target("avx512f"), noinline)) void Read512(const std::byte* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kTurn) {
    const std::byte* p = from + at;
    for (int64_t line = 0; line < kTurn; line += 64) __builtin_prefetch(p + kAhead + line);
    asm volatile(
        "vmovups (%0), %%zmm0\n vmovups 64(%0), %%zmm1\n vmovups 128(%0), %%zmm2\n"
        "vmovups 192(%0), %%zmm3\n vmovups 256(%0), %%zmm4\n vmovups 320(%0), %%zmm5\n"
        "vmovups 384(%0), %%zmm6\n vmovups 448(%0), %%zmm7\n" ::"r"(p)
        : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "memory");
  }
}

__attribute__((target("avx"), noinline)) void Read256(const std::byte* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kTurn / 2) {
    const std::byte* p = from + at;
    for (int64_t line = 0; line < kTurn / 2; line += 64) __builtin_prefetch(p + kAhead + line);
    asm volatile(
        "vmovups (%0), %%ymm0\n vmovups 32(%0), %%ymm1\n vmovups 64(%0), %%ymm2\n"
        "vmovups 96(%0), %%ymm3\n vmovups 128(%0), %%ymm4\n vmovups 160(%0), %%ymm5\n"
        "vmovups 192(%0), %%ymm6\n vmovups 224(%0), %%ymm7\n" ::"r"(p)
        : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "memory");
  }
}

// Pages of 2 MiB where they are to be had, as weights have them.
class Memory {
 public:
  explicit Memory(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    constexpr size_t kPage = size_t{2} << 20;
    void* p =
        mmap(nullptr, bytes_ + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    mapped_ = static_cast<std::byte*>(p);
    const auto at = reinterpret_cast<uintptr_t>(p);
    begin_ = mapped_ + ((at + kPage - 1) / kPage * kPage - at);
    madvise(begin_, bytes_, MADV_HUGEPAGE);
    std::memset(begin_, 1, bytes_);
  }
  ~Memory() {
    if (mapped_) munmap(mapped_, bytes_ + (size_t{2} << 20));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  const std::byte* begin() const { return begin_; }

 private:
  size_t bytes_;
  std::byte* mapped_ = nullptr;
  std::byte* begin_ = nullptr;
};

}  // namespace

double ReadPeak(int64_t bytes, int threads) {
  const int64_t share = std::max<int64_t>(bytes / threads / kTurn, 1) * kTurn;
  const Memory memory(share * threads);
  if (!memory.begin()) return 0;
  const auto read = __builtin_cpu_supports("avx512f") ? Read512 : Read256;
  constexpr int kRounds = 5;
  std::barrier all(threads);
  double best = 0;
  const auto work = [&](int t) {
    const std::byte* from = memory.begin() + share * t;
    read(from, share);
    for (int r = 0; r < kRounds; ++r) {
      all.arrive_and_wait();
      const auto start = Clock::now();
      read(from, share);
      all.arrive_and_wait();
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (t == 0) best = std::max(best, static_cast<double>(share * threads) / seconds * 1e-9);
    }
  };
  std::vector<std::thread> workers;
  for (int t = 1; t < threads; ++t) workers.emplace_back(work, t);
  work(0);
  for (std::thread& w : workers) w.join();
  return best;
}

}  // namespace tenon::bench

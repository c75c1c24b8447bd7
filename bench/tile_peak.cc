#include "tile_peak.h"

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "thread_rates.h"

namespace tenon::bench {

namespace {

constexpr int64_t kPair = 2048;        // bytes of two tiles of 16 rows of 32 numbers
constexpr int64_t kPanel = 8 * kPair;  // of the operand that stays in the first-level cache
constexpr int64_t kBytes = 32 << 20;   // that a measurement streams: a millisecond or two

struct alignas(64) Row {
  std::byte bytes[64];
};

// Random numbers of bf16.
std::vector<Row> Numbers(int64_t bytes) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<Row> out(static_cast<size_t>(bytes) / sizeof(Row));
  for (Row& row : out) {
    for (size_t at = 0; at < sizeof(Row); at += 2) {
      const float value = normal(random);
      std::memcpy(row.bytes + at, reinterpret_cast<const std::byte*>(&value) + 2, 2);  // upper half
    }
  }
  return out;
}

// Eight tiles of 16 rows of 64 bytes.
struct TileConfig {
  uint8_t palette = 1;
  uint8_t start = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// All of the block by the panel again and again. The sums are nobody's.
__attribute__((target("amx-tile,amx-bf16"), noinline)) void Stream(const std::byte* panel,
                                                                   const std::byte* block,
                                                                   int64_t bytes) {
  constexpr int64_t kTile = kPair / 2, kRow = sizeof(Row);
  for (const std::byte* from = block; from < block + bytes; from += kPanel) {
    for (int64_t at = 0; at < kPanel; at += kPair) {
      _tile_loadd(4, panel + at, kRow);
      _tile_loadd(5, panel + at + kTile, kRow);
      _tile_loadd(6, from + at, kRow);
      _tile_loadd(7, from + at + kTile, kRow);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
}

__attribute__((target("amx-tile,amx-bf16"), noinline)) double Run(const std::vector<Row>& panel,
                                                                  const std::vector<Row>& block) {
  TileConfig config;
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const auto bytes = static_cast<int64_t>(block.size() * sizeof(Row));
  const int64_t rounds = std::max<int64_t>(kBytes / bytes, 1);
  Stream(panel[0].bytes, block[0].bytes, bytes);  // brings them
  const double start = ThreadSeconds();
  for (int64_t r = 0; r < rounds; ++r) Stream(panel[0].bytes, block[0].bytes, bytes);
  const double seconds = ThreadSeconds() - start;
  _tile_release();
  constexpr double kFlopsOfStep = 4.0 * 16 * 16 * 32 * 2;
  return kFlopsOfStep * static_cast<double>(rounds * bytes / kPair) / seconds * 1e-9;
}

}  // namespace

bool HasTiles() {
  // Linux gives the tile registers to a process that asks for them (ARCH_REQ_XCOMP_PERM,
  // XFEATURE_XTILEDATA).
  static const bool has =
      __builtin_cpu_supports("amx-bf16") && syscall(SYS_arch_prctl, 0x1023, 18) == 0;
  return has;
}

double TilePeak(int threads) {
  // Half of the cache: the rest is for what else a kernel touches.
  static const int64_t half = std::max(sysconf(_SC_LEVEL2_CACHE_SIZE), 1L << 20) / 2;
  static const std::vector<Row> panel = Numbers(kPanel), block = Numbers(half / kPanel * kPanel);
  return SumOverThreads(threads, [] { return Run(panel, block); });
}

}  // namespace tenon::bench

#include "cost/estimate.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

MachineProfile Profile(const char* target) {
  return MachineProfile::Preset(*Target::Parse(target));
}

const char* const kAvx512 = "llvm -mcpu=icelake-server";
const char* const kAvx2 = "llvm -mcpu=core-avx2";

// A matmul of which everything is in L1, in `tiles` tiles.
WorkDescription Compute(double flops, int64_t tiles, int team) {
  WorkDescription work;
  work.flops = flops;
  work.tiles = tiles;
  work.team = team;
  return work;
}

TEST(MachineProfile, FollowsTheTarget) {
  EXPECT_EQ(Profile(kAvx512).fp32_lanes, 16);
  EXPECT_DOUBLE_EQ(Profile(kAvx512).PeakFlops(), 2 * Profile(kAvx2).PeakFlops());
  EXPECT_DOUBLE_EQ(Profile("llvm -mcpu=x86-64").PeakFlops() * 4, Profile(kAvx2).PeakFlops());
  EXPECT_GT(Profile("c").PeakFlops(), 0);
  EXPECT_EQ(Profile("cuda -host=llvm -mcpu=core-avx2").fp32_lanes, 8);
}

TEST(MachineProfile, PlacesWorkingSets) {
  const MachineProfile p = Profile("llvm -mcpu=core-avx2 -l1-cache=32K -l2-cache=1M -l3-cache=16M");
  EXPECT_EQ(p.LevelFor(0), MemoryLevel::kL1);
  EXPECT_EQ(p.LevelFor(16 << 10), MemoryLevel::kL1);
  EXPECT_EQ(p.LevelFor((16 << 10) + 1), MemoryLevel::kL2);
  EXPECT_EQ(p.LevelFor(8 << 20), MemoryLevel::kL3);
  EXPECT_EQ(p.LevelFor(int64_t{1} << 40), MemoryLevel::kDram);
  for (int level = 1; level < kNumMemoryLevels; ++level) {
    EXPECT_LT(p.memory[level].core_bytes_per_second, p.memory[level - 1].core_bytes_per_second);
  }
}

TEST(Estimate, ComputeBoundWorkTakesItsFlops) {
  const MachineProfile p = Profile(kAvx512);
  const double seconds = EstimateSeconds(Compute(1e10, 100, 1), p);
  EXPECT_NEAR(seconds, 1e10 / p.PeakFlops(), 0.01 * seconds);
}

TEST(Estimate, WavesAreQuantised) {
  const MachineProfile p = Profile(kAvx512);
  const double one = EstimateSeconds(Compute(1e10, 6, 1), p);
  EXPECT_NEAR(EstimateSeconds(Compute(1e10, 6, 2), p) / one, 1.0 / 2, 0.001);
  EXPECT_NEAR(EstimateSeconds(Compute(1e10, 5, 2), p) / one, 3.0 / 5, 0.001);
  EXPECT_NEAR(EstimateSeconds(Compute(1e10, 1, 2), p) / one, 1, 0.001);
}

TEST(Estimate, TheSlowestStreamCounts) {
  const MachineProfile p = Profile(kAvx512);
  WorkDescription work = Compute(1e9, 64, 2);
  const double compute = EstimateSeconds(work, p);
  work.bytes_at(MemoryLevel::kL2) = 1e3;
  EXPECT_DOUBLE_EQ(EstimateSeconds(work, p), compute);
  work.bytes_at(MemoryLevel::kDram) = 1e9;
  EXPECT_GT(EstimateSeconds(work, p), 1e9 / p.rate(MemoryLevel::kDram).machine_bytes_per_second);
  // Many workers do not get more out of DRAM than there is.
  work.tiles = work.team = 64;
  EXPECT_GT(EstimateSeconds(work, p), 1e9 / p.rate(MemoryLevel::kDram).machine_bytes_per_second);
}

TEST(Estimate, OverheadsAdd) {
  const MachineProfile p = Profile(kAvx2);
  WorkDescription work = Compute(1e6, 4, 2);
  const double plain = EstimateSeconds(work, p);
  work.packed_bytes = 1e6;
  const double packed = EstimateSeconds(work, p);
  EXPECT_GT(packed, plain);
  work.barriers = 3;
  EXPECT_NEAR(EstimateSeconds(work, p), packed + 3 * p.barrier_seconds, 1e-12);
  work.vector_ops = 1e6;
  EXPECT_GT(EstimateSeconds(work, p), packed + 3 * p.barrier_seconds);
  EXPECT_DOUBLE_EQ(EstimateSeconds(Compute(0, 0, 1), p), p.launch_seconds);
}

TEST(Estimate, RegisterTilesRankAsMeasured) {
  const MachineProfile p = Profile(kAvx512);
  for (auto [rows, vectors] :
       {std::pair(6, 4), std::pair(9, 3), std::pair(12, 2), std::pair(14, 2)}) {
    EXPECT_DOUBLE_EQ(FmaEfficiency(rows, vectors, p), 1) << rows << "x" << vectors;
  }
  EXPECT_LT(FmaEfficiency(28, 1, p), 1);
  EXPECT_LT(FmaEfficiency(1, 4, p), FmaEfficiency(2, 4, p));
  EXPECT_EQ(FmaEfficiency(8, 4, p), 0);
  EXPECT_EQ(FmaEfficiency(6, 2, Profile(kAvx2)), 1);
}

TEST(Estimate, UtilisationCountsPadding) {
  EXPECT_DOUBLE_EQ(TileUtilisation(0, 6), 1);
  EXPECT_DOUBLE_EQ(TileUtilisation(1, 6), 1.0 / 6);
  EXPECT_DOUBLE_EQ(TileUtilisation(5, 6), 5.0 / 6);
  EXPECT_DOUBLE_EQ(TileUtilisation(6, 6), 1);
  EXPECT_DOUBLE_EQ(TileUtilisation(7, 6), 7.0 / 12);
}

}  // namespace
}  // namespace tenon

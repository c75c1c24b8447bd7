#include "cost/estimate.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

Machine Of(const char* target) { return Machine::Of(*Target::Parse(target)); }

const char* const kAvx512 = "llvm -mcpu=icelake-server";
const char* const kAvx2 = "llvm -mcpu=core-avx2";

// A product of which everything is in L1, in tiles that keep the units busy.
WorkDescription Compute(double steps, int64_t tiles, int64_t team) {
  WorkDescription work;
  work.AddTileSteps(6, 4, steps);
  work.tiles = tiles;
  work.team = team;
  return work;
}

TEST(Machine, FollowsTheTarget) {
  EXPECT_EQ(Of(kAvx512).Lanes(DType::Float(32)), 16);
  EXPECT_EQ(Of(kAvx512).Lanes(DType::Int(8)), 64);
  const double avx512 = Of(kAvx512).VectorUnit(DType::Float(32)).FlopsPerSecond();
  const double avx2 = Of(kAvx2).VectorUnit(DType::Float(32)).FlopsPerSecond();
  EXPECT_DOUBLE_EQ(avx512, 2 * avx2);
  EXPECT_DOUBLE_EQ(Of("llvm -mcpu=x86-64").VectorUnit(DType::Float(32)).FlopsPerSecond() * 4, avx2);
  EXPECT_GT(Of("c").VectorUnit(DType::Float(32)).FlopsPerSecond(), 0);
  EXPECT_EQ(Of("llvm -mcpu=core-avx2 -num-cores=12").workers, 12);
  EXPECT_EQ(Of(kAvx512).warp, 0);
  EXPECT_EQ(Of("cuda -arch=sm_80").warp, 32);
}

TEST(Machine, HasMatrixUnits) {
  const DType u8 = DType::UInt(8), i8 = DType::Int(8), i32 = DType::Int(32);
  const DType bf16 = DType::BFloat16(), f32 = DType::Float(32);
  EXPECT_EQ(Of(kAvx2).MatrixUnit(u8, i8, i32), nullptr);
  EXPECT_EQ(Of(kAvx512).MatrixUnit(u8, i8, i32)->row, "x86.vpdpbusd.512.row");
  const Machine amx = Of("llvm -mcpu=sapphirerapids");
  EXPECT_EQ(amx.MatrixUnit(u8, i8, i32)->row, "x86.tdpbusd");
  EXPECT_EQ(amx.MatrixUnit(bf16, bf16, f32)->row, "x86.tdpbf16ps");
  EXPECT_EQ(amx.MatrixUnit(f32, f32, f32), nullptr);
  EXPECT_EQ(Of("cuda -arch=sm_80").MatrixUnit(bf16, bf16, f32)->row, "ptx.mma.m16n8k16.bf16");
}

TEST(Machine, PlacesWorkingSets) {
  const Machine m = Of("llvm -mcpu=core-avx2 -l1-cache=32K -l2-cache=1M -l3-cache=16M");
  EXPECT_EQ(m.memory[m.LevelFor(0)].name, "L1");
  EXPECT_EQ(m.memory[m.LevelFor(16 << 10)].name, "L1");
  EXPECT_EQ(m.memory[m.LevelFor((16 << 10) + 1)].name, "L2");
  EXPECT_EQ(m.memory[m.LevelFor(8 << 20)].name, "L3");
  EXPECT_EQ(m.memory[m.LevelFor(int64_t{1} << 40)].name, "DRAM");
  for (size_t level = 1; level < m.memory.size(); ++level) {
    EXPECT_LT(m.memory[level].worker_bytes_per_second, m.memory[level - 1].worker_bytes_per_second);
  }
}

TEST(Machine, PrintsParsesAndHashes) {
  for (const char* target : {"llvm -mcpu=sapphirerapids", "c", "llvm -mcpu=cortex-a72",
                             "cuda -arch=sm_90a -host=llvm -mcpu=x86-64", "opencl -host=c"}) {
    const Machine m = Of(target);
    Expected<Machine> again = Machine::Parse(m.ToString());
    ASSERT_TRUE(again) << ToString(again.errors()) << m.ToString();
    EXPECT_EQ(*again, m);
    EXPECT_EQ(again->Hash(), m.Hash());
  }
  EXPECT_NE(Of(kAvx2).Hash(), Of(kAvx512).Hash());
}

TEST(Machine, FaultyTextsAreErrors) {
  auto message = [](std::string text) {
    Expected<Machine> m = Machine::Parse(text);
    return m ? std::string("no error") : ToString(m.errors());
  };
  EXPECT_NE(message("[]").find("expected an object"), std::string::npos);
  EXPECT_NE(message("{\"machine\": 1}").find("'registers' is missing"), std::string::npos);
  std::string text = Of(kAvx2).ToString();
  text.replace(text.find("\"f32\""), 5, "\"f3\"");
  EXPECT_NE(message(text).find("units[0] 'a' is no type"), std::string::npos);
  EXPECT_NE(message("{").find("error"), std::string::npos);
}

TEST(Estimate, ComputeBoundWorkTakesItsSteps) {
  const Machine m = Of(kAvx512);
  const double seconds = EstimateSeconds(Compute(1e9, 100, 1), m);
  EXPECT_NEAR(seconds, 1e9 * 12.5 / m.cycles_per_second, 0.01 * seconds);
}

TEST(Estimate, WavesAreQuantised) {
  const Machine m = Of(kAvx512);
  const double one = EstimateSeconds(Compute(1e9, 6, 1), m);
  EXPECT_NEAR(EstimateSeconds(Compute(1e9, 6, 2), m) / one, 1.0 / 2, 0.001);
  EXPECT_NEAR(EstimateSeconds(Compute(1e9, 5, 2), m) / one, 3.0 / 5, 0.001);
  EXPECT_NEAR(EstimateSeconds(Compute(1e9, 1, 2), m) / one, 1, 0.001);
}

TEST(Estimate, TheSlowestStreamCounts) {
  const Machine m = Of(kAvx512);
  WorkDescription work = Compute(1e6, 64, 2);
  const double compute = EstimateSeconds(work, m);
  work.bytes[1] = 1e3;
  EXPECT_NEAR(EstimateSeconds(work, m), compute, 1e-3 * compute);
  work.bytes[3] = 1e9;
  EXPECT_GT(EstimateSeconds(work, m), 1e9 / m.memory[3].machine_bytes_per_second);
  // Many workers do not get more out of DRAM than there is.
  work.tiles = work.team = 64;
  EXPECT_GT(EstimateSeconds(work, m), 1e9 / m.memory[3].machine_bytes_per_second);
}

// Of two works that move the same, the one whose tiles wait for it takes longer.
TEST(Estimate, ATurnTakesAsLongAsItsStream) {
  const Machine m = Of(kAvx512);
  const double rate = m.memory[2].worker_bytes_per_second, turn = 256;
  WorkDescription work = Compute(9e6, 64, 1);
  work.bytes[2] = 1e6 * turn;
  WorkDescription waits = work;
  work.AddTileSteps(6, 4, 1e6);
  waits.AddTileSteps(6, 4, 1e6, {2, turn});
  const double late = EstimateSeconds(waits, m) - EstimateSeconds(work, m);
  EXPECT_NEAR(late, 1e6 * (turn / rate - 12.5 / m.cycles_per_second), 0.01 * late);
  // What comes in time costs nothing.
  WorkDescription near = work;
  near.AddTileSteps(6, 4, 1e6, {0, turn});
  work.AddTileSteps(6, 4, 1e6);
  EXPECT_DOUBLE_EQ(EstimateSeconds(near, m), EstimateSeconds(work, m));
  EXPECT_NE(near.tile_steps[1].steps, 0);
}

// Vectors of sums do not wait; of tiles those beyond five do, and rows beyond the first.
TEST(Estimate, TilesWaitForRegisters) {
  const Machine amx = Of("llvm -mcpu=sapphirerapids");
  const DType bf16 = DType::BFloat16(), f32 = DType::Float(32);
  const auto per_product = [&](int64_t rows, int64_t columns, const ComputeUnit& unit) {
    WorkDescription work;
    work.unit = unit;
    work.AddTileSteps(rows, columns, 1e9);
    const double alone = 1e9 * StepCycles(rows, columns, amx, unit) / amx.cycles_per_second;
    return EstimateSeconds(work, amx) / alone;
  };
  const ComputeUnit& tiles = *amx.MatrixUnit(bf16, bf16, f32);
  EXPECT_NEAR(per_product(1, 2, tiles), 1, 1e-3);
  EXPECT_NEAR(per_product(1, 3, tiles), 1.3, 1e-3);
  EXPECT_NEAR(per_product(2, 1, tiles), 1.2, 1e-3);
  EXPECT_NEAR(per_product(2, 2, tiles), 1.65, 1e-3);
  EXPECT_NEAR(per_product(2, 2, amx.VectorUnit(f32)), 1, 1e-3);
}

TEST(Estimate, OverheadsAdd) {
  const Machine m = Of(kAvx2);
  WorkDescription work = Compute(1e6, 4, 2);
  const double plain = EstimateSeconds(work, m);
  work.packed_bytes = 1e6;
  const double packed = EstimateSeconds(work, m);
  EXPECT_GT(packed, plain);
  work.barriers = 3;
  EXPECT_NEAR(EstimateSeconds(work, m), packed + 3 * m.barrier_seconds, 1e-12);
  work.vector_ops = 1e6;
  const double vectors = EstimateSeconds(work, m);
  EXPECT_GT(vectors, packed + 3 * m.barrier_seconds);
  std::swap(work.vector_ops, work.scalar_ops);
  EXPECT_GT(EstimateSeconds(work, m), vectors);
  EXPECT_DOUBLE_EQ(EstimateSeconds(Compute(0, 0, 1), m), m.launch_seconds);
}

TEST(Estimate, RegisterTilesRankAsMeasured) {
  const Machine m = Of(kAvx512);
  auto cycles_per_vector = [&](int64_t rows, int64_t vectors) {
    return StepCycles(rows, vectors, m, m.VectorUnit(DType::Float(32))) /
           static_cast<double>(rows * vectors);
  };
  EXPECT_LT(cycles_per_vector(6, 4), 0.53);
  EXPECT_LT(cycles_per_vector(12, 2), 0.53);
  EXPECT_GT(cycles_per_vector(28, 1), cycles_per_vector(14, 2));
  EXPECT_GT(cycles_per_vector(1, 4), cycles_per_vector(2, 4));
}

}  // namespace
}  // namespace tenon

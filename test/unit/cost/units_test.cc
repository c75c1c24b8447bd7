// A machine's units are operations that the table of tile intrinsics has, with the same operands.
#include <gtest/gtest.h>

#include <set>

#include "cost/machine.h"
#include "intrin/tile_intrinsic.h"
#include "target/tables.h"

namespace tenon {
namespace {

// All kinds, CPUs and architectures that a target string may name, and CPUs with everything that
// their architecture can have.
std::vector<std::string> AllTargets() {
  std::vector<std::string> out;
  std::set<Arch> archs;
  for (const CpuRow& cpu : CpuRows()) {
    const std::string target = "llvm -mcpu=" + std::string(cpu.name);
    out.push_back(target);
    if (!archs.insert(cpu.arch).second) continue;
    std::string all;
    for (Feature f : FeaturesOf(cpu.arch))
      all += (all.empty() ? " -mattr=+" : ",+") + std::string(InfoOf(f).name);
    out.push_back(target + all);
  }
  for (const TargetKind& kind : Kinds()) {
    if (kind.family == Family::kPlainCpu) out.emplace_back(kind.name);
    for (const GpuRow& gpu : GpuRows()) {
      if (gpu.kind != kind.name) continue;
      std::string target(kind.name);
      if (!kind.arch_option.empty())
        target += " -" + std::string(kind.arch_option) + "=" + gpu.limits.arch;
      out.push_back(target + " -host=c");
    }
  }
  return out;
}

int64_t Elements(const Buffer& b) {
  int64_t count = 1;
  for (const Expr& extent : b->shape) count *= AsInt(extent).value_or(0);
  return count;
}

void ExpectIsRow(const ComputeUnit& unit, const Target& target) {
  const TileIntrinsic* row = BuiltinTileIntrinsics().Find(unit.row);
  ASSERT_NE(row, nullptr);
  EXPECT_TRUE(target.Offers(row->feature)) << row->feature;
  EXPECT_NE(row->EmissionFor(target.kind().code_generator), nullptr);
  Expected<Func> meaning = MeaningOf(*row);
  ASSERT_TRUE(meaning) << ToString(meaning.errors());
  const std::vector<Buffer>& operands = (*meaning)->buffers;
  ASSERT_EQ(operands.size(), 3u);
  EXPECT_EQ(operands[0]->dtype, unit.a);
  EXPECT_EQ(operands[1]->dtype, unit.b);
  EXPECT_EQ(operands[2]->dtype, unit.acc);
  // The three products leave one m, n and k.
  EXPECT_EQ(Elements(operands[0]), unit.m * unit.k);
  EXPECT_EQ(Elements(operands[1]), unit.k * unit.n);
  EXPECT_EQ(Elements(operands[2]), unit.m * unit.n);
}

TEST(ComputeUnits, AreRowsOfTheTableOfIntrinsics) {
  std::set<std::string> seen;
  for (const std::string& text : AllTargets()) {
    SCOPED_TRACE(text);
    Expected<Target> target = Target::Parse(text);
    ASSERT_TRUE(target) << ToString(target.errors());
    const Machine machine = Machine::Of(*target);
    ASSERT_FALSE(machine.units.empty());
    EXPECT_EQ(machine.units[0].row, "");
    for (const ComputeUnit& unit : machine.units) {
      SCOPED_TRACE(unit.row);
      EXPECT_GT(unit.per_second, 0);
      seen.insert(unit.row);
      if (!unit.row.empty()) {
        ExpectIsRow(unit, *target);
        continue;
      }
      EXPECT_EQ(unit.a, unit.acc);
      EXPECT_EQ(unit.b, unit.acc);
      EXPECT_EQ(unit.m * unit.k, 1);
    }
  }
  // Those of CPUs and of GPUs were among them.
  for (const char* row : {"x86.vpdpbusd.512.row", "x86.tdpbusd", "ptx.mma.m16n8k16.f16"})
    EXPECT_TRUE(seen.contains(row)) << row;
}

}  // namespace
}  // namespace tenon

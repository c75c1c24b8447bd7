#include "cost/machine_profile.h"

#include <limits>

#include "support/check.h"

namespace tenon {

namespace {

// Rates that differ between architectures by more than their vectors' width. Middle values of
// current parts: estimates rank candidates on one machine, and ranks survive an error that all
// candidates share.
struct CoreRates {
  double gigahertz;
  double fma_units;
  double fma_latency_cycles;
  double vector_loads_per_cycle;
  double l3_gigabytes_per_second;  // one core
  double dram_gigabytes_per_second;
};

CoreRates RatesOf(Arch arch) {
  struct Row {
    Arch arch;
    CoreRates rates;
  };
  static constexpr Row kRows[] = {{Arch::kX86_64, {3.0, 2, 4, 2, 30, 16}},
                                  {Arch::kAArch64, {2.2, 2, 4, 2, 20, 10}},
                                  {Arch::kRiscV64, {1.5, 1, 5, 1, 8, 4}}};
  for (const Row& row : kRows) {
    if (row.arch == arch) return row.rates;
  }
  return {2.0, 1, 4, 1, 20, 10};
}

}  // namespace

MemoryLevel MachineProfile::LevelFor(int64_t working_set_bytes) const {
  for (MemoryLevel level : {MemoryLevel::kL1, MemoryLevel::kL2, MemoryLevel::kL3}) {
    if (working_set_bytes <= rate(level).capacity_bytes / 2) return level;
  }
  return MemoryLevel::kDram;
}

MachineProfile MachineProfile::Preset(const Target& target) {
  const Target& cpu = target.Cpu();
  const CoreRates rates = RatesOf(cpu.arch());
  constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  constexpr double kGiga = 1e9;

  MachineProfile p;
  p.cycles_per_second = rates.gigahertz * kGiga;
  p.fp32_lanes = cpu.VectorLanes(32);
  p.vector_registers = cpu.NumVectorRegisters();
  // Without FMA a multiply and an add take two slots of the same units.
  p.fma_units = cpu.HasFma() ? rates.fma_units : rates.fma_units / 2;
  p.fma_latency_cycles = rates.fma_latency_cycles;
  p.vector_loads_per_cycle = rates.vector_loads_per_cycle;

  const double vector_bytes = cpu.VectorBits() / 8.0;
  const double l1 = rates.vector_loads_per_cycle * vector_bytes * p.cycles_per_second;
  const double l2 = 0.25 * l1;
  // Two or three cores saturate DRAM; L3 grows with the cores further.
  p.memory = {{{cpu.caches().l1, l1, kUnlimited},
               {cpu.caches().l2, l2, kUnlimited},
               {cpu.caches().l3, rates.l3_gigabytes_per_second * kGiga,
                8 * rates.l3_gigabytes_per_second * kGiga},
               {std::numeric_limits<int64_t>::max(), rates.dram_gigabytes_per_second * kGiga,
                2.5 * rates.dram_gigabytes_per_second * kGiga}}};
  p.pack_bytes_per_second = 0.5 * rates.dram_gigabytes_per_second * kGiga;
  p.tile_seconds = 10 / p.cycles_per_second;
  p.launch_seconds = 50e-9;
  p.barrier_seconds = 1e-6;
  return p;
}

}  // namespace tenon

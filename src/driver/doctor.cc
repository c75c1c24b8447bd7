// Every time is a ratio. A chain of dependent integer operations, whose cycles are known, is the
// clock; each kernel takes turns with it in short bursts (measure/worker.h), and the median of the
// ratios says how many cycles a call has. So a machine that does other things at the same time, or
// changes its frequency, gives the same numbers. From those each number of the model of costs is
// taken where it is what limits:
//
//   fma_latency_cycles        a tile of one row and one vector
//   vector_loads_per_cycle    sums over half of L1
//   per_second of a unit      the fastest tile whose operands come from L1
//   loop_cycles               what the other tiles take beyond these
//   worker_bytes_per_second   sums over half of L2, several times L2, many times L2
//
// Units that no kernel runs by keep the operations for each cycle that the preset says.
#include "driver/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "cost/estimate.h"
#include "driver/doctor_device.h"
#include "driver/doctor_kernels.h"
#include "driver/workbench.h"
#include "measure/paired_test.h"
#include "support/atomic_file.h"
#include "support/thread_pool.h"
#include "tune/machine_key.h"

namespace tenon::driver {

namespace {

constexpr double kRaceSeconds = 0.25;
constexpr int64_t kMostPairs = 100;
constexpr int kRaces = 3;
// Blocks of memory beyond L2, each so many times its size, of which calls take turns.
constexpr int64_t kBlockOfL2 = 2, kMostCopies = 64, kCopiesInL3 = 4;

/// A team of threads, and the clock for it.
struct Side {
  std::unique_ptr<Workbench> bench;
  measure::Program clock;
  int64_t team = 1;
};

class Doctor {
 public:
  explicit Doctor(const DoctorOptions& options)
      : options_(options), machine_(Machine::Of(options.target)) {
    machine_.workers = 1;
  }

  Expected<Profile> Run() {
    TN_RETURN_IF_ERROR(CheckRunsHere(options_.target));
    out_.machine = tune::MachineKey();
    out_.name = tune::MachineName();
    out_.cpus = AvailableCpus();
    out_.rates = machine_;
    TN_ASSIGN_OR_RETURN(alone_, MakeSide(1));
    if (out_.cpus > 1) {
      TN_ASSIGN_OR_RETURN(together_, MakeSide(out_.cpus));
    }
    TN_RETURN_IF_ERROR(MeasureClock());
    TN_RETURN_IF_ERROR(MeasureStarts());
    TN_RETURN_IF_ERROR(MeasureMemory());
    TN_RETURN_IF_ERROR(MeasureUnits());
    TN_RETURN_IF_ERROR(MeasurePacking());
    return out_;
  }

 private:
  void Tell(const std::string& what, double done) const {
    if (options_.progress) options_.progress(what, done);
  }

  Expected<measure::Program> Build(const Side& side, const tune::LoweredCandidate& kernel) {
    TN_ASSIGN_OR_RETURN(const std::string image, side.bench->tools().build(kernel.module));
    measure::Program program{fmt::format("{}/{}.so", side.bench->folder(), ++libraries_),
                             tune::kFunction, kernel.parameters};
    TN_RETURN_IF_ERROR(WriteFile(program.path, image));
    return program;
  }

  Expected<Side> MakeSide(int64_t team) {
    Side side{.team = team};
    TN_ASSIGN_OR_RETURN(
        side.bench, Workbench::Make(options_.target,
                                    {.program = options_.worker, .team = team, .time_limit = 30}));
    TN_ASSIGN_OR_RETURN(const tune::LoweredCandidate clock, ClockKernel(options_.target));
    TN_ASSIGN_OR_RETURN(side.clock, Build(side, clock));
    return side;
  }

  Expected<measure::RaceAnswer> Race(const Side& side, const measure::Program& program) {
    TN_ASSIGN_OR_RETURN(measure::RaceAnswer answer,
                        side.bench->tools().race({.kernel = program.path,
                                                  .incumbent = side.clock,
                                                  .candidate = program,
                                                  .team = side.team,
                                                  .most_pairs = kMostPairs,
                                                  .seconds = kRaceSeconds}));
    if (answer.outcome == measure::Outcome::kOk) return answer;
    return MakeError(fmt::format("a kernel of the doctor's failed ({}): {}",
                                 measure::ToString(answer.outcome), answer.message));
  }

  /// Cycles of a call, the median of a few races. Of a team, the least: it runs as the slowest of
  /// its workers does, and a clock on one CPU says nothing of what disturbs the others.
  Expected<double> CyclesOf(const Side& side, const tune::LoweredCandidate& kernel) {
    TN_ASSIGN_OR_RETURN(const measure::Program program, Build(side, kernel));
    std::vector<double> cycles;
    for (int i = 0; i < kRaces; ++i) {
      TN_ASSIGN_OR_RETURN(const measure::RaceAnswer answer, Race(side, program));
      cycles.push_back(std::exp(answer.log_ratio) * static_cast<double>(kClockCycles));
    }
    return side.team > 1 ? *std::min_element(cycles.begin(), cycles.end())
                         : measure::Median(cycles);
  }
  double Seconds(double cycles) const { return cycles / out_.rates.cycles_per_second; }

  // The least of several medians: nothing makes a core run faster than it does.
  Status MeasureClock() {
    constexpr int kTimes = 5;
    Tell("clock", 0);
    std::vector<double> seconds, noise;
    for (int i = 0; i < kTimes; ++i) {
      TN_ASSIGN_OR_RETURN(const measure::RaceAnswer answer, Race(alone_, alone_.clock));
      seconds.push_back(answer.incumbent_seconds);
      noise.push_back(answer.noise);
    }
    out_.rates.cycles_per_second =
        static_cast<double>(kClockCycles) / *std::min_element(seconds.begin(), seconds.end());
    out_.noise = measure::Median(noise);
    // What nobody measures keeps its cycles.
    for (ComputeUnit& unit : out_.rates.units)
      unit.per_second *= out_.rates.cycles_per_second / machine_.cycles_per_second;
    return Ok();
  }

  // What takes no time, as far as could be seen, keeps the preset's.
  void SetCost(double cycles, int64_t times, double* seconds) const {
    if (cycles > 0) *seconds = Seconds(cycles) / static_cast<double>(times);
  }

  Status MeasureStarts() {
    constexpr int64_t kLaunches = 257, kLoops = 64;
    Tell("calls, launches and barriers", 0.05);
    TN_ASSIGN_OR_RETURN(const auto one, LaunchKernel(options_.target, 1));
    TN_ASSIGN_OR_RETURN(const auto many, LaunchKernel(options_.target, kLaunches));
    TN_ASSIGN_OR_RETURN(call_cycles_, CyclesOf(alone_, one));
    TN_ASSIGN_OR_RETURN(const double all, CyclesOf(alone_, many));
    out_.call_seconds = Seconds(call_cycles_);
    SetCost(all - call_cycles_, kLaunches - 1, &out_.rates.launch_seconds);
    if (out_.cpus == 1) return Ok();
    TN_ASSIGN_OR_RETURN(const auto short_one, BarrierKernel(options_.target, 0, out_.cpus));
    TN_ASSIGN_OR_RETURN(const auto long_one, BarrierKernel(options_.target, kLoops, out_.cpus));
    TN_ASSIGN_OR_RETURN(const double few, CyclesOf(together_, short_one));
    TN_ASSIGN_OR_RETURN(const double most, CyclesOf(together_, long_one));
    SetCost(most - few, kLoops, &out_.rates.barrier_seconds);
    out_.fork_join_seconds =
        std::max(0.0, Seconds(few - call_cycles_) - out_.rates.barrier_seconds);
    return Ok();
  }

  /// Bytes a second of each worker of the side.
  Expected<double> ReadRateOf(const Side& side, int64_t bytes, int64_t copies) {
    TN_ASSIGN_OR_RETURN(const auto kernel, ReadKernel(machine_, bytes, copies, side.team));
    TN_ASSIGN_OR_RETURN(const double cycles, CyclesOf(side, kernel));
    return static_cast<double>(bytes) / Seconds(std::max(cycles - call_cycles_, 1.0));
  }

  Status MeasureMemory() {
    std::vector<MemoryRate>& memory = out_.rates.memory;
    const int64_t block = kBlockOfL2 * memory[1].capacity_bytes;
    for (size_t level = 0; level < 2; ++level) {
      Tell(memory[level].name, 0.1);
      const int64_t bytes = memory[level].capacity_bytes / 2;
      TN_ASSIGN_OR_RETURN(memory[level].worker_bytes_per_second, ReadRateOf(alone_, bytes, 1));
      out_.reads.push_back({bytes, memory[level].worker_bytes_per_second});
    }
    for (int64_t copies = 1; copies <= kMostCopies; copies *= 2) {
      Tell("memory behind L2", 0.15 + 0.002 * static_cast<double>(copies));
      TN_ASSIGN_OR_RETURN(const double rate, ReadRateOf(alone_, block, copies));
      out_.reads.push_back({copies * block, rate});
      if (copies == kCopiesInL3) memory[2].worker_bytes_per_second = rate;
      if (copies == kMostCopies) memory[3].worker_bytes_per_second = rate;
    }
    SetCapacity(&memory[2], memory[3], block);
    for (size_t level = 2; level < 4; ++level) {
      memory[level].machine_bytes_per_second = memory[level].worker_bytes_per_second;
      if (out_.cpus == 1) continue;
      Tell("memory, all CPUs", 0.3 + 0.05 * static_cast<double>(level));
      const int64_t copies = level == 2 ? kCopiesInL3 : kMostCopies;
      TN_ASSIGN_OR_RETURN(const double each, ReadRateOf(together_, block / out_.cpus, copies));
      memory[level].machine_bytes_per_second =
          std::max(each * static_cast<double>(out_.cpus), memory[level].worker_bytes_per_second);
    }
    out_.rates.vector_loads_per_cycle = memory[0].worker_bytes_per_second /
                                        out_.rates.cycles_per_second /
                                        (static_cast<double>(machine_.vector_bits) / 8);
    return Ok();
  }

  // As much as is read faster than midway between the two rates: what a target says may be a whole
  // machine's, of which this one has a part.
  void SetCapacity(MemoryRate* l3, const MemoryRate& dram, int64_t block) const {
    const double midway = std::sqrt(l3->worker_bytes_per_second * dram.worker_bytes_per_second);
    int64_t fits = kCopiesInL3 * block;
    for (const ReadRate& read : out_.reads) {
      if (read.bytes > fits && read.bytes_per_second > midway) fits = read.bytes;
    }
    const bool fits_all = fits >= kMostCopies * block;
    l3->capacity_bytes = fits_all ? std::max(l3->capacity_bytes, fits) : fits;
  }

  // A tile fed from each level; cycles of a turn of its loop by the first one.
  Expected<double> MeasureTile(const ComputeUnit& unit, const TileShape& tile, bool all_levels) {
    constexpr int64_t kRowBlocks = 32;  // that read a panel in L1 again
    double first = 0;
    const std::vector<MemoryRate>& memory = out_.rates.memory;
    for (size_t level = 0; level < (all_levels ? memory.size() : 2); ++level) {
      const bool behind = level >= 2;
      const int64_t bytes =
          behind ? kBlockOfL2 * memory[1].capacity_bytes : memory[level].capacity_bytes / 2;
      const int64_t m = level == 0 ? kRowBlocks * tile.rows : tile.rows;
      TN_ASSIGN_OR_RETURN(ProductKernel product, ProductOf(unit, tile, m, bytes, machine_));
      if (behind) product.kernel.parameters[1].copies = level == 2 ? kCopiesInL3 : kMostCopies;
      TN_ASSIGN_OR_RETURN(double cycles, CyclesOf(alone_, product.kernel));
      cycles = std::max(cycles - call_cycles_, 1.0);
      out_.tiles.push_back({unit.a, unit.b, unit.acc, tile.rows, tile.vectors, memory[level].name,
                            product.flops() / Seconds(cycles)});
      const int64_t turns =
          m / tile.rows * (product.k / unit.k) * (product.n / (tile.vectors * unit.n));
      if (level == 0) first = cycles / static_cast<double>(turns);
    }
    return first;
  }

  Status MeasureUnits() {
    struct Seen {
      ComputeUnit unit;
      TileShape tile;
      double cycles;
    };
    std::vector<Seen> seen;
    Machine& rates = out_.rates;
    for (size_t u = 0; u < rates.units.size(); ++u) {
      const ComputeUnit unit = rates.units[u];
      // Of several operations for the same types kernels run by the fastest.
      const ComputeUnit* used = rates.MatrixUnit(unit.a, unit.b, unit.acc);
      if (unit.m > 1 || (used && !(*used == unit))) continue;
      Tell(fmt::format("products of {}", unit.a.ToString()),
           0.45 + 0.5 * static_cast<double>(u) / static_cast<double>(rates.units.size()));
      double most = 0;
      const std::vector<TileShape> tiles = TileShapesOf(unit, machine_);
      const auto area = [](const TileShape& t) { return t.rows * t.vectors; };
      for (const TileShape& tile : tiles) {
        const bool largest = std::all_of(tiles.begin(), tiles.end(),
                                         [&](const TileShape& t) { return area(t) <= area(tile); });
        const bool widest_row = tile.rows == 1 && tile.vectors == tiles.back().vectors;
        TN_ASSIGN_OR_RETURN(const double cycles, MeasureTile(unit, tile, largest || widest_row));
        seen.push_back({unit, tile, cycles});
        most = std::max(
            most, static_cast<double>(area(tile)) / std::max(cycles - rates.loop_cycles, 0.1));
        if (u == 0 && area(tile) == 1)
          rates.fma_latency_cycles = std::max(1.0, cycles - rates.loop_cycles);
      }
      if (most > 0) rates.units[u].per_second = most * rates.cycles_per_second;
    }
    // What turns take beyond what limits them.
    std::vector<double> beyond;
    Machine without = rates;
    without.loop_cycles = 0;
    for (const Seen& s : seen) {
      ComputeUnit unit = s.unit;
      for (const ComputeUnit& now : rates.units) {
        if (now.row == unit.row && now.a == unit.a) unit.per_second = now.per_second;
      }
      beyond.push_back(s.cycles - StepCycles(s.tile.rows, s.tile.vectors, without, unit));
    }
    constexpr double kMostLoopCycles = 4;
    if (!beyond.empty())
      rates.loop_cycles = std::clamp(measure::Median(beyond), 0.0, kMostLoopCycles);
    return Ok();
  }

  Status MeasurePacking() {
    Tell("packing", 0.95);
    TN_ASSIGN_OR_RETURN(const std::vector<PackKernel> kernels, PackKernels(machine_));
    double bytes = 0, seconds = 0;
    for (const PackKernel& pack : kernels) {
      TN_ASSIGN_OR_RETURN(const double cycles, CyclesOf(alone_, pack.kernel));
      bytes += static_cast<double>(pack.bytes);
      seconds += Seconds(std::max(cycles - call_cycles_, 1.0));
    }
    out_.rates.pack_bytes_per_second = bytes / seconds;
    return Ok();
  }

  const DoctorOptions options_;
  Machine machine_;  // the preset, with one worker
  Profile out_;
  Side alone_, together_;
  double call_cycles_ = 0;
  int64_t libraries_ = 0;
};

}  // namespace

Expected<Profile> MeasureMachine(const DoctorOptions& options) {
  return options.target.IsDevice() ? MeasureDevice(options) : Doctor(options).Run();
}

}  // namespace tenon::driver

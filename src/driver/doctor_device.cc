// Rates of a whole device come from kernels that are long enough for their start not to count:
//
//   cycles_per_second   one thread's chain of multiply-adds, each of the target's latency
//   per_second          f32: eight chains in each of many threads; matrix units: the fastest of a
//                       few schedules of a large product
//   memory              loads from shared memory; reading a block that lies in L2, and one beyond
//   launch_seconds      one function that starts many kernels, and one that starts two
//
// What a target says that a device has (multiprocessors, capacities) stays: a rate of one of its
// workers is the whole's over their number, so that prices of whole launches are right on a part of
// a card, too.
#include "driver/doctor_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "driver/doctor_kernels.h"
#include "driver/workbench.h"
#include "support/atomic_file.h"
#include "tune/machine_key.h"

namespace tenon::driver {

namespace {

constexpr double kRaceSeconds = 0.1;
constexpr int64_t kMostPairs = 30;
constexpr int64_t kThreads = 256, kBlocksOfWorker = 8;
// A kernel is repeated within itself until it takes so long.
constexpr double kLongEnough = 1e-3;
constexpr int64_t kMostTurns = int64_t{1} << 22;

// Each loop reads what another block wrote in the one before, so each is a launch.
constexpr const char* kPhases = R"(
func @kernel(X: f32[2, 32], out Y: f32[2, 32]) target $TARGET$ {exported: true} {
  alloc A: f32[2, 32]
  for b in 0..2 thread blockIdx.x {
    for t in 0..32 thread threadIdx.x {
      A[b, t] = X[b, t]
    }
  }
$LOOPS$  for c in 0..2 thread blockIdx.x {
    for u in 0..32 thread threadIdx.x {
      Y[c, u] = A[1 - c, u]
    }
  }
}
)";

constexpr const char* kThereAndBack = R"(  for b$I$ in 0..2 thread blockIdx.x {
    for t$I$ in 0..32 thread threadIdx.x {
      Y[b$I$, t$I$] = A[1 - b$I$, t$I$]
    }
  }
  for c$I$ in 0..2 thread blockIdx.x {
    for u$I$ in 0..32 thread threadIdx.x {
      A[c$I$, u$I$] = Y[1 - c$I$, u$I$]
    }
  }
)";

constexpr const char* kChainsText = R"(
func @kernel(X: f32[2], out Y: f32[$BLOCKS$, $THREADS$]) target $TARGET$ {exported: true} {
  for b in 0..$BLOCKS$ thread blockIdx.x {
    for t in 0..$THREADS$ thread threadIdx.x {
      alloc x: f32[$CHAINS$] in register
      for c0 in 0..$CHAINS$ unrolled {
        x[c0] = f32(t + c0)
      }
      for i in 0..$TURNS$ {
        for u in 0..16 unrolled {
          for c in 0..$CHAINS$ unrolled {
            x[c] = fma(x[c], X[0], X[1])
          }
        }
      }
      for c1 in 1..$CHAINS$ unrolled {
        x[0] = x[0] + x[c1]
      }
      Y[b, t] = x[0]
    }
  }
}
)";

// In each turn a block reads what another one did in the turn before, so no turn is saved.
constexpr const char* kReads = R"(
func @kernel(X: f32[$PIECES$, $BLOCKS$, $THREADS$, 4], out Y: f32[$BLOCKS$, $THREADS$, 4]) target $TARGET$ {exported: true} {
  for b in 0..$BLOCKS$ thread blockIdx.x {
    for t in 0..$THREADS$ thread threadIdx.x {
      alloc sum: f32[4] in register
      for l0 in 0..4 vectorized {
        sum[l0] = 0f32
      }
      for i in 0..$TURNS$ {
        for p in 0..$PIECES$ {
          for l in 0..4 vectorized {
            sum[l] = sum[l] + X[p, (b + i) % $BLOCKS$, t, l]
          }
        }
      }
      for l1 in 0..4 vectorized {
        Y[b, t, l1] = sum[l1]
      }
    }
  }
}
)";

constexpr const char* kShared = R"(
func @kernel(X: f32[$THREADS$, 4], out Y: f32[$BLOCKS$, $THREADS$, 4]) target $TARGET$ {exported: true} {
  for b in 0..$BLOCKS$ thread blockIdx.x {
    alloc S: f32[$THREADS$, 4] in shared
    for t in 0..$THREADS$ thread threadIdx.x {
      alloc sum: f32[4] in register
      for l0 in 0..4 vectorized {
        S[t, l0] = X[t, l0]
        sum[l0] = 0f32
      }
      sync cta
      for i in 0..$TURNS$ {
        for u in 0..16 unrolled {
          for l in 0..4 vectorized {
            sum[l] = sum[l] + S[(t + i + u) % $THREADS$, l]
          }
        }
      }
      for l1 in 0..4 vectorized {
        Y[b, t, l1] = sum[l1]
      }
    }
  }
}
)";

class DeviceDoctor {
 public:
  explicit DeviceDoctor(const DoctorOptions& options)
      : options_(options), machine_(Machine::Of(options.target)) {}

  Expected<Profile> Run() {
    TN_RETURN_IF_ERROR(CheckRunsHere(options_.target));
    TN_ASSIGN_OR_RETURN(
        bench_, Workbench::Make(options_.target, {.program = options_.worker, .time_limit = 60}));
    TN_ASSIGN_OR_RETURN(const std::string missing, bench_->FindDevice());
    if (!missing.empty()) return MakeError("nothing can be measured here: " + missing);
    out_.machine = tune::DeviceKey(bench_->device());
    out_.name = bench_->device();
    out_.rates = machine_;
    TN_RETURN_IF_ERROR(MeasureStarts());
    TN_RETURN_IF_ERROR(MeasureVectors());
    TN_RETURN_IF_ERROR(MeasureMemory());
    TN_RETURN_IF_ERROR(MeasureProducts());
    TN_RETURN_IF_ERROR(MeasurePacking());
    return out_;
  }

 private:
  using Words = std::map<std::string, std::string>;

  void Tell(const std::string& what, double done) const {
    if (options_.progress) options_.progress(what, done);
  }

  // Of a call, without what every call takes.
  Expected<double> SecondsOf(const tune::LoweredCandidate& kernel) {
    TN_ASSIGN_OR_RETURN(const std::string image, bench_->tools().build(kernel.module));
    const measure::Program program{fmt::format("{}/{}.so", bench_->folder(), ++libraries_),
                                   tune::kFunction, kernel.parameters};
    TN_RETURN_IF_ERROR(WriteFile(program.path, image));
    TN_ASSIGN_OR_RETURN(const measure::RaceAnswer answer,
                        bench_->tools().race({.kernel = "doctor",
                                              .incumbent = program,
                                              .candidate = program,
                                              .device = std::string(options_.target.kind().name),
                                              .most_pairs = kMostPairs,
                                              .seconds = kRaceSeconds}));
    if (answer.outcome != measure::Outcome::kOk)
      return MakeError(fmt::format("a kernel of the doctor's failed ({}): {}",
                                   measure::ToString(answer.outcome), answer.message));
    noise_ = answer.noise;
    return std::max(answer.incumbent_seconds - out_.call_seconds, 1e-9);
  }

  Expected<tune::LoweredCandidate> KernelOf(const char* text, Words words) const {
    words["TARGET"] = fmt::format("\"{}\"", options_.target.ToString());
    words["THREADS"] = std::to_string(kThreads);
    return KernelOfText(text, words);
  }

  // Of one turn, of so many that their start does not count.
  Expected<double> SecondsOfTurn(const char* text, Words words) {
    for (int64_t turns = 4;; turns *= 8) {
      words["TURNS"] = std::to_string(turns);
      TN_ASSIGN_OR_RETURN(const auto kernel, KernelOf(text, words));
      TN_ASSIGN_OR_RETURN(const double seconds, SecondsOf(kernel));
      if (seconds >= kLongEnough || turns >= kMostTurns)
        return seconds / static_cast<double>(turns);
    }
  }

  Status MeasureStarts() {
    constexpr int64_t kMore = 128;  // launches, beyond the two of the shortest
    Tell("calls and launches", 0);
    const auto starting = [&](int64_t more) -> Expected<double> {
      std::string loops;
      for (int64_t i = 0; i < more; i += 2)
        loops += WithWords(kThereAndBack, {{"I", std::to_string(i)}});
      TN_ASSIGN_OR_RETURN(const auto kernel, KernelOf(kPhases, {{"LOOPS", loops}}));
      return SecondsOf(kernel);
    };
    TN_ASSIGN_OR_RETURN(const double few, starting(0));
    TN_ASSIGN_OR_RETURN(const double many, starting(kMore));
    out_.rates.launch_seconds = std::max(many - few, 1e-9) / static_cast<double>(kMore);
    out_.call_seconds = few;
    return Ok();
  }

  double Workers() const { return static_cast<double>(machine_.workers); }
  int64_t Blocks() const { return machine_.workers * kBlocksOfWorker; }

  Status MeasureVectors() {
    constexpr int64_t kChains = 8, kUnrolled = 16;
    Tell("multiply-adds", 0.1);
    TN_ASSIGN_OR_RETURN(const double one,
                        SecondsOfTurn(kChainsText, {{"BLOCKS", "1"}, {"CHAINS", "1"}}));
    Machine& rates = out_.rates;
    rates.cycles_per_second = kUnrolled * rates.fma_latency_cycles / one;
    TN_ASSIGN_OR_RETURN(const double all,
                        SecondsOfTurn(kChainsText, {{"BLOCKS", std::to_string(Blocks())},
                                                    {"CHAINS", std::to_string(kChains)}}));
    out_.noise = noise_;
    const double each = static_cast<double>(Blocks() * kThreads * kChains * kUnrolled) / all;
    for (ComputeUnit& unit : rates.units) {
      if (unit.row.empty()) unit.per_second = each / static_cast<double>(unit.n) / Workers();
    }
    return Ok();
  }

  Expected<double> ReadRate(int64_t bytes) {
    const int64_t round = Blocks() * kThreads * 16;
    const int64_t pieces = std::max<int64_t>(1, bytes / round);
    TN_ASSIGN_OR_RETURN(const double seconds,
                        SecondsOfTurn(kReads, {{"BLOCKS", std::to_string(Blocks())},
                                               {"PIECES", std::to_string(pieces)}}));
    const double rate = static_cast<double>(pieces * round) / seconds;
    out_.reads.push_back({pieces * round, rate});
    return rate;
  }

  Status MeasureMemory() {
    std::vector<MemoryRate>& memory = out_.rates.memory;
    Tell(memory[0].name, 0.3);
    TN_ASSIGN_OR_RETURN(const double shared,
                        SecondsOfTurn(kShared, {{"BLOCKS", std::to_string(Blocks())}}));
    memory[0].worker_bytes_per_second =
        static_cast<double>(Blocks() * kThreads * 16 * 16) / shared / Workers();
    const int64_t l2 = memory[1].capacity_bytes;
    Tell(memory[1].name, 0.4);
    TN_ASSIGN_OR_RETURN(memory[1].machine_bytes_per_second, ReadRate(l2 / 4));
    Tell(memory[2].name, 0.5);
    constexpr int64_t kTimesL2 = 8, kMost = int64_t{1} << 30;
    TN_ASSIGN_OR_RETURN(memory[2].machine_bytes_per_second,
                        ReadRate(std::min(kTimesL2 * l2, kMost)));
    for (size_t level : {size_t{1}, size_t{2}}) {
      // One worker has more than its share, but not by the ratio that the preset knows.
      const double before = machine_.memory[level].machine_bytes_per_second;
      memory[level].worker_bytes_per_second *= memory[level].machine_bytes_per_second / before;
    }
    return Ok();
  }

  // The fastest of a few schedules of a product that has work for every worker.
  Status MeasureProducts() {
    constexpr int64_t kSize = 2048;
    constexpr size_t kSchedules = 4;
    for (ComputeUnit& unit : out_.rates.units) {
      // Of several operations for the same types schedules run by the fastest.
      const ComputeUnit* used = machine_.MatrixUnit(unit.a, unit.b, unit.acc);
      if (unit.row.empty() || !used || used->row != unit.row) continue;
      Tell(fmt::format("products of {}", unit.a.ToString()), 0.6);
      TN_ASSIGN_OR_RETURN(const tune::Task task, ProductTask(unit, kSize, kSize, kSize, machine_));
      double most = 0;
      for (size_t i = 0; i < std::min(kSchedules, task.candidates.size()); ++i) {
        TN_ASSIGN_OR_RETURN(const auto kernel,
                            tune::LowerCandidate(task, task.candidates[i], machine_, false));
        TN_ASSIGN_OR_RETURN(const double seconds, SecondsOf(kernel));
        most = std::max(most, 2.0 * kSize * kSize * kSize / seconds);
      }
      if (most <= 0) continue;
      unit.per_second = most / static_cast<double>(2 * unit.m * unit.n * unit.k) / Workers();
      out_.tiles.push_back(
          {unit.a, unit.b, unit.acc, unit.m, unit.n, out_.rates.memory[2].name, most});
    }
    return Ok();
  }

  Status MeasurePacking() {
    Tell("packing", 0.9);
    TN_ASSIGN_OR_RETURN(const std::vector<PackKernel> kernels, PackKernels(machine_));
    double bytes = 0, seconds = 0;
    for (const PackKernel& pack : kernels) {
      TN_ASSIGN_OR_RETURN(const double taken, SecondsOf(pack.kernel));
      bytes += static_cast<double>(pack.bytes);
      seconds += taken;
    }
    out_.rates.pack_bytes_per_second = bytes / seconds / Workers();
    return Ok();
  }

  const DoctorOptions options_;
  const Machine machine_;  // the preset
  Profile out_;
  std::unique_ptr<Workbench> bench_;
  double noise_ = 0;
  int64_t libraries_ = 0;
};

}  // namespace

Expected<Profile> MeasureDevice(const DoctorOptions& options) {
  return DeviceDoctor(options).Run();
}

}  // namespace tenon::driver

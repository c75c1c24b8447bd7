// tenon doctor: what this machine does, measured
#include "driver/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "console.h"
#include "support/atomic_file.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

struct Arguments {
  std::string target = "llvm", output;
  bool json = false, quiet = false;
};

std::string Size(int64_t bytes) {
  if (bytes >= int64_t{1} << 40) return "-";
  if (bytes >= 1 << 20) return fmt::format("{} MiB", bytes >> 20);
  return fmt::format("{} KiB", bytes >> 10);
}

void PrintMemory(const driver::Profile& p) {
  const bool device = p.rates.target->IsDevice();
  Print("\n{:<10}{:>12}{:>16}{:>16}\n", "memory", "capacity", device ? "a part" : "one core",
        device ? "all" : "all CPUs");
  for (const MemoryRate& r : p.rates.memory) {
    const bool own = r.machine_bytes_per_second > 1e15;  // each core's
    Print("{:<10}{:>12}{:>11.1f} GB/s{:>16}\n", r.name, Size(r.capacity_bytes),
          r.worker_bytes_per_second / 1e9,
          own ? "its own" : fmt::format("{:.1f} GB/s", r.machine_bytes_per_second / 1e9));
  }
  Print("\nreading again and again{}\n", device ? "" : ", one core");
  for (const driver::ReadRate& r : p.reads)
    Print("{:>22}{:>11.1f} GB/s\n", Size(r.bytes), r.bytes_per_second / 1e9);
}

// A line for each tile, a column for each level that its second operand comes from.
void PrintTiles(const driver::Profile& p) {
  Print("\n{:<34}", "products on one core, GFLOP/s from");
  for (const MemoryRate& r : p.rates.memory) Print("{:>9}", r.name);
  const auto same = [](const driver::TileRate& x, const driver::TileRate& y) {
    return x.a == y.a && x.acc == y.acc && x.rows == y.rows && x.vectors == y.vectors;
  };
  for (size_t i = 0; i < p.tiles.size(); ++i) {
    const driver::TileRate& t = p.tiles[i];
    if (i == 0 || !same(t, p.tiles[i - 1])) {
      Print("\n{:<34}", fmt::format("  {} x {} in {}, {} x {} vectors", t.a.ToString(),
                                    t.b.ToString(), t.acc.ToString(), t.rows, t.vectors));
    }
    Print("{:>9.1f}", t.flops_per_second / 1e9);
  }
  Print("\n");
}

void PrintDevice(const driver::Profile& p) {
  const Machine& m = p.rates;
  Print("{}: {:.2f} GHz, planned for as {} parts\n{}\n", p.name, m.cycles_per_second / 1e9,
        m.workers, m.target.FullText());
  Print("a kernel against itself differs by {:.2f} %\n", 100 * p.noise);
  PrintMemory(p);
  const auto workers = static_cast<double>(m.workers);
  Print("\nmultiply-adds of f32 {:.2f} TFLOP/s\n",
        m.VectorUnit(DType::Float(32)).FlopsPerSecond() * workers / 1e12);
  for (const driver::TileRate& t : p.tiles) {
    Print("a large product of {} x {} in {} {:.1f} TFLOP/s\n", t.a.ToString(), t.b.ToString(),
          t.acc.ToString(), t.flops_per_second / 1e12);
  }
  Print("launch {:.2f} us, call of a library {:.2f} us; packing {:.1f} GB/s\nprofile {}\n",
        1e6 * m.launch_seconds, 1e6 * p.call_seconds, workers * m.pack_bytes_per_second / 1e9,
        p.Hash());
}

void PrintAll(const driver::Profile& p) {
  const Machine& m = p.rates;
  Print("{}, {} CPUs for this process, {:.2f} GHz\n", p.name, p.cpus, m.cycles_per_second / 1e9);
  Print("{}\n", m.target.FullText());
  Print("a kernel against itself differs by {:.2f} %\n", 100 * p.noise);
  PrintMemory(p);
  PrintTiles(p);
  Print("\nlaunch {:.0f} ns, call of a library {:.0f} ns", 1e9 * m.launch_seconds,
        1e9 * p.call_seconds);
  if (p.cpus > 1)
    Print(", barrier {:.2f} us, waking and joining the others {:.2f} us", 1e6 * m.barrier_seconds,
          1e6 * p.fork_join_seconds);
  Print(
      "\npacking {:.1f} GB/s; a turn of a loop {:.2f} cycles, a multiply-add {:.1f}, {:.2f} vector "
      "loads in one\n",
      m.pack_bytes_per_second / 1e9, m.loop_cycles, m.fma_latency_cycles, m.vector_loads_per_cycle);
  Print("profile {}\n", p.Hash());
}

int Doctor(const Arguments& args, const Common& common) {
  Expected<Target> target = Target::Parse(args.target);
  if (!target) return ReportUsage(target.errors(), common);
  if (target->cores() > 0)
    return ReportUsage(
        {MakeError("one core and all CPUs are measured: expected a target without -num-cores")},
        common);
  const bool live = !args.json && !args.quiet && isatty(STDERR_FILENO);
  driver::DoctorOptions options{.target = *target};
  options.progress = [&](const std::string& what, double done) {
    if (live) PrintError("\r{:3.0f} % {:<40}", 100 * done, what);
  };
  const Expected<driver::Profile> profile = driver::MeasureMachine(options);
  if (live) PrintError("\r{:<46}\r", "");
  if (!profile) return Report(profile.errors(), common);
  if (args.json) {
    WriteOut(profile->ToString());
  } else if (!args.quiet) {
    profile->rates.target->IsDevice() ? PrintDevice(*profile) : PrintAll(*profile);
  }
  if (args.output.empty()) return kDone;
  const Status written = WriteFile(args.output, profile->ToString());
  return written ? kDone : Report(written.errors(), common);
}

}  // namespace

Run AddDoctor(CLI::App& app, const Common& common) {
  auto args = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("doctor", "measure what this machine does, for --profile");
  verb->footer(
      "Examples:\n"
      "  tenon doctor                                    less than a minute, and a table\n"
      "  tenon doctor -o machine.json\n"
      "  tenon compile model.onnx -o model.so --profile machine.json\n"
      "Times are ratios to a clock that runs beside each kernel, so a machine that does other\n"
      "things too gives much the same. docs/tuning.md says what becomes of them.");
  verb->add_option(
          "--target", args->target,
          "code of which target is measured; llvm is all that this machine has; of cuda and "
          "opencl it is the first device")
      ->capture_default_str();
  verb->add_option("-o,--output", args->output, "takes the profile");
  verb->add_flag("--json", args->json, "print the profile in the place of tables");
  verb->add_flag("-q,--quiet", args->quiet, "print nothing but errors");
  return [args, &common] { return Doctor(*args, common); };
}

}  // namespace tenon::tools

// tenon compile MODEL -o OUT
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "compile_arguments.h"
#include "console.h"
#include "driver/cache.h"
#include "driver/pipeline.h"
#include "guard.h"
#include "loop/pass/pass.h"
#include "plan/passes.h"
#include "progress.h"
#include "support/strings.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

struct Arguments {
  CompileArguments how;
  std::vector<std::string> emit, print_after, disabled;
  std::string params = "embed", format = "so", max_memory, max_time;
  bool time_passes = false, quiet = false, no_cache = false;
};

// A kernel's row counts all its launches, so that the columns add up.
void PrintKernels(const std::vector<driver::KernelReport>& kernels) {
  Print("of all launches of a kernel:\n{:<24} {:<16} {:>8} {:>12} {:>12} {:>12}\n", "kernel",
        "kind", "launches", "MFLOP", "KB", "est. µs");
  double flops = 0, bytes = 0, micros = 0;
  for (const driver::KernelReport& k : kernels) {
    const auto launches = static_cast<double>(k.launches);
    const double row_flops = launches * static_cast<double>(k.flops) / 1e6;
    const double row_bytes = launches * static_cast<double>(k.bytes) / 1e3;
    const double row_micros = launches * k.estimated_us;
    Print("{:<24} {:<16} {:>8} {:>12.3f} {:>12.1f} {:>12.1f}\n", k.name, k.kind, k.launches,
          row_flops, row_bytes, row_micros);
    flops += row_flops;
    bytes += row_bytes;
    micros += row_micros;
  }
  Print("{:<24} {:<16} {:>8} {:>12.3f} {:>12.1f} {:>12.1f}\n", "total", "", "", flops, bytes,
        micros);
}

// Passes are parts of the phase "graph" or "kernels"; those of kernels run side by side.
void PrintTimes(const std::vector<driver::PassTime>& times) {
  const auto is_phase = [](const driver::PassTime& t) {
    const auto& phases = driver::Phases();
    return std::find(phases.begin(), phases.end(), t.name) != phases.end();
  };
  for (const bool phases : {true, false}) {
    Print("\n{:<24} {:>8} {:>12}\n", phases ? "phase" : "pass (sum over threads)", "runs", "ms");
    for (const driver::PassTime& t : times) {
      if (is_phase(t) == phases) Print("{:<24} {:>8} {:>12.2f}\n", t.name, t.runs, t.seconds * 1e3);
    }
  }
}

// Which values between kernels are wider than was asked for; all of their names with -v.
void PrintWide(const driver::CompileReport& report, bool verbose) {
  if (report.narrow_values == 0 && report.wide_values.empty()) return;
  constexpr size_t kShown = 8;
  const size_t all = report.wide_values.size(), shown = verbose ? all : std::min(all, kShown);
  Print("\nof {} values between kernels {} are of 16 bits; {} stayed f32{}",
        report.narrow_values + static_cast<int64_t>(all), report.narrow_values, all,
        all > 0 ? ": " : "\n");
  for (size_t i = 0; i < shown; ++i) Print("{}{}", i > 0 ? ", " : "", report.wide_values[i]);
  if (all > 0) Print("{}\n", shown < all ? ", … (-v names all)" : "");
}

void PrintReport(const driver::CompileReport& report, const Arguments& args, bool verbose) {
  if (!args.quiet) PrintKernels(report.kernels);
  if (args.time_passes) PrintTimes(report.passes);
  if (args.quiet) return;
  PrintWide(report, verbose);
  for (const std::string& remark : report.remarks) {
    if (verbose) Print("{}\n", remark);
  }
  auto megabytes = [](int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  Print(
      "\n{}: {:.2f} MB, of which weights {:.2f} MB; working memory {:.2f} MB; compiled in {:.2f} "
      "s\n",
      report.params.empty() ? report.artifact : report.artifact + " and " + report.params,
      megabytes(report.artifact_bytes), megabytes(report.weights_bytes),
      megabytes(report.arena_bytes), report.seconds);
  if (!report.lacks_core_for.empty()) {
    Print("who uses the object links libtenon_core.a for {} besides\n", report.lacks_core_for);
  }
}

// Wrong usage that the parser could not see.
Status Finish(Arguments* args, int64_t* max_bytes, double* max_seconds) {
  if (!args->max_memory.empty()) {
    TN_ASSIGN_OR_RETURN(*max_bytes, ParseBytes(args->max_memory));
  }
  if (!args->max_time.empty()) {
    TN_ASSIGN_OR_RETURN(*max_seconds, ParseSeconds(args->max_time));
  }
  driver::CompileOptions& o = args->how.options;
  o.params =
      args->params == "separate" ? driver::ParamsMode::kSeparate : driver::ParamsMode::kEmbed;
  o.format = args->format == "obj" ? driver::OutputFormat::kObject
             : args->format == "c" ? driver::OutputFormat::kCSource
                                   : driver::OutputFormat::kSharedLibrary;
  o.emit.insert(args->emit.begin(), args->emit.end());
  o.print_after.insert(args->print_after.begin(), args->print_after.end());
  o.disabled_passes.insert(args->disabled.begin(), args->disabled.end());
  return args->how.Finish();
}

int Compile(Arguments& args, const Common& common) {
  int64_t max_bytes = 0;
  double max_seconds = 0;
  if (Status status = Finish(&args, &max_bytes, &max_seconds); !status) {
    return ReportUsage(status.errors(), common);
  }
  Watchdog watchdog(max_bytes, max_seconds, common);
  driver::CompileOptions& o = args.how.options;
  o.dump = [](const std::string& text) { WriteOut(text + "\n"); };
  Progress progress(common.verbose ? Progress::Lines::kPhasesWithTimes : Progress::Lines::kPhases);
  if (!args.quiet)
    o.progress = [&](const std::string& phase, int64_t done, int64_t total) {
      progress.Show(phase, done, total);
    };
  std::vector<std::string> warnings;  // said behind the progress
  o.warn = [&](const std::string& warning) { warnings.push_back(warning); };
  if (!args.no_cache) o.cache = driver::CacheDirectoryIfAny(o.warn);
  Expected<driver::CompileReport> report = driver::Compile(o);
  progress.Clear();
  for (const std::string& w : warnings) {
    if (!args.quiet) PrintError("tenon: {}\n", w);
  }
  if (!report) return Report(InFile(std::move(report.errors()), o.model), common);
  PrintReport(*report, args, common.verbose);
  return kDone;
}

// "" or what is wrong with the name of a pass, or of one of the phases.
std::string CheckPassName(const std::string& name, std::vector<std::string> phases) {
  std::vector<std::string> names = std::move(phases);
  for (const PassInfo& pass : LoopPasses()) names.push_back(pass.name);
  for (const auto* passes : {&graph::GraphPasses(), &graph::PlanPasses()}) {
    for (const auto& pass : *passes) names.push_back(pass.name);
  }
  if (std::find(names.begin(), names.end(), name) != names.end()) return "";
  const std::string near = NearestWord(name, names);
  return fmt::format("there is no pass '{}'{}; tenon-opt --list-passes lists them", name,
                     near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near));
}

void AddOutputOptions(CLI::App* verb, Arguments* args) {
  driver::CompileOptions& o = args->how.options;
  const char* group = "What to write";
  verb->add_option("-o,--output", o.output,
                   "the library; or a folder (dir/): model.so, metadata.json and "
                   "inference_example.cpp in it")
      ->group(group)
      ->required();
  verb->add_option("--name", o.name,
                   "the name of the exported function; another one than main also writes NAME.h, "
                   "so that two "
                   "models link into one program")
      ->group(group)
      ->capture_default_str();
  verb->add_option("--params", args->params,
                   "embed: weights in the library; separate: in a .params file beside it")
      ->group(group)
      ->check(CLI::IsMember({"embed", "separate"}))
      ->capture_default_str();
  verb->add_option(
          "--format", args->format,
          "so: a shared library; obj: an object to link into a program; c: C source and its header")
      ->group(group)
      ->check(CLI::IsMember({"so", "obj", "c"}))
      ->capture_default_str();
  verb->add_flag("--export", o.visible,
                 "obj and c: functions can be seen outside of the program or library that they are "
                 "linked into; without it two plugins may have models of one name")
      ->group(group);
  verb->add_option("--soname", o.soname,
                   "the name that programs linked with the library ask the loader for; its file's "
                   "name where nothing is said")
      ->group(group);
  verb->add_option("--export-kernel", o.export_kernels,
                   "also export this kernel as a function; may be repeated")
      ->group(group)
      ->allow_extra_args(false);
}

void AddLookingOptions(CLI::App* verb, Arguments* args) {
  const char* group = "Looking inside";
  const CLI::Validator pass([](const std::string& name) { return CheckPassName(name, {}); },
                            "PASS");
  const CLI::Validator pass_or_phase(
      [](const std::string& name) { return CheckPassName(name, {"import", "lower", "schedule"}); },
      "PASS");
  verb->add_option("--emit", args->emit,
                   "also write these forms beside the output: graph,loop,llvm,asm,c")
      ->group(group)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"graph", "loop", "llvm", "asm", "c"}));
  verb->add_option("--print-after", args->print_after,
                   "print the code after this pass, or import, lower or schedule; may be repeated")
      ->group(group)
      ->allow_extra_args(false)
      ->check(pass_or_phase);
  verb->add_option("--disable", args->disabled, "leave this pass out; may be repeated")
      ->group(group)
      ->allow_extra_args(false)
      ->check(pass);
  verb->add_flag("--verify-each,!--no-verify-each", args->how.options.verify_each,
                 "check the code after every pass")
      ->group(group);
  verb->add_flag("--time-passes", args->time_passes, "print the time of every phase and pass")
      ->group(group);
}

}  // namespace

Run AddCompile(CLI::App& app, const Common& common) {
  auto args = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("compile", "compile an ONNX model to a native library");
  verb->footer(
      "Examples:\n"
      "  tenon compile model.onnx -o model.so\n"
      "  tenon compile model.onnx -o dir/ --shape image:1x3x224x224\n"
      "  tenon compile model.onnx -o model.so --target \"llvm -mcpu=core-avx2\" --time-passes\n"
      "Nothing is written under its own name before it is whole.");
  verb->add_option("model", args->how.options.model, "the ONNX file")->required();
  AddOutputOptions(verb, args.get());
  args->how.AddTo(verb);
  verb->add_flag("--no-cache", args->no_cache,
                 "make the code of all kernels anew; else what was made before comes from "
                 "TENON_CACHE_DIR (`tenon cache`)")
      ->group("How to compile");
  const char* group = "Limits (exit 5)";
  verb->add_option("--max-memory", args->max_memory, "stop when more is resident, as 512M or 2G")
      ->group(group);
  verb->add_option("--max-time", args->max_time, "stop after so long, as 30s or 5m")->group(group);
  AddLookingOptions(verb, args.get());
  verb->add_flag("-q,--quiet", args->quiet, "no progress, no table: errors only");
  return [args, &common] { return Compile(*args, common); };
}

}  // namespace tenon::tools

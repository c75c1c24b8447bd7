// tenon bench MODEL_OR_SO
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "artifact_source.h"
#include "console.h"
#include "device.h"
#include "kernel_times.h"
#include "numbers.h"
#include "support/atomic_file.h"
#include "support/strings.h"
#include "support/thread_pool.h"
#include "values.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

struct Arguments {
  std::string model;
  CompileArguments how;
  CallArguments call;
  int64_t warm_up = 3, repeat = 0;  // repeat 0: as `duration` says
  double duration = 3;
  int threads = 0;  // 0: as TENON_NUM_THREADS says
  std::string json;
};

struct Statistics {
  double mean = 0, deviation = 0, p50 = 0, p90 = 0, p99 = 0, min = 0;
  size_t runs = 0;
};

/// Of at least one time, all in the same unit.
Statistics Summarize(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  auto n = static_cast<double>(times.size());
  // The nearest rank: an actual measurement, never one between two.
  auto percentile = [&](double part) {
    auto rank = static_cast<size_t>(std::ceil(part * n));
    return times[std::max<size_t>(rank, 1) - 1];
  };
  Statistics s;
  s.runs = times.size();
  s.mean = std::accumulate(times.begin(), times.end(), 0.0) / n;
  double squares = 0;
  for (double t : times) squares += (t - s.mean) * (t - s.mean);
  s.deviation = times.size() > 1 ? std::sqrt(squares / (n - 1)) : 0;
  s.p50 = percentile(0.50);
  s.p90 = percentile(0.90);
  s.p99 = percentile(0.99);
  s.min = times.front();
  return s;
}

/// The most memory this process has held, file pages included. (getrusage would count what the
/// process that started this one held.)
double PeakResidentMegabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  return 0;
}

// A call on a device is over when its stream is idle again.
bool Runs(Program::Repeated* call, tn_dl_device device) {
  return call->Run() && (device.device_type == TN_DL_CPU || tn_stream_wait(device, nullptr) == 0);
}

Expected<std::vector<double>> Measure(Program::Repeated* call, tn_dl_device device,
                                      const Arguments& args) {
  using Clock = std::chrono::steady_clock;
  auto milliseconds = [](Clock::duration d) {
    return std::chrono::duration<double, std::milli>(d).count();
  };
  constexpr size_t kFewest = 3;
  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  for (;;) {
    const Clock::time_point start = Clock::now();
    if (!Runs(call, device)) return ApiError();
    const Clock::time_point end = Clock::now();
    times.push_back(milliseconds(end - start));
    const bool enough = args.repeat > 0 ? times.size() >= static_cast<size_t>(args.repeat)
                                        : times.size() >= kFewest &&
                                              milliseconds(end - begin) >= 1e3 * args.duration;
    if (enough) return times;
  }
}

/// How many threads the runtime will use.
int Threads() {
  const char* text = std::getenv("TENON_NUM_THREADS");
  int threads = text ? std::atoi(text) : 0;
  return threads > 0 ? threads : AvailableCpus();
}

Status PrintResults(const Statistics& s, const LoadedModel& model, tn_dl_device device,
                    const std::vector<KernelTime>& kernels, const Arguments& args) {
  const double peak = PeakResidentMegabytes();
  // Calls of a small model take less than a microsecond.
  const bool small = s.p50 < 0.1;
  const double unit = small ? 1e3 : 1;
  Print("latency    {:.3f} {} ± {:.3f}   p50 {:.3f}   p90 {:.3f}   p99 {:.3f}   min {:.3f}\n",
        unit * s.mean, small ? "µs" : "ms", unit * s.deviation, unit * s.p50, unit * s.p90,
        unit * s.p99, unit * s.min);
  const std::string where = device.device_type != TN_DL_CPU ? ToString(device)
                            : Threads() == 1                ? "1 thread"
                                                            : fmt::format("{} threads", Threads());
  Print("throughput {:.1f} runs/s on {}, of {} runs\n", 1e3 / s.mean, where, s.runs);
  Print("memory     {:.1f} MB at most; artifact {:.1f} MB\n", peak,
        static_cast<double>(model.artifact_bytes) / 1e6);
  Print("loaded in  {:.2f} ms", model.load_seconds * 1e3);
  if (model.compile_seconds > 0) Print(", compiled in {:.2f} s", model.compile_seconds);
  Print("\n");
  if (!kernels.empty()) PrintKernelTimes(kernels, s.runs);
  if (args.json.empty()) return Ok();
  nlohmann::ordered_json json = {
      {"mean_ms", s.mean},
      {"std_ms", s.deviation},
      {"p50_ms", s.p50},
      {"p90_ms", s.p90},
      {"p99_ms", s.p99},
      {"min_ms", s.min},
      {"runs", s.runs},
      {"device", ToString(device)},
      {"threads", Threads()},
      {"compile_ms", model.compile_seconds * 1e3},
      {"load_ms", model.load_seconds * 1e3},
      {"peak_rss_mb", peak},
      {"artifact_bytes", model.artifact_bytes},
  };
  if (!kernels.empty()) json["kernels"] = ToJson(kernels);
  return WriteFile(args.json, json.dump(1) + "\n");
}

// What the call's arguments refer to lives as long.
Status BenchCall(Program::Repeated call, const LoadedModel& model, tn_dl_device device,
                 const Arguments& args) {
  for (int64_t i = 0; i < args.warm_up; ++i) {
    if (!Runs(&call, device)) return ApiError();
  }
  TN_ASSIGN_OR_RETURN(const std::vector<KernelTime> before, KernelTimesOf(model.program));
  TN_ASSIGN_OR_RETURN(std::vector<double> times, Measure(&call, device, args));
  TN_ASSIGN_OR_RETURN(std::vector<KernelTime> kernels, KernelTimesOf(model.program));
  return PrintResults(Summarize(std::move(times)), model, device, Since(std::move(kernels), before),
                      args);
}

// A network of any values makes its results in every call.
Status BenchValues(const LoadedModel& model, const Arguments& args) {
  TN_ASSIGN_OR_RETURN(const std::vector<Value> inputs,
                      args.call.Values(model.program, args.how.options.shapes));
  TN_ASSIGN_OR_RETURN(const ValueArguments values, ValueArguments::Of(model.program, inputs));
  return BenchCall(model.program.Prepare(values.list()), model, {TN_DL_CPU, 0}, args);
}

Status BenchModel(Arguments& args, const Common& common) {
  // Before the first call: the pool is made then.
  if (args.threads > 0) setenv("TENON_NUM_THREADS", std::to_string(args.threads).c_str(), 1);
  if (!args.json.empty()) {
    TN_RETURN_IF_ERROR(args.call.CheckNotRead(args.json, args.model));
    TN_RETURN_IF_ERROR(AtomicFile::Create(args.json));  // that it cannot be written is known first
  }
  TN_RETURN_IF_ERROR(args.call.ReadFiles());
  TN_ASSIGN_OR_RETURN(LoadedModel model,
                      LoadModel(args.model, args.how, args.call, common.verbose));
  if (model.program.HasValues()) return BenchValues(model, args);
  TN_ASSIGN_OR_RETURN(const tn_dl_device device, DeviceFor(model.program, args.call.device()));
  TN_ASSIGN_OR_RETURN(NamedTensors inputs,
                      args.call.Inputs(model.program, args.how.options.shapes));
  TN_ASSIGN_OR_RETURN(inputs, OnDevice(inputs, device));
  // The first call makes the outputs, and with them their shapes; the measured ones write into
  // them, unless only the call can tell how large they are.
  TN_ASSIGN_OR_RETURN(NamedTensors outputs, model.program.Call(inputs));
  if (model.program.MakesOutputs()) outputs.clear();
  return BenchCall(model.program.Prepare(inputs, outputs), model, device, args);
}

}  // namespace

Run AddBench(CLI::App& app, const Common& common) {
  auto args = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("bench", "measure how long a model takes");
  verb->footer(
      "Examples:\n"
      "  tenon bench model.so --threads 2\n"
      "  tenon bench model.onnx --shape tokens:1x128 --repeat 100 --json result.json\n"
      "  tenon bench model.onnx --time-kernels\n"
      "Calls write into outputs made beforehand; loading and compiling are not part of the "
      "latency. On a device, a call lasts until its stream is idle again.");
  verb->add_option("model", args->model, "a compiled library or an ONNX file")->required();
  const char* group = "Measuring";
  verb->add_option("--threads", args->threads,
                   "threads to run with; default: TENON_NUM_THREADS, else all CPUs of this process")
      ->group(group)
      ->check(CLI::Range(1, 4096));
  verb->add_option("--warm-up", args->warm_up, "calls before the measured ones")
      ->group(group)
      ->check(AtLeast(0))
      ->capture_default_str();
  CLI::Option* repeat = verb->add_option("--repeat", args->repeat, "measure exactly N calls")
                            ->group(group)
                            ->check(AtLeast(1));
  verb->add_option("--duration", args->duration,
                   "measure for so many seconds, three calls at least")
      ->group(group)
      ->check(AtLeast(0))
      ->excludes(repeat)
      ->capture_default_str();
  verb->add_option("--json", args->json, "also write the figures to a file, as one JSON object")
      ->group(group);
  args->call.AddTo(verb, "random");
  args->how.AddTo(verb);
  return [args, &common]() -> int {
    if (Status status = args->how.Finish(); !status) return ReportUsage(status.errors(), common);
    Status status = BenchModel(*args, common);
    return status ? kDone : Report(status.errors(), common);
  };
}

}  // namespace tenon::tools

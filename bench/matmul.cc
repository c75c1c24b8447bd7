// Matrix products with constant weights, compiled from a model as a user's would be: GFLOP/s and
// the ratio to what as many threads reach at the same moment, on one thread and on two. With
// `--precision exact` that is the FMA peak, or for a single row, in GB/s, the rate of reading as
// much memory; with `--precision bf16`, where there is a matrix unit for it, that unit's rate fed
// from the second-level cache.
//
//   bench_matmul [rounds, default 15] [m k n: this product only]
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <random>
#include <vector>

#include "driver/compile.h"
#include "fma_peak.h"
#include "read_peak.h"
#include "support/atomic_file.h"
#include "support/check.h"
#include "tenon/c_api.h"
#include "tile_peak.h"
#include "unit/onnx/model_builder.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

struct Shape {
  int64_t m, k, n;
  double flops() const { return 2.0 * static_cast<double>(m * k * n); }
};

std::vector<float> Random(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-1, 1);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& v : out) v = value(random);
  return out;
}

/// A folder for one model and its library, gone with the object.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / fmt::format("bench_matmul.{}", getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string File(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// What the last failed call of the C API said.
Diagnostic ApiError() { return MakeError(tn_last_error(nullptr)); }

using LoadedModule = std::unique_ptr<tn_module_t, decltype(&tn_module_free)>;

/// What products are compiled for and measured by.
struct Kind {
  const char* precision;
  double (*peak)(int threads);  // GFLOP/s
  double epsilon;               // half an ulp of what is multiplied
};
constexpr Kind kExact = {"exact", bench::FmaPeak, 0};
constexpr Kind kTiles = {"bf16", bench::TilePeak, 0x1p-8};

/// Compiles y = a · w for constant w and loads it.
Expected<LoadedModule> Load(const Shape& s, const std::vector<float>& w, const Kind& kind) {
  Folder folder;
  onnx::test::Model model;
  model.Input("a", {s.m, s.k}).Output("y").Node("MatMul", {"a", "w"}, {"y"});
  model.Init("w", onnx::test::kFloat, {s.k, s.n}, onnx::test::Raw(w));
  driver::CompileOptions options;
  options.model = folder.File("matmul.onnx");
  options.output = folder.File("matmul.so");
  options.precision = kind.precision;
  TN_RETURN_IF_ERROR(WriteFile(options.model, model.Bytes()));
  TN_RETURN_IF_ERROR(driver::Compile(options));
  tn_module_t* module = nullptr;
  if (tn_module_load(options.output.c_str(), &module) != 0) return ApiError();
  return LoadedModule(module, tn_module_free);
}

/// The largest error of some elements, in units of the bound that any order of summation keeps.
double WorstError(const Shape& s, const std::vector<float>& a, const std::vector<float>& w,
                  const float* y, const Kind& kind) {
  constexpr int64_t kSamples = 2000;
  double worst = 0;
  for (int64_t i = 0; i < std::min(kSamples, s.m * s.n); ++i) {
    // A stride without a common factor with the size of most products reaches all rows and columns.
    int64_t at = i * 1000003 % (s.m * s.n), row = at / s.n, col = at % s.n;
    double sum = 0, size = 0;
    for (int64_t k = 0; k < s.k; ++k) {
      double product = static_cast<double>(a[static_cast<size_t>(row * s.k + k)]) *
                       static_cast<double>(w[static_cast<size_t>(k * s.n + col)]);
      sum += product;
      size += std::abs(product);
    }
    double bound = (static_cast<double>(s.k) * 0x1p-24 + 2 * kind.epsilon) * size;
    worst = std::max(worst, std::abs(static_cast<double>(y[at]) - sum) / bound);
  }
  return worst;
}

double Median(std::vector<double> v) {
  auto middle = v.begin() + static_cast<long>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

/// y = a · w over given memory, on at most so many threads.
class Call {
 public:
  Call(const tn_module_t* module, const Shape& s, float* a, float* y, int threads) {
    TN_CHECK(tn_module_get_function(module, "main", &function_) == 0, "no function");
    args_[0] = Wrap(a, {s.m, s.k});
    args_[1] = Wrap(y, {s.m, s.n});
    options_.struct_bytes = sizeof(options_);
    options_.max_team = threads;
  }
  ~Call() {
    for (tn_ffi_any& arg : args_) tn_value_release(&arg);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void operator()() {
    tn_ffi_any result{};
    TN_CHECK(tn_call(function_, &options_, args_, 2, &result) == 0, "{}", tn_last_error(nullptr));
  }

 private:
  static tn_ffi_any Wrap(float* data, const int64_t (&shape)[2]) {
    tn_tensor_t* tensor = nullptr;
    TN_CHECK(tn_tensor_wrap(data, {TN_DL_FLOAT, 32, 1}, 2, shape, {TN_DL_CPU, 0}, &tensor) == 0,
             "{}", tn_last_error(nullptr));
    tn_ffi_any value{};
    value.type_index = TN_FFI_TENSOR;
    value.u.v_obj = reinterpret_cast<tn_ffi_object*>(tensor);
    return value;
  }

  tn_packed_fn function_ = nullptr;
  tn_ffi_any args_[2];
  tn_call_options_t options_{};
};

/// Processor time of all threads of this process.
double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Peak and product take turns, because clocks drift: the ratio is the median of each product's to
/// the peak around it. The second ratio is by processor time, spread over the threads: where other
/// programs want the cores too, the first says what they left and the second what the code does.
void Measure(const Shape& s, const Kind& kind, Call& call, int threads, int rounds) {
  call();
  auto from = Clock::now();
  call();
  // A few milliseconds a round, which clocks can tell apart.
  const int calls = static_cast<int>(std::clamp(10e-3 / Seconds(from), 1.0, 1000.0));
  std::vector<double> peaks, speeds, ratios, cpu_ratios;
  double before = kind.peak(threads);
  for (int r = 0; r < rounds; ++r) {
    double cpu = CpuSeconds();
    from = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    double speed = s.flops() * calls / Seconds(from) * 1e-9;
    double cpu_speed = s.flops() * calls * threads / (CpuSeconds() - cpu) * 1e-9;
    double after = kind.peak(threads);
    peaks.push_back((before + after) / 2);
    speeds.push_back(speed);
    ratios.push_back(speed / peaks.back());
    cpu_ratios.push_back(cpu_speed / peaks.back());
    before = after;
  }
  fmt::print(
      "{:>5} x {:>5} x {:>5}  {:<5}  {} threads  {:>6.1f} of {:>6.1f} GFLOP/s  ratio {:.3f}  "
      "best {:.3f}  by processor time {:.3f}\n",
      s.m, s.k, s.n, kind.precision, threads, Median(speeds), Median(peaks), Median(ratios),
      *std::max_element(ratios.begin(), ratios.end()), Median(cpu_ratios));
  std::fflush(stdout);
}

/// A single row is bound by how fast the weights come in. Reading takes turns with it.
void MeasureStream(const Shape& s, Call& call, int threads, int rounds) {
  const int64_t bytes = s.k * s.n * static_cast<int64_t>(sizeof(float));
  call();
  std::vector<double> peaks, speeds, ratios;
  for (int r = 0; r < rounds; ++r) {
    peaks.push_back(bench::ReadPeak(bytes, threads));
    double best = 0;  // as the peak is the best of its rounds
    call();
    for (int i = 0; i < 5; ++i) {
      const auto from = Clock::now();
      call();
      best = std::max(best, static_cast<double>(bytes) / Seconds(from) * 1e-9);
    }
    speeds.push_back(best);
    ratios.push_back(best / peaks.back());
  }
  fmt::print(
      "{:>5} x {:>5} x {:>5}  {} threads  {:>6.1f} of {:>6.1f} GB/s  ratio {:.3f}  best {:.3f}\n",
      s.m, s.k, s.n, threads, Median(speeds), Median(peaks), Median(ratios),
      *std::max_element(ratios.begin(), ratios.end()));
  std::fflush(stdout);
}

Status Run(const Shape& s, const Kind& kind, int rounds) {
  std::vector<float> a = Random(s.m * s.k, 1), w = Random(s.k * s.n, 2);
  TN_ASSIGN_OR_RETURN(const LoadedModule module, Load(s, w, kind));
  std::vector<float> y(static_cast<size_t>(s.m * s.n));
  for (int threads : {1, 2}) {
    Call call(module.get(), s, a.data(), y.data(), threads);
    s.m == 1 ? MeasureStream(s, call, threads, rounds) : Measure(s, kind, call, threads, rounds);
  }
  const double error = WorstError(s, a, w, y.data(), kind);
  if (error <= 1) return Ok();
  return MakeError(fmt::format("wrong result: {} times the error bound", error));
}

Status Run(int rounds, const std::vector<Shape>& shapes) {
  for (const Shape& s : shapes) {
    TN_RETURN_IF_ERROR(Run(s, kExact, rounds));
    if (s.m > 1 && bench::HasTiles()) TN_RETURN_IF_ERROR(Run(s, kTiles, rounds));
  }
  return Ok();
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  // Before the first call, which makes the pool.
  setenv("TENON_NUM_THREADS", "2", 1);
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
  std::vector<tenon::Shape> shapes = {{512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048},
                                      {128, 768, 768}, {128, 768, 3072},   {128, 3072, 768},
                                      {197, 768, 768}, {1, 4096, 4096},    {1, 25088, 4096}};
  if (argc > 4) shapes = {{std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4])}};
  const tenon::Status done = tenon::Run(rounds, shapes);
  if (done) return 0;
  fmt::print(stderr, "{}\n", ToString(done.errors()));
  return 1;
}

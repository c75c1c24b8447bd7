// Whether the point that the model chooses is a good one: for each of some groups from networks,
// kernels at points of its spaces (by seed, the chosen one among them) are built by themselves and
// measured in turns, and the chosen one's time is given over the best one's.
//
//   bench_space [GRAPH] [--points 32] [--seed 1] [--rounds 15] [--threads 1] [--only NAME]
//               [--target "llvm -mcpu=…"] [--all] [--records FILE]
//
// GRAPH is a graph's text, as `tenon compile --emit graph` writes it: each of its groups that has
// an algorithm with a space is measured, equal ones once. --all prints every point, its predicted
// and its measured time; --records writes them for `tenon compile --prices`.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "arith/analyzer.h"
#include "driver/build.h"
#include "graph/lower/lower_group.h"
#include "graph/text.h"
#include "opt_weights.h"
#include "plan/records.h"
#include "plan/region.h"
#include "plan/space.h"
#include "support/atomic_file.h"
#include "support/check.h"
#include "support/file.h"
#include "tenon/c_api.h"

namespace tenon {
namespace {

// Processor time of all threads: what other programs take of the machine does not count.
double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Options {
  size_t points = 32;
  unsigned seed = 1;
  int rounds = 15, threads = 1;
  bool all = false;
  std::string graph, only, target = "llvm", records;
};

// Graphs of one kernel.
struct Text {
  const char* name;
  const char* graph;
};

constexpr Text kTexts[] = {
    {"bert-base, attention's output: 128 x 768 x 768",
     R"(graph @g(%0 "x": f32[128, 768], %1 "w": f32[768, 768], %2 "b": f32[768], %3 "r": f32[128, 768]) {
  %4: f32[128, 768] = fused(%0, %1, %2, %3) "it" region(%0: f32[128, 768], %1: f32[768, 768], %2: f32[768], %3: f32[128, 768]) {
    %4: f32[128, 768] = matmul(%0, %1)
    %5: f32[128, 768] = add(%4, %2)
    %6: f32[128, 768] = add(%5, %3)
    return %6 "y"
  }
  return %4 "y"
})"},
    {"bert-base, feed-forward: 128 x 3072 x 768",
     R"(graph @g(%0 "x": f32[128, 3072], %1 "w": f32[3072, 768]) {
  %2: f32[128, 768] = matmul(%0, %1) "it"
  return %2 "y"
})"},
    {"resnet50, 3 x 3 of 64 channels on 56 x 56",
     R"(graph @g(%0 "x": f32[1, 64, 56, 56], %1 "w": f32[64, 64, 3, 3], %2 "b": f32[64]) {
  %3: f32[1, 64, 56, 56] = fused(%0, %1, %2) "it" region(%0: f32[1, 64, 56, 56], %1: f32[64, 64, 3, 3], %2: f32[64]) {
    %3: f32[1, 64, 56, 56] = conv(%0, %1, %2) {pads: [1, 1, 1, 1]}
    %4: f32[1, 64, 56, 56] = relu(%3)
    return %4 "y"
  }
  return %3 "y"
})"},
    {"resnet50, 1 x 1 of 256 to 1024 channels on 14 x 14",
     R"(graph @g(%0 "x": f32[1, 256, 14, 14], %1 "w": f32[1024, 256, 1, 1], %2 "b": f32[1024], %3 "r": f32[1, 1024, 14, 14]) {
  %4: f32[1, 1024, 14, 14] = fused(%0, %1, %2, %3) "it" region(%0: f32[1, 256, 14, 14], %1: f32[1024, 256, 1, 1], %2: f32[1024], %3: f32[1, 1024, 14, 14]) {
    %4: f32[1, 1024, 14, 14] = conv(%0, %1, %2)
    %5: f32[1, 1024, 14, 14] = add(%4, %3)
    %6: f32[1, 1024, 14, 14] = relu(%5)
    return %6 "y"
  }
  return %4 "y"
})"},
    {"mobilenet_v2, depthwise 3 x 3 of 144 channels on 56 x 56",
     R"(graph @g(%0 "x": f32[1, 144, 56, 56], %1 "w": f32[144, 1, 3, 3], %2 "b": f32[144]) {
  %3: f32[1, 144, 56, 56] = conv(%0, %1, %2) {group: 144, pads: [1, 1, 1, 1]} "it"
  return %3 "y"
})"}};

// What the last failed call of the C API said.
Diagnostic ApiError() { return MakeError(tn_last_error(nullptr)); }

/// A kernel in a library of its own, with memory to run on.
class Kernel {
 public:
  static Expected<std::unique_ptr<Kernel>> Make(const Module& module, const Target& target) {
    driver::BuildOptions build;
    build.target = &target;
    TN_ASSIGN_OR_RETURN(const driver::BuiltCode code, driver::BuildModule(module, build));
    TN_ASSIGN_OR_RETURN(const std::string image, driver::LinkBuilt(code, target, false));
    const std::string path =
        std::filesystem::temp_directory_path() / fmt::format("bench_space.{}.so", getpid());
    TN_RETURN_IF_ERROR(WriteFile(path, image));
    std::unique_ptr<Kernel> kernel(new Kernel);
    const bool loaded = tn_module_load(path.c_str(), &kernel->module_) == 0;
    std::filesystem::remove(path);
    if (!loaded || tn_module_get_function(kernel->module_, "kernel", &kernel->function_) != 0)
      return ApiError();
    TN_RETURN_IF_ERROR(kernel->MakeTensors(*module.Find("kernel")));
    return kernel;
  }
  ~Kernel() {
    for (tn_ffi_any& arg : args_) tn_value_release(&arg);
    if (module_) tn_module_free(module_);
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  /// Seconds of processor time of one call, from several, spread over the threads.
  double Measure(int calls, int threads) const {
    tn_call_options_t options{};
    options.struct_bytes = sizeof(options);
    options.max_team = threads;
    const double from = CpuSeconds();
    for (int i = 0; i < calls; ++i) {
      tn_ffi_any result{};
      TN_CHECK(tn_call(function_, &options, args_.data(), static_cast<int32_t>(args_.size()),
                       &result) == 0,
               "{}", tn_last_error(nullptr));
    }
    return (CpuSeconds() - from) / calls / threads;
  }

 private:
  Kernel() = default;

  // Parameters lie as they are stored; their numbers matter little, as long as they are no
  // denormals.
  Status MakeTensors(const PrimFunc& func) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> value(-1, 1);
    for (const Buffer& b : func.buffers) {
      std::vector<int64_t> shape;
      for (const Expr& e : b->layout ? StorageExtents(b->shape, b->layout) : b->shape)
        shape.push_back(*AsInt(e));
      tn_tensor_t* tensor = nullptr;
      if (tn_tensor_make({TN_DL_FLOAT, 32, 1}, static_cast<int32_t>(shape.size()), shape.data(),
                         {TN_DL_CPU, 0}, &tensor) != 0)
        return ApiError();
      const int64_t bytes = tn_tensor_bytes(tensor);
      std::vector<float> numbers(static_cast<size_t>(bytes) / sizeof(float));
      for (float& x : numbers) x = value(random);
      if (tn_tensor_copy_from_bytes(tensor, numbers.data(), bytes) != 0) return ApiError();
      tn_ffi_any arg{};
      arg.type_index = TN_FFI_TENSOR;
      arg.u.v_obj = reinterpret_cast<tn_ffi_object*>(tensor);
      args_.push_back(arg);
    }
    return Ok();
  }

  tn_module_t* module_ = nullptr;
  tn_packed_fn function_ = nullptr;
  std::vector<tn_ffi_any> args_;
};

struct Candidate {
  plan::NamedPoint point;
  double predicted = 0;
  std::unique_ptr<Kernel> kernel;
  std::vector<double> seconds = {};
};

double Median(std::vector<double> v) {
  const auto middle = v.begin() + static_cast<long>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

/// One group that is measured.
struct Case {
  std::string name;
  graph::Graph graph;
  graph::NodeId node;
};

/// The chosen point first, then others by seed; definitions, which nobody takes for these, aside.
Expected<std::vector<Candidate>> Candidates(const Case& test, const Machine& machine,
                                            const Options& options) {
  const graph::GraphPassContext context{&machine};
  const std::string name = plan::NameOf(test.graph, test.node);
  std::vector<Candidate> all;
  for (const plan::AlgorithmSpace& s : plan::SpacesOf(test.graph, test.node, context)) {
    if (s.algorithm == ops::Algorithms().back()) continue;
    for (const auto& p : s.points)
      all.push_back({{name, s.algorithm->name, p.point}, p.seconds, nullptr});
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.predicted < b.predicted;
  });
  if (const auto& plan = test.graph.node(test.node).plan) {
    const auto chosen = std::find_if(all.begin(), all.end(), [&](const Candidate& c) {
      return c.point.algorithm == plan->algorithm && c.point.choices == plan->AllChoices();
    });
    if (chosen != all.end()) std::rotate(all.begin(), chosen, chosen + 1);
  }
  std::shuffle(all.begin() + 1, all.end(), std::mt19937(options.seed));
  if (all.size() > options.points + 1) all.resize(options.points + 1);
  for (Candidate& c : all) {
    TN_ASSIGN_OR_RETURN(const plan::PlannedNode planned,
                        plan::WithPoint(test.graph, c.point, context));
    TN_ASSIGN_OR_RETURN(const Module module,
                        graph::LowerGroup(planned.graph, planned.node, machine));
    TN_ASSIGN_OR_RETURN(c.kernel, Kernel::Make(module, *machine.target));
  }
  return all;
}

void Report(const Case& test, std::vector<Candidate> all, const Options& options) {
  auto time = [](const Candidate& c) { return Median(c.seconds); };
  auto faster = [&](const Candidate& a, const Candidate& b) { return time(a) < time(b); };
  const auto best = std::min_element(all.begin(), all.end(), faster);
  fmt::print("{}: {} points\n  chosen {:.3g} s (predicted {:.3g})  {}\n", test.name, all.size(),
             time(all[0]), all[0].predicted, all[0].point.ToString());
  fmt::print("  best   {:.3g} s (predicted {:.3g})  {}\n  chosen / best {:.2f}\n", time(*best),
             best->predicted, best->point.ToString(), time(all[0]) / time(*best));
  if (options.all) {
    std::sort(all.begin(), all.end(), faster);
    for (const Candidate& c : all)
      fmt::print("    {:.3g} s (predicted {:.3g})  {}\n", time(c), c.predicted, c.point.ToString());
  }
  std::fflush(stdout);
}

Status Measure(const Case& test, const Machine& machine, const Options& options,
               std::string* records) {
  TN_ASSIGN_OR_RETURN(std::vector<Candidate> all, Candidates(test, machine, options));
  // Some milliseconds a turn, which clocks can tell apart; the first call of a turn warms up.
  std::vector<int> calls;
  for (Candidate& c : all) {
    c.kernel->Measure(1, options.threads);
    calls.push_back(
        static_cast<int>(std::clamp(2e-3 / c.kernel->Measure(1, options.threads), 1.0, 1e3)));
  }
  for (int r = 0; r < options.rounds; ++r) {
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].kernel->Measure(1, options.threads);
      all[i].seconds.push_back(all[i].kernel->Measure(calls[i], options.threads));
    }
  }
  const graph::Group group = graph::GroupOf(test.graph, test.node);
  for (const Candidate& c : all) {
    *records += plan::Records::Line(*ops::FindAlgorithm(c.point.algorithm),
                                    {group.region, group.anchor, machine}, c.point.choices,
                                    Median(c.seconds));
  }
  Report(test, std::move(all), options);
  return Ok();
}

/// Those of the graph that has been given, or the built-in ones.
Expected<std::vector<Case>> Cases(const Machine& machine, const Options& options) {
  std::vector<Case> cases;
  if (options.graph.empty()) {
    for (const Text& text : kTexts) {
      TN_ASSIGN_OR_RETURN(graph::Graph g, graph::Parse(text.graph, text.name));
      cases.push_back({text.name, std::move(g), 0});
    }
    return cases;
  }
  TN_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.graph));
  TN_ASSIGN_OR_RETURN(const graph::Graph g,
                      graph::Parse(text, options.graph, FindWeights(options.graph, {})));
  std::set<std::string> known;
  for (graph::NodeId n : graph::KernelNodes(g)) {
    const graph::Group group = graph::GroupOf(g, n);
    const ops::Site site{group.region, group.anchor, machine};
    const auto rows = ops::Algorithms().first(ops::Algorithms().size() - 1);
    const bool has_space = std::any_of(rows.begin(), rows.end(),
                                       [&](const auto* a) { return ops::Applies(*a, site); });
    if (!has_space || !known.insert(graph::RegionKey(group.region)).second) continue;
    cases.push_back({plan::NameOf(g, n), g, n});
  }
  return cases;
}

Status Run(const Options& options) {
  TN_ASSIGN_OR_RETURN(const Target target, Target::Parse(options.target));
  const Machine machine = Machine::Of(target);
  TN_ASSIGN_OR_RETURN(const std::vector<Case> cases, Cases(machine, options));
  std::string records;
  for (const Case& test : cases) {
    if (test.name.find(options.only) == std::string::npos) continue;
    TN_RETURN_IF_ERROR(Measure(test, machine, options, &records));
  }
  return options.records.empty() ? Ok() : WriteFile(options.records, records);
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures kernels at points of their spaces.", "bench_space");
  app.add_option("--points", options.points, "besides the chosen one")->capture_default_str();
  app.add_option("--seed", options.seed, "of the points")->capture_default_str();
  app.add_option("--rounds", options.rounds)->capture_default_str()->check(CLI::Range(1, 10000));
  app.add_option("--threads", options.threads)->capture_default_str()->check(CLI::Range(1, 64));
  app.add_option("--only", options.only, "groups whose name contains this");
  app.add_option("--target", options.target, "must run here")->capture_default_str();
  app.add_option("--records", options.records, "write what was measured");
  app.add_option("graph", options.graph, "a graph's text; default: some groups of networks");
  app.add_flag("--all", options.all, "print every point");
  CLI11_PARSE(app, argc, argv);
  // Before the first call, which makes the pool.
  setenv("TENON_NUM_THREADS", std::to_string(options.threads).c_str(), 1);
  if (Status status = Run(options); !status) {
    fmt::print(stderr, "{}\n", ToString(status.errors()));
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) { return tenon::Main(argc, argv); }

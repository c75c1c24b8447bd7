// Random networks, compiled plainly and with everything: both libraries give the same results.
// TENON_RANDOM_GRAPHS=n tries n of them, TENON_FUZZ_SEED=s begins at seed s; a failure names its
// seed, and TENON_KEEP=dir keeps its model there.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "driver/compile.h"
#include "fuzz/mutate.h"
#include "program.h"
#include "support/atomic_file.h"
#include "unit/driver/folder.h"
#include "unit/driver/random_graph.h"

namespace tenon::driver::test {
namespace {

constexpr int kGraphs = kSanitized ? 3 : 16, kSteps = 10;
constexpr double kTolerance = 1e-3;  // of the bound, for what is not exact

struct Way {
  int opt_level;
  const char* target;
};
constexpr Way kPlain = {0, "llvm -mcpu=x86-64"};
constexpr Way kWays[] = {{2, "llvm"}, {2, "llvm -mcpu=x86-64"}, {1, "llvm -mcpu=core-avx2"}};

tools::NamedTensors Inputs(const tools::Program& program, uint64_t seed) {
  std::mt19937_64 random(seed);
  tools::NamedTensors inputs;
  for (const tools::Parameter& p : program.inputs()) {
    tools::Tensor t = tools::Tensor::Make(p.dtype, p.shape).value();
    for (int64_t i = 0; i < t.num_elements(); ++i) t.Set(i, static_cast<double>(random() % 9) - 4);
    inputs.emplace_back(p.name, t);
  }
  return inputs;
}

// The results, or nothing with a failure told.
tools::NamedTensors Results(const Folder& folder, const Way& way, uint64_t seed) {
  CompileOptions options;
  options.model = folder / "m.onnx";
  options.output = folder / "m.so";
  options.opt_level = way.opt_level;
  options.target = way.target;
  options.verify_each = true;
  options.jobs = 1;
  const Expected<CompileReport> report = Compile(options);
  if (!report) return ADD_FAILURE() << ToString(report.errors()), tools::NamedTensors{};
  Expected<tools::Program> program = tools::Program::Load(options.output);
  if (!program) return ADD_FAILURE() << ToString(program.errors()), tools::NamedTensors{};
  Expected<tools::NamedTensors> outputs = program->Call(Inputs(*program, seed));
  if (!outputs) return ADD_FAILURE() << ToString(outputs.errors()), tools::NamedTensors{};
  return *outputs;
}

void ExpectSame(const tools::Tensor& want, const tools::Tensor& got, const RandomOutput& output) {
  ASSERT_EQ(want.num_elements(), got.num_elements()) << output.name;
  const double allowed = output.exact ? 0 : kTolerance * (1 + output.bound);
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const double a = want.At(i), b = got.At(i);
    const bool same = a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= allowed;
    ASSERT_TRUE(same) << output.name << "[" << i << "] of " << want.num_elements() << ": expected "
                      << a << " but got " << b << " (bound " << output.bound << ")";
  }
}

void Check(uint64_t seed) {
  const RandomGraph graph = MakeRandomGraph(seed, kSteps);
  const Folder folder;
  ASSERT_TRUE(WriteFile(folder / "m.onnx", graph.model));
  const tools::NamedTensors want = Results(folder, kPlain, seed);
  const Way& way = kWays[seed % std::size(kWays)];
  const tools::NamedTensors got = Results(folder, way, seed);
  ASSERT_EQ(want.size(), graph.outputs.size());
  ASSERT_EQ(got.size(), graph.outputs.size());
  for (size_t i = 0; i < want.size(); ++i)
    ExpectSame(want[i].second, got[i].second, graph.outputs[i]);
  const char* keep = getenv("TENON_KEEP");
  if (keep && testing::Test::HasFailure())
    ASSERT_TRUE(WriteFile(std::string(keep) + "/" + std::to_string(seed) + ".onnx", graph.model));
}

TEST(RandomGraphs, EveryWayOfCompilingGivesTheSame) {
  const char* text = getenv("TENON_RANDOM_GRAPHS");
  const uint64_t first = fuzz::Seed(), count = text ? strtoull(text, nullptr, 0) : kGraphs;
  printf("TENON_FUZZ_SEED=%llu\n", static_cast<unsigned long long>(first));
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("TENON_RANDOM_GRAPHS=1 TENON_FUZZ_SEED=" + std::to_string(seed));
    Check(seed);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace tenon::driver::test

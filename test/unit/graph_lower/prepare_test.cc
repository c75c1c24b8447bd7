// What computes weights is planned like a network, for the machine that compiles; each prepare
// function, scheduled, computes what the graph says.
#include <gtest/gtest.h>

#include "graph/lower/lower.h"
#include "graph/text.h"
#include "interp/interp.h"
#include "ir/visit.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "plan/passes.h"
#include "support/graph_eval.h"
#include "support/launches.h"

namespace tenon::graph {
namespace {

using tenon::testing::Launches;

const Machine& MachineOf(const char* target) {
  static std::map<std::string, Machine> known;
  auto [it, fresh] = known.try_emplace(target);
  if (fresh) it->second = Machine::Of(Target::Parse(target).value());
  return it->second;
}
const Machine& TargetMachine() { return MachineOf("llvm -mcpu=x86-64-v4"); }
const Machine& BuildMachine() { return MachineOf("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64"); }

LoweredNetwork MustLower(const Graph& g, bool plan_prepare) {
  Expected<LoweredNetwork> network =
      Lower(g, {&TargetMachine(), &BuildMachine(), "main", plan_prepare});
  EXPECT_TRUE(network) << (network ? "" : ToString(network.errors()));
  if (!network) return {};
  const Status ok = Verify(network->prepare, Stage::kSchedulable);
  EXPECT_TRUE(ok) << ToString(ok.errors()) << Print(network->prepare);
  return std::move(*network);
}

Graph Passed(const std::string& text) {
  Expected<Graph> g = Parse(text, "test");
  EXPECT_TRUE(g) << (g ? "" : ToString(g.errors()));
  if (!g) return {};
  for (const char* name :
       {"decompose_batch_norm", "fold_into_conv", "dead_code", "fuse", "plan_groups"})
    *g = FindAnyGraphPass(name)->run(*g, {&TargetMachine()});
  return *g;
}

const Weight& WeightNamed(const LoweredNetwork& network, const std::string& name) {
  for (const Weight& w : network.weights) {
    if (w.name == name) return w;
  }
  ADD_FAILURE() << "no weight " << name;
  return network.weights.at(0);
}

std::vector<double> Floats(const Payload& payload) {
  std::vector<float> values(payload.bytes().size() / sizeof(float));
  memcpy(values.data(), payload.bytes().data(), payload.bytes().size());
  return {values.begin(), values.end()};
}

// The weight's elements, in logical order, as its scheduled function computes them.
std::vector<double> Prepared(const LoweredNetwork& network, const Weight& w) {
  Module module = network.prepare;
  for (const auto& [name, func] : network.prepare.funcs) {
    if (func->func_kind != FuncKind::kKernel) continue;
    Expected<Schedule> s = ops::ScheduleKernel(network.scheduled.at(name), BuildMachine());
    EXPECT_TRUE(s) << ToString(s.errors());
    for (const auto& [part, scheduled] : s->module().funcs) module.Add(scheduled);
  }
  const Func f = module.Find(w.prepare);
  std::vector<InterpArg> args;
  for (const Buffer& b : f->buffers) {
    std::vector<int64_t> shape;
    for (const Expr& e : b->shape) shape.push_back(*AsInt(e));
    args.push_back(args.size() < w.sources.size()
                       ? InterpArg::Tensor(b->dtype, shape, Floats(w.sources[args.size()]))
                       : InterpArg::Output(b->dtype, shape));
  }
  const Status ran = Interpret(module, w.prepare, args);
  EXPECT_TRUE(ran) << ToString(ran.errors()) << Print(module);
  std::vector<double> out;
  for (int64_t i = 0; i < args.back().num_elements(); ++i) out.push_back(args.back().Get(i));
  return out;
}

// A batch norm that is folded into weights: their product is written as the convolution reads it.
TEST(Prepare, RelayoutsGoIntoWhatComputesTheirOperand) {
  const Graph g = Passed(R"(graph @g(%0 "x": f32[1, 3, 4, 4]) {
  %1 "w": f32[4, 3, 1, 1] = const [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
  %2 "scale": f32[4] = const [2, 3, 4, 5]
  %3 "shift": f32[4] = const [1, 1, 1, 1]
  %4 "mean": f32[4] = const [0, 0, 0, 0]
  %5 "var": f32[4] = const [1, 1, 4, 4]
  %6: f32[1, 4, 4, 4] = conv(%0, %1)
  %7: f32[1, 4, 4, 4] = batch_norm(%6, %2, %3, %4, %5) {epsilon: 0.0}
  return %7 "y"
})");
  std::vector<size_t> launches;
  for (const bool planned : {false, true}) {
    const LoweredNetwork network = MustLower(g, planned);
    const Weight& w = WeightNamed(network, ".w.arranged");
    launches.push_back(Launches(network.prepare, w.prepare).size());
    // scale / sqrt(var) of each map: 2, 3, 2, 2.5; cells of the last block are zeros.
    const std::vector<double> want = {2, 4, 6, 12, 15, 18, 14, 16, 18, 25, 27.5, 30};
    const std::vector<double> got = Prepared(network, w);
    ASSERT_GE(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got[i], want[i]) << i;
    for (size_t i = want.size(); i < got.size(); ++i) EXPECT_EQ(got[i], 0) << i;
  }
  EXPECT_EQ(launches[1] + 1, launches[0]);
}

// A product of constants is computed by the algorithm that is cheapest on the build host.
TEST(Prepare, ProductsOfWeightsAreNotComputedByDefinition) {
  std::string a, b;
  for (int i = 0; i < 96; ++i) {
    a += std::to_string(i % 5 - 2) + (i < 95 ? ", " : "");
    b += std::to_string(i % 7 - 3) + (i < 95 ? ", " : "");
  }
  const Graph g = Passed("graph @g(%0 \"x\": f32[12, 12]) {\n  %1 \"a\": f32[12, 8] = const [" + a +
                         "]\n  %2 \"b\": f32[8, 12] = const [" + b + R"(]
  %3 "ab": f32[12, 12] = matmul(%1, %2)
  %4: f32[12, 12] = add(%0, %3)
  return %4 "y"
})");
  for (const bool planned : {false, true}) {
    const LoweredNetwork network = MustLower(g, planned);
    const Weight& w = WeightNamed(network, "ab");
    std::set<std::string> algorithms;
    for (const std::string& kernel : Launches(network.prepare, w.prepare))
      algorithms.insert(network.scheduled.at(kernel).algorithm->name);
    EXPECT_EQ(algorithms.count("packed_matmul"), planned ? 1u : 0u);
    const std::vector<double> got = Prepared(network, w);
    ASSERT_EQ(got.size(), 144u);
    for (int i = 0; i < 144; ++i) {
      double want = 0;
      for (int k = 0; k < 8; ++k)
        want += (((i / 12) * 8 + k) % 5 - 2) * ((k * 12 + i % 12) % 7 - 3);
      EXPECT_EQ(got[static_cast<size_t>(i)], want) << i;
    }
  }
}

}  // namespace
}  // namespace tenon::graph

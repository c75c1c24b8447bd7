// Control flow by its meaning: networks with branches and loops, lowered, their memory planned and
// their barriers placed, run in the interpreter by one worker and by several, against the evaluator
// of graphs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "graph/lower/lower.h"
#include "graph/text.h"
#include "interp/interp.h"
#include "ir/visit.h"
#include "loop/pass/pass.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "plan/passes.h"
#include "support/graph_eval.h"

namespace tenon::graph {
namespace {

const Target& Cpu() {
  static const Target kTarget = Target::Parse("llvm -mcpu=core-avx2").value();
  return kTarget;
}

Graph MustParse(const std::string& text) {
  Expected<Graph> g = Parse(text, "test");
  EXPECT_TRUE(g) << (g ? "" : ToString(g.errors()));
  return g ? *g : Graph{};
}

InterpArg ArgOf(const TensorType& type, const Array* values) {
  if (!values) return InterpArg::Output(type.dtype, *type.StaticDims());
  return InterpArg::Tensor(type.dtype, *type.StaticDims(), values->data);
}

const Machine& CpuMachine() {
  static const Machine kMachine = Machine::Of(Cpu());
  return kMachine;
}

std::vector<uint8_t> Segment(const LoweredNetwork& network) {
  std::vector<uint8_t> bytes(network.weights_bytes + 64);
  for (const Weight& w : network.weights) {
    EXPECT_TRUE(w.prepare.empty()) << w.name;
    memcpy(bytes.data() + w.offset, w.source.bytes().data(), w.source.bytes().size());
  }
  return bytes;
}

// As it was lowered; or, `planned`, as every worker of a team runs it.
void ExpectRuns(const Graph& g, const std::vector<Array>& inputs, const std::vector<Array>& want,
                bool planned, int team) {
  SCOPED_TRACE(planned ? "team of " + std::to_string(team) : "as lowered");
  Expected<LoweredNetwork> network = Lower(g, {&CpuMachine(), &CpuMachine(), "main"});
  ASSERT_TRUE(network) << ToString(network.errors());
  Module module = network->module;
  std::vector<InterpArg> args;
  for (size_t i = 0; i < inputs.size(); ++i) args.push_back(ArgOf(g.type(g.inputs[i]), &inputs[i]));
  for (ValueId v : g.outputs) args.push_back(ArgOf(g.type(v), nullptr));
  InterpOptions options;
  options.team_size = team;
  const std::vector<uint8_t> weights = Segment(*network);
  options.weights = weights;
  PassContext context;
  context.target = &Cpu();
  for (const char* pass : {"plan_storage", "lower_team"}) {
    if (!planned) continue;
    module = FindLoopPass(pass)->run(module, context);
    Status ok = Verify(module, Stage::kSchedulable);
    ASSERT_TRUE(ok) << pass << ToString(ok.errors()) << Print(module);
  }
  if (planned) {
    const Func main = module.Find("main");
    if (!main->scalars.empty())
      args.push_back(InterpArg::Memory(main->attrs.GetInt("arena_bytes")));
  } else if (!network->weights.empty()) {
    return;  // weights have their places only when storage is planned
  }
  Status ran = Interpret(module, "main", args, options);
  ASSERT_TRUE(ran) << ToString(ran.errors()) << Print(module);
  for (size_t k = 0; k < want.size(); ++k) {
    const InterpArg& got = args[inputs.size() + k];
    ASSERT_EQ(got.num_elements(), static_cast<int64_t>(want[k].data.size()));
    for (int64_t i = 0; i < got.num_elements(); ++i) {
      const double expected = want[k].data[static_cast<size_t>(i)];
      ASSERT_NEAR(got.Get(i), expected, 1e-4 * (1 + std::abs(expected)))
          << "output " << k << " at " << i << "\n"
          << Print(module);
    }
  }
}

const Machine& DeviceMachine() {
  static const Target kTarget = Target::Parse("opencl -host=llvm -mcpu=core-avx2").value();
  static const Machine kMachine = Machine::Of(kTarget);
  return kMachine;
}

// Kernels as launches, so that threads meet where they do.
Module WithThreads(Module module) {
  for (const char* pass : {"compact_buffers", "lower_blocks", "simplify", "bind_threads"}) {
    Expected<Module> after = RunPass(*FindLoopPass(pass), module, {});
    EXPECT_TRUE(after) << pass << ": " << (after ? "" : ToString(after.errors()));
    if (!after) break;
    module = std::move(*after);
  }
  return module;
}

// Lowered for a machine whose threads run together; how many launches of loops as one kernel, and
// of others, stand in the host function.
std::pair<int, int> ExpectRunsOnDevice(const Graph& g, const std::vector<Array>& inputs,
                                       const std::vector<Array>& want) {
  SCOPED_TRACE("for a device");
  std::pair<int, int> launches;
  Expected<LoweredNetwork> network = Lower(g, {&DeviceMachine(), &CpuMachine(), "main"});
  EXPECT_TRUE(network) << ToString(network.errors());
  if (!network) return launches;
  const Status verified = Verify(network->module, Stage::kSchedulable);
  EXPECT_TRUE(verified) << ToString(verified.errors()) << Print(network->module);
  const Func main = network->module.Find("main");
  PreOrder(main->body, [&](const NodeRef& n) {
    const auto* launch = As<Launch>(n);
    if (!launch) return !IsA<ExprNode>(n);
    ++(network->scheduled.at(launch->kernel).kind == "loop" ? launches.first : launches.second);
    return false;
  });
  if (!network->weights.empty()) return launches;
  std::vector<InterpArg> args;
  for (size_t i = 0; i < inputs.size(); ++i) args.push_back(ArgOf(g.type(g.inputs[i]), &inputs[i]));
  for (ValueId v : g.outputs) args.push_back(ArgOf(g.type(v), nullptr));
  args.push_back(InterpArg::Int(0));
  const Module module = WithThreads(network->module);
  const Status ran = Interpret(module, "main", args, InterpOptions{});
  EXPECT_TRUE(ran) << ToString(ran.errors()) << Print(module);
  for (size_t k = 0; ran && k < want.size(); ++k) {
    const InterpArg& got = args[inputs.size() + k];
    for (int64_t i = 0; i < got.num_elements(); ++i) {
      const double expected = want[k].data[static_cast<size_t>(i)];
      EXPECT_NEAR(got.Get(i), expected, 1e-4 * (1 + std::abs(expected)))
          << "output " << k << " at " << i << "\n"
          << Print(network->module);
    }
  }
  return launches;
}

void Check(const std::string& text) {
  const Graph g = MustParse(text);
  for (const bool passes : {false, true}) {
    Graph run = g;
    for (const char* pass : {"dead_code", "common_subexpressions", "fuse", "plan_groups"}) {
      if (passes) run = FindAnyGraphPass(pass)->run(run, {&CpuMachine()});
    }
    for (uint32_t seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed) + (passes ? " after passes" : ""));
      const std::vector<Array> inputs = RandomInputs(g, seed);
      const std::vector<Array> want = GraphEvaluator(g).Run(inputs);
      ExpectRuns(run, inputs, want, false, 1);
      ExpectRuns(run, inputs, want, true, 1);
      ExpectRuns(run, inputs, want, true, 3);
      if (!passes) ExpectRunsOnDevice(run, inputs, want);
    }
  }
}

TEST(Control, BranchesComputeTheirResultsInPlace) {
  Check(R"(graph @g(%0 "x": f32[4, 40], %1 "c": bool[], %2 "z": f32[4, 40]) {
  %3: f32[4, 40] = exp(%2)
  %4: f32[4, 40], %5: f32[4, 40] = if(%1, %0, %3) region(%0: f32[4, 40], %1: f32[4, 40]) {
    %2: f32[4, 40] = add(%0, %1)
    %3: f32[4, 40] = softmax(%2) {axis: 1}
    return %3 "a", %2 "b"
  } region(%0: f32[4, 40], %1: f32[4, 40]) {
    %2: f32[4, 40] = neg(%0)
    return %2 "a", %1 "b"
  }
  %6: f32[4, 40] = mul(%4, %3)
  return %6 "y", %5 "z2"
})");
}

TEST(Control, BranchesNestAndGiveTheirInputsBack) {
  Check(R"(graph @g(%0 "x": f32[8], %1 "c": bool[], %2 "d": bool[]) {
  %3: f32[8] = if(%1, %2, %0) region(%0: bool[], %1: f32[8]) {
    %2: f32[8] = if(%0, %1) region(%0: f32[8]) {
      %1: f32[8] = const [1, 2, 3, 4, 5, 6, 7, 8]
      %2: f32[8] = mul(%0, %1)
      return %2 ""
    } region(%0: f32[8]) {
      return %0 ""
    }
    return %2 "r"
  } region(%0: bool[], %1: f32[8]) {
    %2: f32[8] = const [1, 2, 3, 4, 5, 6, 7, 8]
    return %2 "r"
  }
  return %3 "y", %0 "same"
})");
}

TEST(Control, LoopsCarryAndCollect) {
  Check(R"(graph @g(%0 "x": f32[3, 20], %1 "w": f32[20, 20]) {
  %2: f32[3, 20], %3: f32[5, 3, 20], %4: i64[5] = loop(%0, %1) {carried: 1, count: [5]} region(%0 "i": i64[], %1 "s": f32[3, 20], %2 "w": f32[20, 20]) {
    %3: f32[3, 20] = matmul(%1, %2)
    %4: f32[3, 20] = tanh(%3)
    return %4 "s", %1 "before", %0 "i"
  }
  return %2 "last", %3 "all", %4 "numbers"
})");
}

TEST(Control, NoIterationLeavesWhatWasThere) {
  Check(R"(graph @g(%0 "x": f32[7]) {
  %1: f32[7], %2: f32[0, 7] = loop(%0) {carried: 1, count: [0]} region(%0: i64[], %1: f32[7]) {
    %2: f32[7] = exp(%1)
    return %2 "s", %2 "all"
  }
  %3: bool[] = const [0]
  %4: f32[7] = while(%3, %0) {carried: 1} region(%0: f32[7]) {
    %1: f32[7] = exp(%0)
    %2: bool[] = const [1]
    return %2 "go", %1 "s"
  }
  return %1 "y", %4 "z"
})");
}

// Each becomes the other's value of the iteration before, and one stays.
TEST(Control, CarriedValuesMayChangePlaces) {
  Check(R"(graph @g(%0 "a": f32[5], %1 "b": f32[5], %2 "c": f32[5], %3 "kept": f32[5]) {
  %4: f32[5], %5: f32[5], %6: f32[5], %7: f32[5] = loop(%0, %1, %2, %3) {carried: 4, count: [4]} region(%0: i64[], %1: f32[5], %2: f32[5], %3: f32[5], %4: f32[5]) {
    %5: f32[5] = add(%1, %4)
    return %2 "a", %3 "b", %5 "c", %4 "kept"
  }
  return %4 "x", %5 "y", %6 "z", %7 "w"
})");
}

// A view of a carried value is its memory: the other may not be overwritten before it is saved.
TEST(Control, CarriedValuesMayBeViewsOfEachOther) {
  Check(R"(graph @g(%0 "a": f32[2, 3], %1 "b": f32[3, 2], %2 "c": f32[6]) {
  %3: f32[2, 3], %4: f32[3, 2], %5: f32[6] = loop(%0, %1, %2) {carried: 3, count: [3]} region(%0: i64[], %1: f32[2, 3], %2: f32[3, 2], %3: f32[6]) {
    %4: f32[2, 3] = reshape(%2) {shape: [2, 3]}
    %5: f32[3, 2] = reshape(%1) {shape: [3, 2]}
    %6: f32[6] = reshape(%3) {shape: [6]}
    return %4 "a", %5 "b", %6 "c"
  }
  return %3 "x", %4 "y", %5 "z"
})");
}

// In a branch, too, where some of them are the node's results.
TEST(Control, BranchesGiveViewsBack) {
  Check(R"(graph @g(%0 "p": bool[], %1 "a": f32[2, 3]) {
  %2: f32[6], %3: f32[3, 2] = if(%0, %1) region(%0: f32[2, 3]) {
    %1: f32[2, 3] = exp(%0)
    %2: f32[6] = reshape(%1) {shape: [6]}
    %3: f32[3, 2] = reshape(%1) {shape: [3, 2]}
    return %2 "x", %3 "y"
  } region(%0: f32[2, 3]) {
    %1: f32[6] = reshape(%0) {shape: [6]}
    %2: f32[3, 2] = reshape(%1) {shape: [3, 2]}
    return %1 "x", %2 "y"
  }
  %4: f32[2, 3] = reshape(%2) {shape: [2, 3]}
  return %4 "x", %3 "y"
})");
}

TEST(Control, AConditionMayBeAViewOfAnInput) {
  Check(R"(graph @g(%0 "p": bool[1, 1], %1 "a": f32[3]) {
  %2: bool[] = reshape(%0) {shape: []}
  %3: f32[3] = if(%2, %1) region(%0: f32[3]) {
    %1: f32[3] = exp(%0)
    return %1 "x"
  } region(%0: f32[3]) {
    %1: f32[3] = neg(%0)
    return %1 "x"
  }
  return %3 "x"
})");
}

TEST(Control, WhileReadsItsConditionAfterEachIteration) {
  Check(R"(graph @g(%0 "x": f32[2, 30], %1 "most": f32[], %2 "start": bool[]) {
  %3: i64[] = const [0]
  %4: i64[], %5: f32[2, 30] = while(%2, %3, %0, %1) {carried: 2} region(%0 "n": i64[], %1 "s": f32[2, 30], %2 "most": f32[]) {
    %3: i64[] = const [1]
    %4: f32[] = const [1.5]
    %5: f32[] = const [20]
    %6: i64[] = add(%0, %3)
    %7: f32[2, 30] = mul(%1, %4)
    %8: f32[] = reduce(%7) {kind: "max", axes: [0, 1]}
    %9: f32[] = sub(%8, %2)
    %10: f32[] = sub(%5, %9)
    %11: f32[] = clip(%10) {lo: 0, hi: 1}
    %12: bool[] = cast(%11) {to: "bool"}
    %13: i64[] = const [7]
    %14: bool[] = equal(%6, %13)
    %15: bool[] = not(%14)
    %16: bool[] = and(%12, %15)
    return %16 "go", %6 "n", %7 "s"
  }
  return %4 "n", %5 "y"
})");
}

TEST(Control, LoopsHoldBranchesThatHoldLoops) {
  Check(R"(graph @g(%0 "x": f32[16], %1 "c": bool[]) {
  %2: f32[16], %3: bool[] = loop(%0, %1) {carried: 2, count: [3]} region(%0: i64[], %1: f32[16], %2: bool[]) {
    %3: bool[] = not(%2)
    %4: f32[16] = if(%2, %1) region(%0: f32[16]) {
      %1: f32[16] = loop(%0) {carried: 1, count: [2]} region(%0: i64[], %1: f32[16]) {
        %2: f32[] = const [0.5]
        %3: f32[16] = mul(%1, %2)
        %4: f32[16] = exp(%3)
        return %4 "s"
      }
      return %1 "r"
    } region(%0: f32[16]) {
      %1: f32[16] = tanh(%0)
      return %1 "r"
    }
    return %4 "s", %3 "c"
  }
  return %2 "y", %3 "c2"
})");
}

// Feature maps are blocked and have halos outside and inside, and are plain where they pass.
TEST(Control, ConvolutionsOnBothSidesOfABranch) {
  Graph g =
      MustParse(R"(graph @g(%0 "x": f32[1, 8, 5, 5], %1 "c": bool[], %2 "w": f32[8, 8, 3, 3]) {
  %3: f32[1, 8, 5, 5] = conv(%0, %2) {pads: [1, 1, 1, 1]}
  %4: f32[1, 8, 5, 5] = relu(%3)
  %5: f32[1, 8, 5, 5] = conv(%4, %2) {pads: [1, 1, 1, 1]}
  %6: f32[1, 8, 5, 5] = if(%1, %4, %2) region(%0: f32[1, 8, 5, 5], %1: f32[8, 8, 3, 3]) {
    %2: f32[1, 8, 5, 5] = conv(%0, %1) {pads: [1, 1, 1, 1]}
    %3: f32[1, 8, 5, 5] = relu(%2)
    return %3 "a"
  } region(%0: f32[1, 8, 5, 5], %1: f32[8, 8, 3, 3]) {
    %2: f32[1, 8, 5, 5] = neg(%0)
    return %2 "a"
  }
  %7: f32[1, 8, 5, 5] = add(%6, %5)
  return %7 "y"
})");
  Graph laid = FindAnyGraphPass("fuse")->run(g, {&CpuMachine()});
  laid = FindAnyGraphPass("plan_groups")->run(laid, {&CpuMachine()});
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const std::vector<Array> inputs = RandomInputs(g, seed);
    ExpectRuns(laid, inputs, GraphEvaluator(g).Run(inputs), true, 2);
  }
}

// A selective scan: a thread for each channel, at sizes around those of a block.
TEST(Control, LoopsWhoseChannelsNeverMeetAreOneKernel) {
  for (const int channels : {1, 31, 32, 33, 37, 65}) {
    for (const int steps : {0, 1, 3, 4, 5, 7, 8}) {
      for (const int states : {1, 5}) {
        SCOPED_TRACE(fmt::format("{} steps of {} x {}", steps, channels, states));
        const Graph g = MustParse(fmt::format(
            R"(graph @g(%0 "s": f32[{0}, {2}], %1 "decay": f32[{1}, {0}, {2}], %2 "c": f32[{1}, {2}]) {{
  %3: f32[{0}, {2}], %4: f32[{1}, {0}] = loop(%0, %1, %2) {{carried: 1, count: [{1}]}} region(%0 "i": i64[], %1 "s": f32[{0}, {2}], %2 "decay": f32[{1}, {0}, {2}], %3 "c": f32[{1}, {2}]) {{
    %4: f32[{0}, {2}] = gather(%2, %0) {{axis: 0}}
    %5: f32[{2}] = gather(%3, %0) {{axis: 0}}
    %6: f32[{0}, {2}] = mul(%1, %4)
    %7: f32[{0}, {2}] = add(%6, %5)
    %8: f32[{2}, 1] = reshape(%5) {{shape: [{2}, 1]}}
    %9: f32[{0}, 1] = matmul(%7, %8)
    %10: f32[{0}] = reshape(%9) {{shape: [{0}]}}
    return %7 "s", %10 "y"
  }}
  return %3 "last", %4 "all"
}})",
            channels, steps, states));
        const std::vector<Array> inputs = RandomInputs(g, 1);
        EXPECT_EQ(ExpectRunsOnDevice(g, inputs, GraphEvaluator(g).Run(inputs)), std::pair(1, 0));
      }
    }
  }
}

// A product computes its operand at each of its steps, and an iteration is written out: with many
// operations there it would be more code than a compiler can take.
TEST(Control, LoopsThatAreLongWhenWrittenOutAreNone) {
  for (const int operations : {1, 40}) {
    std::string chain;
    for (int i = 0; i < operations; ++i)
      chain += fmt::format("    %{}: f32[3, 8] = sin(%{})\n", i + 3, i == 0 ? 1 : i + 2);
    const int last = operations + 2;
    const Graph g = MustParse(fmt::format(
        R"(graph @g(%0 "s": f32[3, 8], %1 "w": f32[8, 8]) {{
  %2: f32[3, 8] = loop(%0, %1) {{carried: 1, count: [2]}} region(%0 "i": i64[], %1 "s": f32[3, 8], %2 "w": f32[8, 8]) {{
{0}    %{2}: f32[3, 8] = matmul(%{1}, %2)
    return %{2} "s"
  }}
  return %2 "last"
}})",
        chain, last, last + 1));
    const std::vector<Array> inputs = RandomInputs(g, 1);
    const auto [loops, others] = ExpectRunsOnDevice(g, inputs, GraphEvaluator(g).Run(inputs));
    EXPECT_EQ(loops, operations == 1 ? 1 : 0);
    EXPECT_EQ(others > 0, operations != 1);
  }
}

// Rows follow from other rows, or in another order: nothing is apart along the first axis.
// A scan as networks have it: a row of what it reads is made of less than is in it.
TEST(Control, LoopsInOneKernelComputeWhatTheyAloneRead) {
  for (const int steps : {0, 1, 4, 7, 13}) {
    SCOPED_TRACE(fmt::format("{} steps", steps));
    const Graph g = MustParse(fmt::format(
        R"(graph @g(%0 "s": f32[37, 5], %1 "delta": f32[1, {0}, 37], %2 "a": f32[37, 5], %3 "b": f32[1, {0}, 5]) {{
  %4: f32[1, {0}, 37, 1] = reshape(%1) {{shape: [1, {0}, 37, 1]}}
  %5: f32[1, {0}, 37, 5] = mul(%4, %2)
  %6: f32[1, {0}, 37, 5] = exp(%5)
  %7: f32[{0}, 37, 5] = reshape(%6) {{shape: [{0}, 37, 5]}}
  %8: f32[1, {0}, 1, 5] = reshape(%3) {{shape: [1, {0}, 1, 5]}}
  %9: f32[1, {0}, 37, 5] = mul(%4, %8)
  %10: f32[{0}, 37, 5] = reshape(%9) {{shape: [{0}, 37, 5]}}
  %11: f32[37, 5], %12: f32[{0}, 37] = loop(%0, %7, %10) {{carried: 1, count: [{0}]}} region(%0 "i": i64[], %1 "s": f32[37, 5], %2 "decay": f32[{0}, 37, 5], %3 "drive": f32[{0}, 37, 5]) {{
    %4: f32[37, 5] = gather(%2, %0) {{axis: 0}}
    %5: f32[37, 5] = gather(%3, %0) {{axis: 0}}
    %6: f32[37, 5] = mul(%1, %4)
    %7: f32[37, 5] = add(%6, %5)
    %8: f32[37] = reduce(%7) {{kind: "sum", axes: [1]}}
    return %7 "s", %8 "y"
  }}
  return %11 "last", %12 "all"
}})",
        steps));
    const std::vector<Array> inputs = RandomInputs(g, 3), want = GraphEvaluator(g).Run(inputs);
    Graph fed = g;
    for (const char* pass : {"fuse", "feed_loops"})
      fed = FindAnyGraphPass(pass)->run(fed, {&DeviceMachine()});
    const auto [loops, others] = ExpectRunsOnDevice(fed, inputs, want);
    EXPECT_EQ(loops, 1);
    if (steps > 1) {
      EXPECT_EQ(others, 0) << Print(fed);  // else what it reads is no smaller
    }
    EXPECT_EQ(ExpectRunsOnDevice(g, inputs, want).first, 1);
  }
}

TEST(Control, LoopsWhosePartsMeetStayTheHosts) {
  const auto kernels = [](const std::string& step, int count = 3) {
    const Graph g =
        MustParse(R"(graph @g(%0 "x": f32[19, 19], %1 "w": f32[19, 19]) {
  %2: f32[19, 19] = loop(%0, %1) {carried: 1, count: [)" +
                  std::to_string(count) +
                  R"(]} region(%0 "i": i64[], %1 "s": f32[19, 19], %2 "w": f32[19, 19]) {
    %3: f32[19, 19] = )" +
                  step +
                  R"(
    return %3 "s"
  }
  return %2 "y"
})");
    const std::vector<Array> inputs = RandomInputs(g, 1);
    return ExpectRunsOnDevice(g, inputs, GraphEvaluator(g).Run(inputs)).first;
  };
  EXPECT_EQ(kernels("mul(%1, %2)"), 1);
  EXPECT_EQ(kernels("matmul(%1, %2)"), 1);  // along rows
  EXPECT_EQ(kernels("matmul(%2, %1)"), 1);  // along columns
  EXPECT_EQ(kernels("softmax(%1) {axis: 0}"), 1);
  EXPECT_EQ(kernels("transpose(%1) {perm: [1, 0]}"), 0);
  EXPECT_EQ(kernels("matmul(%1, %1)", 1), 0);
  EXPECT_EQ(kernels("slice(%1) {starts: [18, 18], sizes: [19, 19], steps: [-1, -1]}"), 0);
  EXPECT_EQ(kernels("slice(%1) {starts: [18, 0], sizes: [19, 19], steps: [-1, 1]}"), 1);
}

// A thread's part is unrolled, so it has to be a number.
TEST(Control, LoopsOverOpenRowsStayTheHosts) {
  const Graph g = MustParse(R"(graph @g<n: 1..=64, m: 1..=64>(%0 "x": f32[n, m]) {
  %1: f32[n, m], %2: f32[3, n, m] = loop(%0) {carried: 1, count: [3]} region(%0 "i": i64[], %1 "s": f32[n, m]) {
    %2: f32[n, m] = exp(%1)
    return %2 "s", %2 "all"
  }
  return %1 "y", %2 "all"
})");
  static const Target kTarget = Target::Parse("opencl -host=llvm -mcpu=core-avx2").value();
  static const Machine kMachine = Machine::Of(kTarget);
  const Expected<LoweredNetwork> network = Lower(g, {&kMachine, &CpuMachine(), "main"});
  ASSERT_TRUE(network) << ToString(network.errors());
  const Status verified = Verify(network->module, Stage::kSchedulable);
  EXPECT_TRUE(verified) << ToString(verified.errors()) << Print(network->module);
}

TEST(Control, WhatCannotBeCompiledIsNamed) {
  const Graph g =
      MustParse(R"(graph @g(%0 "x": sequence(f32[2]), %1 "c": bool[], %2 "words": string[2]) {
  %3 "s": sequence(f32[2]) = if(%1, %0) "choose" region(%0: sequence(f32[2])) {
    return %0 ""
  } region(%0: sequence(f32[2])) {
    return %0 ""
  }
  return %3 "y"
})");
  Expected<LoweredNetwork> network = Lower(g, {&CpuMachine(), &CpuMachine(), "main"});
  ASSERT_FALSE(network);
  EXPECT_EQ(ToString(network.errors()),
            "value 'x': error: expected tensors of numbers and bools, but got sequence(f32[2]): "
            "sequences and optionals are not compiled yet\n");
  Graph words = MustParse(R"(graph @g(%0 "words": string[2]) {
  %1: string[4, 2] = expand(%0) {shape: [4, 2]} "often"
  return %1 "y"
})");
  network = Lower(words, {&CpuMachine(), &CpuMachine(), "main"});
  ASSERT_FALSE(network);
  EXPECT_EQ(ToString(network.errors()),
            "value 'words': error: expected tensors of numbers and bools, but got string[2]: "
            "strings are not compiled yet\n");
}

}  // namespace
}  // namespace tenon::graph

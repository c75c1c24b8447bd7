// Kernels of open sizes: a task for each size that counts, records that plans of the open kernel
// follow, and whole networks that records make slower.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "graph/text.h"
#include "plan/plan_groups.h"
#include "plan/region.h"
#include "plan/space.h"
#include "records.h"
#include "tune/history.h"

namespace tenon::tune {
namespace {

const Machine& TheMachine() {
  static const Machine machine =
      Machine::Of(Target::Parse("llvm -mcpu=x86-64-v3 -num-cores=1").value());
  return machine;
}

graph::Graph Product() {
  return graph::Parse(
             "graph @g<n: 1..=128>(%0 \"x\": f32[n, 256], %1 \"w\": f32[256, 96]) {\n"
             "  %2: f32[n, 96] = matmul(%0, %1)\n  return %2 \"y\"\n}\n")
      .value();
}

TEST(OpenSizes, AreATaskEach) {
  const graph::Graph planned = graph::PlanGroups(Product(), {&TheMachine()});
  const Tasks tasks = TasksOf(planned, TheMachine());
  EXPECT_TRUE(tasks.left_out.empty());
  ASSERT_EQ(tasks.tasks.size(), 4U);
  std::set<std::string> kernels;
  double whole = 0;
  for (const Task& t : tasks.tasks) {
    kernels.insert(t.kernel);
    whole += t.weight;
    EXPECT_EQ(t.open, tasks.tasks[0].open);
    // A log's text is that kernel again.
    const KernelText read = KernelText::Read(t.Text()).value();
    const Task again = TaskOf(read.graph, read.node, TheMachine(), read.sizes).value();
    EXPECT_EQ(again.kernel, t.kernel);
    // Its code is of all sizes, its operands of one.
    const LoweredCandidate lowered =
        LowerCandidate(t, t.candidates[t.chosen], TheMachine(), false).value();
    EXPECT_EQ(lowered.module.Find(kFunction)->dims.size(), 1U);
    EXPECT_EQ(lowered.parameters.at(0).dims.at(0), AsInt(t.sizes.begin()->second));
  }
  EXPECT_EQ(kernels.size(), 4U);
  EXPECT_DOUBLE_EQ(whole, 1);
}

// Whatever was fastest at all sizes is planned, by whichever team.
TEST(OpenSizes, PlansFollowRecords) {
  const graph::Graph g = Product();
  const graph::Graph planned = graph::PlanGroups(g, {&TheMachine()});
  const Tasks tasks = TasksOf(planned, TheMachine());
  ASSERT_EQ(tasks.tasks.size(), 4U);
  const Candidate* winner = nullptr;
  for (const Candidate& c : tasks.tasks[0].candidates) {
    const auto has = [&](const Task& t) {
      return std::any_of(t.candidates.begin(), t.candidates.end(),
                         [&](const Candidate& o) { return o.Trace() == c.Trace(); });
    };
    if (!winner && tasks.tasks[0].candidates[tasks.tasks[0].chosen].Trace() != c.Trace() &&
        std::all_of(tasks.tasks.begin(), tasks.tasks.end(), has))
      winner = &c;
  }
  ASSERT_TRUE(winner);
  LogContents contents;
  for (const Task& t : tasks.tasks) {
    contents.kernels[t.kernel] = t.Text();
    for (const Candidate& c : t.candidates) {
      const bool wins = c.Trace() == winner->Trace();
      contents.records.push_back(RecordOf(t, c, wins ? c.predicted / 100 : c.predicted, wins));
    }
  }
  const LogPrices prices(contents, {"", "llvm", 1, "warm"}, TheMachine());
  const graph::Graph by_log = graph::PlanGroups(g, {&TheMachine(), &prices});
  for (const graph::NodeId n : graph::KernelNodes(by_log)) {
    const graph::Plan* plan = by_log.node(n).plan.get();
    if (!plan || by_log.node(n).op == graph::OpKind::kReshape) continue;
    for (const Task& t : tasks.tasks)
      EXPECT_EQ(fmt::format("{} {}", plan->algorithm,
                            graph::ChoicesText(plan::ChoicesAt(*plan, t.sizes))),
                winner->Trace())
          << t.name;
  }
}

TEST(Networks, HaveTheLastWord) {
  LogContents contents;
  Record r;
  r.kernel = std::string(32, 'a');
  r.target = "llvm";
  r.cache = "warm";
  r.algorithm = kNetwork;
  r.point = "{}";
  r.outcome = kOk;
  r.predicted = 2;
  for (const double seconds : {2.2, 2.4, 2.6}) {
    r.seconds = seconds;
    contents.records.push_back(r);
  }
  const History history = History::Of(contents, {"", "llvm", 1, "warm"});
  EXPECT_TRUE(history.kernels().empty()) << "a network is no kernel";
  EXPECT_EQ(history.others(), 0);
  EXPECT_DOUBLE_EQ(history.RatioOf(r.kernel).value(), 1.2);
  EXPECT_FALSE(history.RatioOf(std::string(32, 'b')));
  EXPECT_FALSE(History::Of(contents, {"", "llvm", 2, "warm"}).RatioOf(r.kernel));
}

TEST(Networks, SayWhichGroupsAreFasterInParts) {
  const std::string group(32, 'a'), other(32, 'b');
  LogContents contents;
  const auto add = [&](const std::string& key, const std::string& point, double ratio,
                       bool leader) {
    Record r;
    r.kernel = key;
    r.target = "llvm";
    r.cache = "warm";
    r.algorithm = kFusion;
    r.point = point;
    r.outcome = kOk;
    r.predicted = 2;
    r.seconds = 2 * ratio;
    r.leader = leader;
    contents.records.push_back(r);
  };
  add(group, "{nodes: 1}", 0.9, true);
  add(group, "{nodes: 2}", 0.8, true);
  add(group, "{nodes: 3}", 0.7, false);  // within noise
  add(other, "{nodes: 1}", 0.9, true);   // one network against two
  add(other, "{nodes: 1}", 1.1, false);
  add(other, "{nodes: 1}", 1.2, false);
  add(std::string(32, 'c'), "{nodes: many}", 0.5, true);
  const History history = History::Of(contents, {"", "llvm", 1, "warm"});
  EXPECT_TRUE(history.kernels().empty()) << "a choice of fusion is no kernel";
  EXPECT_EQ(history.others(), 0);
  EXPECT_EQ(history.cuts(), (plan::Cuts{{group, 2}}));
  EXPECT_TRUE(history.KnowsParts(group, 3));
  EXPECT_TRUE(history.KnowsParts(other, 1));
  EXPECT_FALSE(history.KnowsParts(other, 2));
  EXPECT_TRUE(History::Of(contents, {"", "llvm", 2, "warm"}).cuts().empty());
}

}  // namespace
}  // namespace tenon::tune

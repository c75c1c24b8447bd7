// What is tried first of a kernel: the best point of each of its layouts, so that plans choose
// between layouts by what was measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "graph/text.h"
#include "plan/plan_groups.h"
#include "tune/session.h"

namespace tenon::tune {
namespace {

TEST(Leaders, AreTheBestOfEachLayoutFirst) {
  const Machine machine = Machine::Of(Target::Parse("llvm -mcpu=x86-64-v3 -num-cores=1").value());
  const graph::Graph g =
      graph::Parse(
          "graph @g(%0 \"x\": f32[1, 32, 14, 14], %1 \"w1\": f32[64, 32, 1, 1], %2 \"w2\": "
          "f32[32, 64, 3, 3]) {\n  %3: f32[1, 64, 14, 14] = conv(%0, %1) \"first\"\n"
          "  %4: f32[1, 32, 14, 14] = conv(%3, %2) {pads: [1, 1, 1, 1]} \"second\"\n"
          "  return %4 \"y\"\n}\n")
          .value();
  const Tasks tasks = TasksOf(graph::PlanGroups(g, {&machine}), machine);
  ASSERT_EQ(tasks.tasks.size(), 2U);
  for (const Task& task : tasks.tasks) {
    std::set<size_t> layouts;
    for (const Candidate& c : task.candidates) layouts.insert(c.layout);
    EXPECT_GE(layouts.size(), 2U) << "of rows and of blocks";
    const double far = 4 * task.candidates[0].predicted;
    const std::vector<size_t> leaders = Leaders(task, 8);
    ASSERT_FALSE(leaders.empty());
    EXPECT_EQ(leaders[0], 0U);
    EXPECT_LE(leaders.size(), 8U);
    EXPECT_EQ(std::set<size_t>(leaders.begin(), leaders.end()).size(), leaders.size());
    // The cheapest of each, as far as it is worth a build.
    std::set<size_t> seen;
    std::vector<size_t> best;
    for (size_t i = 0; i < task.candidates.size() && task.candidates[i].predicted <= far; ++i) {
      if (best.size() < 3 && seen.insert(task.candidates[i].layout).second) best.push_back(i);
    }
    ASSERT_LE(best.size(), leaders.size());
    EXPECT_TRUE(std::equal(best.begin(), best.end(), leaders.begin()));
    EXPECT_EQ(Leaders(task, 1), std::vector<size_t>{0});
  }
}

}  // namespace
}  // namespace tenon::tune

// A session over kernels of a network, with tools that build nothing and measure by a formula.
#include "tune/session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "graph/text.h"
#include "plan/plan_groups.h"

namespace tenon::tune {
namespace {

namespace fs = std::filesystem;

class NetworkSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("session_test." + std::to_string(getpid()));
    fs::create_directory(folder_);
    const graph::Graph g =
        graph::Parse(
            "graph @g(%0 \"x\": f32[64, 128], %1 \"w1\": f32[128, 96], %2 \"w2\": f32[96, 80]) {\n"
            "  %3: f32[64, 96] = matmul(%0, %1) \"first\"\n"
            "  %4: f32[64, 80] = matmul(%3, %2) \"second\"\n  return %4 \"y\"\n}\n")
            .value();
    tasks_ = TasksOf(graph::PlanGroups(g, {&machine_}), machine_).tasks;
    ASSERT_EQ(tasks_.size(), 2U);
    tools_.build = [this](const Module&) -> Expected<std::string> {
      most_ = std::max<int>(most_, ++building_);
      std::this_thread::sleep_for(std::chrono::milliseconds(++built_ * slow_ % 13));
      --building_;
      return "image " + std::to_string(built_);
    };
    tools_.race = [this](const measure::RaceRequest& request) -> Expected<measure::RaceAnswer> {
      measure::RaceAnswer answer;
      if (request.candidate.path.empty()) return answer;
      ++races_;
      // The second kernel's first choice does not work.
      if (request.kernel == tasks_[1].kernel && !failed_) {
        failed_ = true;
        answer.outcome = measure::Outcome::kWrong;
        answer.message = "another answer";
        return answer;
      }
      answer.incumbent_seconds = 1e-5;
      answer.log_ratio = races_ % 5 == 0 ? -0.1 : 0.1;
      answer.faster = races_ % 5 == 0;
      answer.pairs = 100;
      answer.noise = 0.01;
      return answer;
    };
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The traces that were measured, in order.
  std::vector<std::string> Run(const std::string& log_name, int64_t trials, int builders) {
    tools_.builders = builders;
    races_ = built_ = 0;
    failed_ = false;
    Expected<Log> log = Log::Open(folder_ / log_name);
    EXPECT_TRUE(log);
    SessionOptions options;
    options.trials = trials;
    options.machine = std::string(32, 'a');
    const std::atomic<bool> stop = false;
    std::vector<std::string> events;
    const Expected<SessionState> state = RunSession(
        Tasks{tasks_, {}, {}}, machine_, options, tools_, folder_, &*log,
        [&](const SessionState& s) { events.push_back(s.event); }, stop);
    EXPECT_TRUE(state) << ToString(state.errors());
    if (!state) return events;
    EXPECT_EQ(state->trials, trials);
    const Expected<LogContents> contents = log->Read();
    EXPECT_TRUE(contents);
    std::set<std::string> seen;
    for (const Record& r : contents->records) {
      EXPECT_NE(r.outcome, kStarted) << r.Trace();
      EXPECT_TRUE(seen.insert(r.kernel + r.Trace()).second) << r.Trace();
    }
    return events;
  }

  const Machine machine_ = Machine::Of(Target::Parse("llvm -mcpu=x86-64-v3 -num-cores=1").value());
  fs::path folder_;
  std::vector<Task> tasks_;
  SessionTools tools_;
  std::atomic<int> building_ = 0, most_ = 0, built_ = 0;
  int races_ = 0, slow_ = 1;
  bool failed_ = false;
};

TEST_F(NetworkSessionTest, BuildsNothingAheadOnThisCpu) {
  EXPECT_FALSE(Run("log", 8, 0).empty());
  EXPECT_EQ(most_, 1);
  // Two definitions, two first choices and one that failed.
  EXPECT_EQ(built_, 8 + 5);
}

TEST_F(NetworkSessionTest, IsTheSameHoweverLongBuildsTake) {
  const std::vector<std::string> one = Run("one", 20, 4);
  slow_ = 7;
  EXPECT_EQ(Run("other", 20, 4), one);
  EXPECT_GE(most_, 2);
  EXPECT_LE(most_, 4);
}

}  // namespace
}  // namespace tenon::tune

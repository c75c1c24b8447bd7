// A session over kernels of a network, with tools that build nothing and measure by a formula.
#include "tune/session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "graph/text.h"
#include "plan/plan_groups.h"
#include "tune/coverage.h"
#include "tune/same_kernels.h"

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
      if (!failed_ && request.kernel == tasks_[1].kernel) {
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

// A product of few rows, of which some choices come to nothing.
class SameKernelsTest : public NetworkSessionTest {
 protected:
  void SetUp() override {
    NetworkSessionTest::SetUp();
    failed_ = true;
    const graph::Graph g =
        graph::Parse(
            "graph @g(%0 \"x\": f32[16, 2048], %1 \"w\": f32[2048, 16]) {\n"
            "  %2: f32[16, 16] = matmul(%0, %1) \"product\"\n  return %2 \"y\"\n}\n")
            .value();
    tasks_ = TasksOf(graph::PlanGroups(g, {&machine_}), machine_).tasks;
    ASSERT_EQ(tasks_.size(), 1U);
    SameKernels same;
    for (size_t i = 0; i < tasks_[0].candidates.size(); ++i) {
      const Expected<LoweredCandidate> lowered =
          LowerCandidate(tasks_[0], tasks_[0].candidates[i], machine_, false);
      ASSERT_TRUE(lowered);
      first_.push_back(same.FirstOf(i, lowered));
      if (first_.back() == i) distinct_.push_back(i);
    }
  }

  SessionState Session(Log* log, SessionOptions options) {
    options.machine = std::string(32, 'a');
    const std::atomic<bool> stop = false;
    races_ = built_ = 0;
    const Expected<SessionState> state =
        RunSession(Tasks{tasks_, {}, {}}, machine_, options, tools_, folder_, log, nullptr, stop);
    EXPECT_TRUE(state) << ToString(state.errors());
    return state ? *state : SessionState{};
  }

  std::vector<size_t> first_, distinct_;  // of each candidate; those that are their own
};

TEST_F(SameKernelsTest, AreTriedOnceAndRecordedEach) {
  ASSERT_LT(distinct_.size(), first_.size());
  ASSERT_LT(distinct_.size(), 1000U);
  for (const int builders : {0, 3}) {
    tools_.builders = builders;
    Expected<Log> log = Log::Open(folder_ / ("same" + std::to_string(builders)));
    ASSERT_TRUE(log);
    // In parts: the second session has to know what the first one tried.
    SessionOptions options;
    options.trials = 9;
    EXPECT_EQ(Session(&*log, options).trials, 9);
    options.trials = 0;
    options.exhaustive = 1000;
    const SessionState state = Session(&*log, options);
    // One is the first choice of the first session, which is no trial.
    EXPECT_EQ(state.trials, static_cast<int64_t>(distinct_.size()) - 10);
    EXPECT_EQ(state.tasks[0].distinct, distinct_.size());
    EXPECT_EQ(state.tasks[0].covered, distinct_.size());

    const LogContents contents = log->Read().value();
    std::map<std::string, double> seconds;
    std::set<size_t> tried;
    for (const Record& r : contents.records) {
      EXPECT_EQ(r.outcome, kOk) << r.Trace();
      seconds.emplace(r.Trace(), r.seconds);
      for (size_t i = 0; i < first_.size(); ++i)
        if (!r.IsCopy() && tasks_[0].candidates[i].Trace() == r.Trace()) tried.insert(first_[i]);
    }
    EXPECT_EQ(tried.size(), distinct_.size());
    ASSERT_EQ(seconds.size(), first_.size());  // what is asked for is known, whoever was tried
    for (size_t i = 0; i < first_.size(); ++i) {
      EXPECT_EQ(seconds[tasks_[0].candidates[i].Trace()],
                seconds[tasks_[0].candidates[first_[i]].Trace()]);
    }
    const SessionState again = Session(&*log, options);
    EXPECT_EQ(again.trials, 0);
    EXPECT_EQ(built_, 0);
  }
}

TEST_F(SameKernelsTest, OfMoreThanIsAskedForASampleAndItsNeighbours) {
  Expected<Log> log = Log::Open(folder_ / "sample");
  ASSERT_TRUE(log);
  const std::vector<size_t> sample = SampleOf(tasks_[0], distinct_, 6);
  ASSERT_EQ(sample.size(), 6U);
  std::set<size_t> structures, all;
  for (const size_t i : sample) structures.insert(tasks_[0].candidates[i].structure);
  for (const size_t i : distinct_) all.insert(tasks_[0].candidates[i].structure);
  EXPECT_EQ(structures.size(), std::min<size_t>(all.size(), 6));

  // In parts, as where it was killed.
  SessionOptions options;
  options.exhaustive = 6;
  int64_t trials = 0;
  for (options.trials = 4;;) {
    const SessionState state = Session(&*log, options);
    EXPECT_EQ(state.tasks[0].sample, 6U);
    trials += state.trials;
    if (state.trials < options.trials) break;
  }
  Expected<Log> other = Log::Open(folder_ / "at once");
  ASSERT_TRUE(other);
  // The order of answers is another one there, so what is compared is that some came of neighbours.
  options.trials = 0;
  const SessionState once = Session(&*other, options);
  EXPECT_GT(trials, 6);
  EXPECT_GT(once.trials, 6);
}

TEST_F(SameKernelsTest, NeighboursDifferInOneKnob) {
  for (const size_t place : {size_t{0}, first_.size() / 2}) {
    const Candidate& of = tasks_[0].candidates[place];
    const std::vector<size_t> neighbours = NeighboursOf(tasks_[0], place);
    ASSERT_FALSE(neighbours.empty());
    for (const size_t i : neighbours) {
      const Candidate& c = tasks_[0].candidates[i];
      ASSERT_EQ(c.algorithm, of.algorithm);
      size_t differing = 0;
      for (size_t k = 0; k < c.point.size(); ++k) differing += c.point[k] == of.point[k] ? 0 : 1;
      EXPECT_EQ(differing, 1U) << c.Trace() << " of " << of.Trace();
    }
  }
}

}  // namespace
}  // namespace tenon::tune

// A session over kernels of a network, with tools that build nothing and measure by a formula.
#include "tune/session.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "graph/text.h"
#include "loop/print.h"
#include "plan/plan_groups.h"
#include "plan/region.h"
#include "plan/shape_weights.h"
#include "support/file.h"
#include "support/hash.h"
#include "tune/coverage.h"
#include "tune/history.h"
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

// Of one kernel no more is under way than the model may be behind, however many threads there are.
TEST_F(NetworkSessionTest, ChoosesNoMoreThanABatchAhead) {
  tasks_.resize(1);
  failed_ = true;
  slow_ = 5;
  tools_.builders = 16;
  Expected<Log> log = Log::Open(folder_ / "log");
  ASSERT_TRUE(log);
  SessionOptions options;
  options.machine = std::string(32, 'a');
  options.trials = 40;
  options.leaders = 1;
  size_t most = 0;
  const auto race = tools_.race;
  tools_.race = [&](const measure::RaceRequest& request) {
    size_t now = 0;
    const LogContents read = *log->Read();
    for (const Record& r : read.records) now += r.outcome == kStarted;
    most = std::max(most, now);
    return race(request);
  };
  const std::atomic<bool> stop = false;
  const Expected<SessionState> state =
      RunSession(Tasks{tasks_, {}, {}}, machine_, options, tools_, folder_, &*log, nullptr, stop);
  ASSERT_TRUE(state) << ToString(state.errors());
  EXPECT_EQ(state->trials, 40);
  EXPECT_EQ(most, 9U);
}

// However long building takes, and however much of it is under way.
TEST_F(NetworkSessionTest, EndsWithinACandidatesTime) {
  using Clock = std::chrono::steady_clock;
  constexpr double kBuild = 0.2, kLimit = 0.5, kSlack = 0.25;
  tools_.build = [&](const Module&) -> Expected<std::string> {
    std::this_thread::sleep_for(std::chrono::duration<double>(kBuild));
    return std::string("image");
  };
  const auto seconds = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  failed_ = true;
  for (const int builders : {0, 4}) {
    for (const bool interrupts : {false, true}) {
      tools_.builders = builders;
      Expected<Log> log = Log::Open(folder_ / fmt::format("{}{}", builders, interrupts));
      ASSERT_TRUE(log);
      SessionOptions options;
      options.machine = std::string(32, 'a');
      options.seconds = interrupts ? 0 : kLimit;
      std::atomic<bool> stop = false;
      Clock::time_point asked = Clock::now() + std::chrono::milliseconds(500);
      const auto changed = [&](const SessionState& s) {
        if (!interrupts || s.trials < 2 || stop) return;
        stop = true;
        asked = Clock::now();
      };
      const Expected<SessionState> state = RunSession(Tasks{tasks_, {}, {}}, machine_, options,
                                                      tools_, folder_, &*log, changed, stop);
      ASSERT_TRUE(state) << ToString(state.errors());
      EXPECT_EQ(state->stopped, interrupts ? "it was interrupted" : "its time is over");
      // One waits for its own build; those beside it began no later.
      EXPECT_LE(seconds(asked), 2 * kBuild + kSlack) << builders << interrupts;
      const LogContents read = *log->Read();
      for (const Record& r : read.records) EXPECT_NE(r.outcome, kStarted) << r.Trace();
    }
  }
}

// A product of few rows, of which some choices come to nothing.
class SameKernelsTest : public NetworkSessionTest {
 protected:
  void SetUp() override {
    NetworkSessionTest::SetUp();
    failed_ = true;
    const graph::Graph g =
        graph::Parse(
            fmt::format("graph @g(%0 \"x\": f32[{0}, 2048], %1 \"w\": f32[2048, {0}]) {{\n"
                        "  %2: f32[{0}, {0}] = matmul(%0, %1) \"product\"\n  return %2 \"y\"\n}}\n",
                        rows_))
            .value();
    tasks_ = TasksOf(graph::PlanGroups(g, {&machine_}), machine_).tasks;
    ASSERT_EQ(tasks_.size(), 1U);
    SameKernels same;
    for (size_t i = 0; i < tasks_[0].candidates.size(); ++i) {
      const Expected<LoweredCandidate> lowered =
          LowerCandidate(tasks_[0], tasks_[0].candidates[i], machine_, false);
      ASSERT_TRUE(lowered);
      first_.push_back(same.FirstOf(i, IdentityOf(*lowered)));
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

  int rows_ = 16;
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

// Kernels that take as long as their text says, whenever they are measured and against whatever.
class SampledKernelsTest : public SameKernelsTest {
 protected:
  void SetUp() override {
    rows_ = 64;
    SameKernelsTest::SetUp();
    tools_.build = [this](const Module& m) -> Expected<std::string> {
      ++built_;
      return HashText(Print(m)).ToHex();
    };
    tools_.race = [](const measure::RaceRequest& request) -> Expected<measure::RaceAnswer> {
      measure::RaceAnswer answer;
      if (request.candidate.path.empty()) return answer;
      answer.incumbent_seconds = SecondsOf(request.incumbent.path);
      answer.log_ratio = std::log(SecondsOf(request.candidate.path) / answer.incumbent_seconds);
      answer.faster = answer.log_ratio < -0.02;
      answer.pairs = 100;
      answer.noise = 0.01;
      return answer;
    };
  }

  static double SecondsOf(const std::string& path) {
    const std::string image = ReadFile(path).value();
    return 1e-5 * (1 + static_cast<double>(std::stoul(image.substr(0, 7), nullptr, 16)) * 0x1p-28);
  }

  // The points that were measured, copies aside: what leads is once more by each session.
  std::set<std::string> Measured(Log* log) {
    std::set<std::string> out;
    const LogContents contents = log->Read().value();
    for (const Record& r : contents.records) {
      EXPECT_EQ(r.outcome, kOk) << r.Trace();
      if (!r.IsCopy()) out.insert(r.Trace());
    }
    return out;
  }
};

TEST_F(SampledKernelsTest, AreASampleAndItsNeighboursWhereverASessionIsKilled) {
  constexpr size_t kSample = 24;  // of which the best 16 have neighbours
  ASSERT_GT(distinct_.size(), 2 * kSample);
  const std::vector<size_t> sample = SampleOf(tasks_[0], kSample);
  ASSERT_EQ(sample.size(), kSample);
  std::set<size_t> structures, all;
  for (const size_t i : sample) structures.insert(tasks_[0].candidates[i].structure);
  for (const Candidate& c : tasks_[0].candidates) all.insert(c.structure);
  EXPECT_GE(structures.size(), std::min<size_t>(all.size(), kSample - kSample / 4));
  for (const size_t leader : Leaders(tasks_[0], kSample / 4))
    EXPECT_TRUE(std::binary_search(sample.begin(), sample.end(), leader));

  SessionOptions options;
  options.exhaustive = kSample;
  Expected<Log> log = Log::Open(folder_ / "at once");
  ASSERT_TRUE(log);
  EXPECT_GT(Session(&*log, options).trials, static_cast<int64_t>(kSample));
  const std::set<std::string> once = Measured(&*log);
  EXPECT_GT(once.size(), kSample);
  EXPECT_LT(once.size(), distinct_.size());
  for (const int64_t at_once : {13, 31}) {
    Expected<Log> parts = Log::Open(folder_ / ("parts of " + std::to_string(at_once)));
    ASSERT_TRUE(parts);
    for (options.trials = at_once;;) {
      const SessionState state = Session(&*parts, options);
      EXPECT_EQ(state.tasks[0].sample, kSample);
      if (state.trials < options.trials) break;
    }
    EXPECT_EQ(Measured(&*parts), once) << at_once;
    EXPECT_EQ(Session(&*parts, options).trials, 0);
  }
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

// Sizes whose times differ by a hundred are held against their own.
class OpenSizesTest : public SampledKernelsTest {
 protected:
  void SetUp() override {
    SampledKernelsTest::SetUp();
    g_ = graph::Parse(
             "graph @g<n: 1..=128>(%0 \"x\": f32[n, 256], %1 \"w\": f32[256, 96]) {\n"
             "  %2: f32[n, 96] = matmul(%0, %1)\n  return %2 \"y\"\n}\n")
             .value();
    tasks_ = TasksOf(graph::PlanGroups(g_, {&machine_}), machine_).tasks;
    ASSERT_EQ(tasks_.size(), 4U);
    const auto race = tools_.race;
    tools_.race = [this, race](const measure::RaceRequest& request) {
      Expected<measure::RaceAnswer> answer = race(request);
      for (const Task& t : tasks_) {
        if (answer && t.kernel == request.kernel)
          answer->incumbent_seconds *= static_cast<double>(AsInt(t.sizes.begin()->second).value());
      }
      return answer;
    };
  }

  graph::Graph g_;
};

TEST_F(OpenSizesTest, WhatPlansTakeWasMeasuredAtEachOfThem) {
  // Few, so that a size that is waited with gets none.
  Expected<Log> log = Log::Open(folder_ / "open");
  ASSERT_TRUE(log);
  SessionOptions options;
  options.trials = 8;
  const SessionState state = Session(&*log, options);
  EXPECT_EQ(state.trials, 8);
  for (const TaskState& t : state.tasks) EXPECT_GE(t.trials, 1) << t.name;

  const LogContents contents = log->Read().value();
  const LogPrices prices(contents, {"", machine_.target->ToString(), 1, "warm"}, machine_);
  const graph::Graph planned = graph::PlanGroups(g_, {&machine_, &prices});
  int plans = 0;
  for (const graph::NodeId n : graph::KernelNodes(planned)) {
    const graph::Plan* plan = planned.node(n).plan.get();
    if (!plan || planned.node(n).op == graph::OpKind::kReshape) continue;
    ++plans;
    EXPECT_LE(plan->variants.size(), 3U);
    for (const Task& t : tasks_) {
      const std::string trace = fmt::format("{} {}", plan->algorithm,
                                            graph::ChoicesText(plan::ChoicesAt(*plan, t.sizes)));
      const KernelHistory* known = prices.FindKernel(t.kernel);
      ASSERT_TRUE(known);
      EXPECT_TRUE(known->seconds.contains(trace)) << t.name << ": " << trace;
      // That, and little more than the best that was found there.
      if (known->seconds.contains(trace))
        EXPECT_LE(known->seconds.at(trace), 1.1 * known->seconds.at(known->best)) << t.name;
    }
  }
  EXPECT_EQ(plans, 1);
}

}  // namespace
}  // namespace tenon::tune

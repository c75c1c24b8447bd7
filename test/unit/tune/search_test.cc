// Searchers and sessions over a measurer that is made up: the same answers give the same search;
// nothing is tried twice; what fails ends nothing; all searchers find what a small space has.
#include "tune/search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>
#include <thread>

#include "tune/boosted_trees.h"
#include "tune/kernel_session.h"

namespace tenon::tune {
namespace {

namespace fs = std::filesystem;

// Two spaces of tiles: a product of at most 64, and one knob alone.
SearchProblem TwoSpaces() {
  SearchProblem p;
  p.kernel = std::string(32, 'a');
  p.algorithms = {"sketch one", "sketch two"};
  ops::Space tiles;
  const Expr a = tiles.Add({"a", {1, 2, 4, 8, 16}}), b = tiles.Add({"b", {1, 2, 4, 8, 16}});
  tiles.Require(Le(a * b, IndexConst(64)));
  ops::Space one;
  one.Add({"c", {1, 3, 9}});
  p.spaces = {tiles, one};
  p.price = [](const Pick& pick) -> std::optional<Quote> {
    if (pick.space == 1) return Quote{5e-6, {}};
    const auto b = static_cast<double>(graph::ValueOf(pick.point, "b"));
    if (b == 16) return std::nullopt;  // not legal
    const auto a = static_cast<double>(graph::ValueOf(pick.point, "a"));
    return Quote{1e-6 * (1 + std::abs(std::log2(b) - 1)), {std::abs(std::log2(a) - 3) / 4}};
  };
  return p;
}

// What the model does not know: `a` counts, too.
double TrueSeconds(const Pick& pick) {
  if (pick.space == 1) return 6e-6;
  const auto a = static_cast<double>(graph::ValueOf(pick.point, "a"));
  const auto b = static_cast<double>(graph::ValueOf(pick.point, "b"));
  return 1e-6 * (1 + std::abs(std::log2(a) - 3) + std::abs(std::log2(b) - 2));
}

std::vector<std::string> Searched(const std::string& name, uint64_t seed, int trials) {
  const SearchProblem problem = TwoSpaces();
  auto searcher = MakeSearcher(name, problem, {.seed = seed, .population = 16});
  EXPECT_TRUE(searcher);
  std::vector<std::string> out;
  while (static_cast<int>(out.size()) < trials) {
    const std::vector<Pick> picks = (*searcher)->Next(4);
    if (picks.empty()) break;
    for (const Pick& pick : picks) {
      out.push_back(problem.Trace(pick));
      EXPECT_TRUE(problem.price(pick)) << out.back();
      EXPECT_TRUE(problem.spaces[pick.space].Contains(pick.point)) << out.back();
      (*searcher)->Observe(pick, TrueSeconds(pick));
    }
  }
  return out;
}

TEST(Searchers, AreTheSameSearchEachTimeAndTryNothingTwice) {
  for (const std::string& name : SearcherNames()) {
    SCOPED_TRACE(name);
    const auto a = Searched(name, 3, 20), b = Searched(name, 3, 20);
    EXPECT_EQ(a, b);
    EXPECT_EQ(std::set<std::string>(a.begin(), a.end()).size(), a.size());
  }
}

TEST(Searchers, FindAllOfASmallSpaceAndEnd) {
  // 22 products of which 4 have b = 16 and no price; and three of the other space.
  const SearchProblem problem = TwoSpaces();
  int64_t legal = 0;
  for (size_t s = 0; s < 2; ++s) {
    problem.spaces[s].ForEach([&](const ops::Point& p) {
      if (problem.price({s, p})) ++legal;
    });
  }
  for (const std::string& name : SearcherNames()) {
    SCOPED_TRACE(name);
    const auto all = Searched(name, 1, 1000);
    EXPECT_EQ(static_cast<int64_t>(all.size()), legal);
  }
}

TEST(Searchers, LearnWhatTheModelDoesNotKnow) {
  const auto picks = Searched("improvement", 0, 12);
  EXPECT_NE(std::find(picks.begin(), picks.end(), "sketch one {a: 8, b: 4}"), picks.end());
}

TEST(Searchers, TakeHintsFirst) {
  const SearchProblem problem = TwoSpaces();
  for (const std::string& name : SearcherNames()) {
    const auto searcher = MakeSearcher(name, problem, {});
    const Pick hint{1, {{"c", 9}}};
    (*searcher)->Hint(hint);
    const auto picks = (*searcher)->Next(3);
    ASSERT_FALSE(picks.empty());
    EXPECT_EQ(picks[0], hint) << name;
  }
}

TEST(Searchers, AreNamed) {
  const auto none = MakeSearcher("droplet", TwoSpaces(), {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.errors()[0].message,
            "there is no searcher 'droplet'; there are improvement, random, grid, genetic, "
            "annealing");
}

TEST(Spaces, WalkAndSample) {
  const ops::Space space = TwoSpaces().spaces[0];
  std::vector<ops::Point> walked, each;
  for (auto p = space.First(); p; p = space.After(*p)) walked.push_back(*p);
  space.ForEach([&](const ops::Point& p) { each.push_back(p); });
  EXPECT_EQ(walked, each);
  EXPECT_EQ(space.Count(1000), static_cast<int64_t>(each.size()));
  EXPECT_EQ(space.Count(5), 5);
  std::mt19937_64 random(1);
  std::set<std::string> seen;
  for (int i = 0; i < 400; ++i) {
    const auto p = space.Sample(&random);
    ASSERT_TRUE(p);
    EXPECT_TRUE(space.Contains(*p));
    seen.insert(graph::ChoicesText(*p));
  }
  EXPECT_EQ(seen.size(), each.size());
}

// Other kernels have taught that points are fast where a feature is neither small nor large: trees
// know that, a line does not, and what is tried first follows them.
TEST(Searchers, FollowTrees) {
  if (!BoostedTrees::IsThere()) GTEST_SKIP() << "XGBoost is not on this machine";
  SearchProblem problem;
  problem.kernel = std::string(32, 'a');
  problem.algorithms = {"sketch one"};
  ops::Space space;
  std::vector<int64_t> values;
  for (int64_t v = 0; v < 10; ++v) values.push_back(v);
  space.Add({"a", values});
  space.Add({"b", values});
  problem.spaces = {space};
  const auto features = [](double a, double b) {
    Features out{};
    out[0] = a / 10;
    out[1] = b / 10;
    return out;
  };
  problem.price = [&](const Pick& pick) -> std::optional<Quote> {
    return Quote{1e-6, features(static_cast<double>(graph::ValueOf(pick.point, "a")),
                                static_cast<double>(graph::ValueOf(pick.point, "b")))};
  };
  const auto is_fast = [](int64_t a) { return a >= 2 && a <= 4; };
  const auto model = std::make_shared<ResidualModel>();
  for (int64_t i = 0; i < 400; ++i) {
    const int64_t a = i % 10, b = i / 10 % 10;
    model->Add(features(static_cast<double>(a), static_cast<double>(b)), "sketch one",
               "kernel " + std::to_string(i / 100), is_fast(a) ? -0.4 : 0.4);
  }
  for (const char* name : {"improvement", "annealing"}) {
    const auto searcher = MakeSearcher(name, problem, {.seed = 1, .model = model});
    ASSERT_TRUE(searcher);
    for (const Pick& pick : (*searcher)->Next(8))
      EXPECT_TRUE(is_fast(graph::ValueOf(pick.point, "a"))) << name << problem.Trace(pick);
  }
}

// Two points that are one kernel are tried once, whoever searches.
TEST(Searchers, TryEqualKernelsOnce) {
  SearchProblem problem = TwoSpaces();
  problem.identity = [](const Pick& pick) {
    // `b` says nothing.
    return pick.space == 1 ? "c" : std::to_string(graph::ValueOf(pick.point, "a"));
  };
  for (const std::string& name : SearcherNames()) {
    const auto searcher = MakeSearcher(name, problem, {.seed = 1, .population = 16});
    std::set<std::string> seen;
    int tried = 0;
    for (auto picks = (*searcher)->Next(4); !picks.empty(); picks = (*searcher)->Next(4)) {
      for (const Pick& pick : picks) {
        EXPECT_TRUE(seen.insert(problem.identity(pick)).second) << name << problem.Trace(pick);
        (*searcher)->Observe(pick, TrueSeconds(pick));
        ++tried;
      }
    }
    EXPECT_EQ(tried, 6) << name;
  }
}

// ---- Sessions ----

class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("kernel_session_test." + std::to_string(getpid()));
    fs::create_directory(folder_);
    kernel_.name = "k";
    kernel_.text = "text";
    kernel_.machine = std::string(32, 'b');
    kernel_.target = "llvm";
    kernel_.problem = TwoSpaces();
    kernel_.lower = [](const Pick& pick) -> Expected<LoweredCandidate> {
      LoweredCandidate out;
      out.module = {};
      out.parameters = {};
      if (pick.space == 1) return MakeError("it cannot be built");
      return out;
    };
    tools_.build = [](const Module&) -> Expected<std::string> { return std::string("image"); };
    tools_.race = [this](const measure::RaceRequest&) -> Expected<measure::RaceAnswer> {
      ++races_;
      measure::RaceAnswer answer;
      answer.incumbent_seconds = 1e-5;
      answer.log_ratio = races_ % 3 == 0 ? -0.1 : 0.1;
      answer.faster = races_ % 3 == 0;
      answer.pairs = 100;
      answer.noise = 0.01;
      if (races_ % 5 == 0) {
        answer.outcome = measure::Outcome::kCrash;
        answer.message = "it died";
      }
      return answer;
    };
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<Trial> Run(Log* log, int64_t trials, const std::vector<Trial>& before = {},
                         const std::set<std::string>& suspects = {}) {
    KernelOptions options;
    options.asks_early = true;
    options.suspects = suspects;
    options.trials = trials;
    options.bench.tools = &tools_;
    options.bench.folder = folder_;
    options.bench.log = log;
    const auto searcher = MakeSearcher("random", kernel_.problem, {.seed = 5});
    std::vector<Trial> out;
    const std::atomic<bool> stop = false;
    const Expected<KernelState> state = TuneKernel(
        kernel_, searcher->get(), options, before,
        [&](const Trial& t, const KernelState&) { out.push_back(t); }, stop);
    EXPECT_TRUE(state) << ToString(state.errors());
    if (state) state_ = *state;
    return out;
  }

  fs::path folder_;
  OpenKernel kernel_;
  SessionTools tools_;
  int races_ = 0;
  KernelState state_;
};

TEST_F(SessionTest, FailuresAreRecordsAndEndNothing) {
  Expected<Log> log = Log::Open(folder_ / "log");
  ASSERT_TRUE(log);
  const auto trials = Run(&*log, 12);
  EXPECT_EQ(trials.size(), 12U);
  std::set<std::string> outcomes;
  for (const Trial& t : trials) outcomes.insert(t.record.outcome);
  EXPECT_TRUE(outcomes.contains("ok") && outcomes.contains("crash"));
  const Expected<LogContents> contents = log->Read();
  ASSERT_TRUE(contents);
  EXPECT_EQ(contents->records.size(), 12U);
  EXPECT_EQ(contents->kernels.at(kernel_.problem.kernel), "text");
  double best = 1;
  for (const Trial& t : trials) {
    if (t.record.leader) best = t.record.seconds;
  }
  EXPECT_EQ(state_.best_seconds, best);
  EXPECT_EQ(state_.stopped, "12 trials were made");
}

TEST_F(SessionTest, AreDeterministic) {
  const auto a = Run(nullptr, 10);
  races_ = 0;
  const auto b = Run(nullptr, 10);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].pick, b[i].pick);
    EXPECT_EQ(a[i].record.seconds, b[i].record.seconds);
    EXPECT_EQ(a[i].record.outcome, b[i].record.outcome);
  }
}

// Builds take what they like, several at once, ahead of the races; what is tried and what comes of
// it are the same, no more is built than is tried, and no record is left that says "started".
TEST_F(SessionTest, BuildAheadOfTheRace) {
  std::atomic<int> building = 0, most = 0, built = 0, behind = 0;
  tools_.builders = 3;
  const std::thread::id here = std::this_thread::get_id();
  kernel_.lower = [&](const Pick&) -> Expected<LoweredCandidate> {
    EXPECT_EQ(std::this_thread::get_id(), here) << "schedules of users are made in their thread";
    return LoweredCandidate{};
  };
  const auto race = tools_.race;
  tools_.race = [&](const measure::RaceRequest& request) {
    if (building > 0) ++behind;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return race(request);
  };
  std::vector<std::vector<Trial>> runs;
  for (const int slow : {1, 7}) {
    tools_.build = [&, slow](const Module&) -> Expected<std::string> {
      most = std::max<int>(most, ++building);
      std::this_thread::sleep_for(std::chrono::milliseconds(++built * slow % 11));
      --building;
      return std::string("image");
    };
    races_ = built = 0;
    const std::string name = "log" + std::to_string(slow);
    Expected<Log> log = Log::Open(folder_ / name);
    ASSERT_TRUE(log);
    runs.push_back(Run(&*log, 20));
    EXPECT_EQ(built, 20);
    const Expected<LogContents> contents = log->Read();
    ASSERT_TRUE(contents);
    EXPECT_EQ(contents->records.size(), 20U);
    for (const Record& r : contents->records) EXPECT_NE(r.outcome, kStarted);
  }
  EXPECT_LE(most, 3);
  EXPECT_GE(most, 2);
  EXPECT_GT(behind, 0) << "nothing was built while something ran";
  ASSERT_EQ(runs[0].size(), runs[1].size());
  for (size_t i = 0; i < runs[0].size(); ++i) {
    EXPECT_EQ(runs[0][i].pick, runs[1][i].pick);
    EXPECT_EQ(runs[0][i].record.seconds, runs[1][i].record.seconds);
  }
}

// Schedules of our own rules are made by the builders, and what is tried is the same.
TEST_F(SessionTest, BuildersLowerWhatMayBeLoweredAnywhere) {
  const std::vector<Trial> before = Run(nullptr, 10);
  races_ = 0;
  tools_.builders = 3;
  kernel_.lowers_anywhere = true;
  const auto lower = kernel_.lower;
  const std::thread::id here = std::this_thread::get_id();
  kernel_.lower = [&](const Pick& pick) {
    EXPECT_NE(std::this_thread::get_id(), here);
    return lower(pick);
  };
  const std::vector<Trial> after = Run(nullptr, 10);
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i].pick, before[i].pick);
    EXPECT_EQ(after[i].record.outcome, before[i].record.outcome);
  }
}

// All of a queue was under way when a session was killed. Each of them is tried alone, so another
// kill is one's own, and no more than that one is banned.
TEST_F(SessionTest, WhatWasUnderWayAtADeathIsTriedAlone) {
  tools_.builders = 3;
  kernel_.lower = [](const Pick&) -> Expected<LoweredCandidate> { return LoweredCandidate{}; };
  Expected<Log> log = Log::Open(folder_ / "log");
  ASSERT_TRUE(log);
  std::set<std::string> suspects;
  for (const Trial& t : Run(nullptr, 4)) suspects.insert(t.record.Trace());
  std::atomic<int> started = 0;
  size_t most = 0;
  races_ = 0;
  const auto race = tools_.race;
  tools_.race = [&](const measure::RaceRequest& request) {
    size_t now = 0;
    const Expected<LogContents> contents = log->Read();
    for (const Record& r : contents->records) now += r.outcome == kStarted;
    if (++started <= 4) {
      EXPECT_EQ(now, 1U);
    } else {
      most = std::max(most, now);
    }
    return race(request);
  };
  EXPECT_EQ(Run(&*log, 16, {}, suspects).size(), 16U);
  EXPECT_GT(most, 1U);
}

TEST_F(SessionTest, GoOnFromALog) {
  Expected<Log> log = Log::Open(folder_ / "log");
  ASSERT_TRUE(log);
  std::set<std::string> tried;
  for (const Trial& t : Run(&*log, 8)) tried.insert(t.record.Trace());
  const Expected<LogContents> contents = log->Read();
  ASSERT_TRUE(contents);
  const auto before = TrialsOf(*contents, kernel_, 1);
  EXPECT_GE(before.size(), 4U);
  for (const Trial& t : Run(&*log, 6, before)) {
    // One that died may have died of something else, once.
    if (tried.contains(t.record.Trace())) {
      const auto known = std::find_if(before.begin(), before.end(), [&](const Trial& b) {
        return b.record.Trace() == t.record.Trace();
      });
      EXPECT_EQ(known, before.end()) << t.record.Trace();
    }
  }
  // Of another kernel, machine or target nothing is known.
  OpenKernel other = kernel_;
  other.machine = std::string(32, 'c');
  EXPECT_TRUE(TrialsOf(*contents, other, 1).empty());
  EXPECT_TRUE(TrialsOf(*contents, kernel_, 2).empty());
}

}  // namespace
}  // namespace tenon::tune

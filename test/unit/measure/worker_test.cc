// A worker and what kernels do to it: each misbehaviour is an answer, and the next question is
// answered as if nothing had been.
#include <gtest/gtest.h>

#include <signal.h>
#include <algorithm>

#include <cstdlib>

#include "measure/worker_process.h"
#include "support/atomic_file.h"
#include "support/sanitizers.h"

namespace tenon::measure {
namespace {

constexpr int64_t kElements = 1003;  // not a multiple of what operands are aligned to

Program Kernel(const std::string& function) {
  Parameter x;
  x.dtype = "float32";
  x.dims = x.shape = {kElements};
  x.terms = {{0, 1, 0, 1}};
  Parameter y = x;
  y.output = true;
  return {std::string(TEST_MODULE_DIR) + "/kernels.so", function, {x, y}};
}

RaceRequest Race(const std::string& candidate) {
  RaceRequest r;
  r.kernel = "twice";
  r.reference = r.incumbent = Kernel("good");
  r.candidate = Kernel(candidate);
  r.seconds = 1;
  return r;
}

class WorkerTest : public testing::Test {
 protected:
  RaceAnswer Ask(const RaceRequest& request) {
    Expected<RaceAnswer> answer = worker_.Ask(request);
    EXPECT_TRUE(answer) << (answer ? "" : ToString(answer.errors()));
    return answer ? *answer : RaceAnswer{};
  }

  WorkerProcess worker_{
      {.program = TENON_MEASURE_PROGRAM, .most_bytes = int64_t{512} << 20, .time_limit = 10}};
};

TEST_F(WorkerTest, ComparesAKernelWithItself) {
  // As sessions have it: the first race says how far another one may lead astray.
  RaceRequest request = Race("good");
  request.noise = std::max(Ask(request).noise, 0.002);
  int faster = 0;  // a machine that does other things may say so once
  for (int i = 0; i < 5; ++i) {
    const RaceAnswer answer = Ask(request);
    ASSERT_EQ(answer.outcome, Outcome::kOk) << answer.message;
    EXPECT_GT(answer.incumbent_seconds, 0);
    EXPECT_GE(answer.pairs, 24);
    EXPECT_NEAR(answer.log_ratio, 0, 0.2);
    if (answer.faster) ++faster;
  }
  EXPECT_LE(faster, 2);
}

TEST_F(WorkerTest, SeesWhichIsFaster) {
  EXPECT_GT(Ask(Race("slow")).log_ratio, 0.5);
  RaceRequest turned = Race("good");
  turned.kernel = "another";
  turned.incumbent = Kernel("slow");
  const RaceAnswer answer = Ask(turned);
  EXPECT_TRUE(answer.faster);
  EXPECT_LT(answer.log_ratio, -0.5);
}

TEST_F(WorkerTest, EveryMisbehaviourIsAnAnswer) {
  const std::pair<const char*, Outcome> cases[] = {
      {"wrong", Outcome::kWrong},    {"beside", Outcome::kOutside}, {"beyond", Outcome::kOutside},
      {"before", Outcome::kOutside}, {"crash", Outcome::kCrash},    {"leave", Outcome::kCrash},
#ifndef TN_ASAN  // which runs without a limit of memory
      {"greedy", Outcome::kCrash},
#endif
      {"no_such", Outcome::kError}};
  for (const auto& [name, outcome] : cases) {
    const RaceAnswer answer = Ask(Race(name));
    EXPECT_STREQ(ToString(answer.outcome), ToString(outcome)) << name << ": " << answer.message;
    EXPECT_FALSE(answer.message.empty()) << name;
    EXPECT_EQ(Ask(Race("good")).outcome, Outcome::kOk) << "after " << name;
  }
}

TEST_F(WorkerTest, EndsWhoDoesNotAnswer) {
  WorkerProcess impatient({.program = TENON_MEASURE_PROGRAM, .time_limit = 0.5});
  const Expected<RaceAnswer> answer = impatient.Ask(Race("hang"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->outcome, Outcome::kTimeout);
}

// The definition of a large kernel takes longer than any candidate may.
TEST_F(WorkerTest, ReferencesHaveTheirOwnTime) {
  RaceRequest request = Race("good");
  request.reference = Kernel("ponder");
  request.results = testing::TempDir() + "ponder.results";
  std::remove(request.results.c_str());
  const WorkerOptions options{.program = TENON_MEASURE_PROGRAM, .time_limit = 1};
  request.seconds = 0.1;
  {
    WorkerProcess first(options);
    EXPECT_EQ(first.Ask(request)->outcome, Outcome::kTimeout);
    RaceRequest reference = request;
    reference.candidate = reference.incumbent = {};
    EXPECT_EQ(first.Ask(reference)->outcome, Outcome::kOk);
    EXPECT_EQ(first.Ask(request)->outcome, Outcome::kOk);
  }
  WorkerProcess later(options);
  EXPECT_EQ(later.Ask(request)->outcome, Outcome::kOk);
  request.candidate = Kernel("wrong");
  EXPECT_EQ(later.Ask(request)->outcome, Outcome::kWrong);
  // What is no such file is written anew.
  WriteFile(request.results, "three").value();
  WorkerProcess third(options);
  EXPECT_EQ(third.Ask(request)->outcome, Outcome::kTimeout);
  std::remove(request.results.c_str());
}

TEST_F(WorkerTest, LibrariesThatAreNoneAreAnswers) {
  RaceRequest request = Race("good");
  request.candidate.path = "/dev/null";
  EXPECT_EQ(Ask(request).outcome, Outcome::kError);
  request = Race("good");
  request.candidate.parameters[0].terms[0].stride = 1 << 20;
  EXPECT_EQ(Ask(request).outcome, Outcome::kError);
}

TEST_F(WorkerTest, DevicesThatAreNotThereAreAnswers) {
  EXPECT_EQ(Ask({.device = "vulkan"}).message, "there is no vulkan device here");
  EXPECT_EQ(Ask({.device = "abacus"}).message, "there is no kind of device 'abacus'");
  EXPECT_EQ(Ask({.device = ""}).outcome, Outcome::kOk);
}

TEST(Worker, ThatCannotBeStartedIsAnError) {
  WorkerProcess worker({.program = "/no/such/program"});
  const Expected<RaceAnswer> answer = worker.Ask(Race("good"));
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.errors()[0].message.find("/no/such/program"), std::string::npos);
}

TEST(Protocol, LinesComeBack) {
  RaceRequest request = Race("good");
  request.candidate.parameters[0].padding = 128;
  request.candidate.parameters[0].limit = 5;
  request.noise = 0.01;
  const std::string line = ToLine(request);
  EXPECT_EQ(ToLine(ParseRequest(line).value()), line);
  RaceAnswer answer;
  answer.outcome = Outcome::kWrong;
  answer.message = "a \"difference\"\n";
  EXPECT_EQ(ToLine(ParseAnswer(ToLine(answer)).value()), ToLine(answer));
  EXPECT_FALSE(ParseAnswer("{\"outcome\": 3}"));
  EXPECT_FALSE(ParseRequest("what"));
}

}  // namespace
}  // namespace tenon::measure

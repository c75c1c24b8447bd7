// What only callers of the library can ask for: choices by their methods, questions, traces as
// JSON.
#include <gtest/gtest.h>

#include "unit/schedule/support.h"

namespace tenon::test {
namespace {

Module Small() { return Parse(Fill(kMatmul, {{"M", 4}, {"N", 4}, {"K", 4}})); }

TEST(Doors, ChoicesOutsideTheirDomain) {
  Schedule guess(Small(), "f");
  guess.Decide("rows", {2, 4}, 3);
  ExpectError(guess, "decide(rows, [2, 4], 3): the guess is not in the domain");
  Schedule few(Small(), "f");
  few.SampleCategorical("lanes", {4, 8}, {1.0});
  ExpectError(few,
              "sample_categorical(lanes, [4, 8], [1.0]): expected one probability per candidate");
}

TEST(Doors, QuestionsWithoutAnAnswer) {
  Schedule s(Small(), "f");
  EXPECT_EQ(s.GetBlockOf("A"), "");
  ExpectError(s, "get_block_of(A): no block writes the buffer");
  Schedule none(Small(), "g");
  ExpectError(none, "schedule: no function is named \"g\", the module has: f");
}

std::string WhyNoTrace(const std::string& json) {
  Expected<Trace> trace = Trace::FromJson(json);
  return trace ? "" : ToString(trace.errors());
}

TEST(Doors, TracesInJson) {
  const std::string step = R"({"primitive": "unroll", "args": ["i"], "results": []})";
  EXPECT_EQ(WhyNoTrace(R"({"trace": 1, "steps": [)" + step + "]}"), "");
  EXPECT_NE(WhyNoTrace("[]").find("trace: expected an object with a list of steps"),
            std::string::npos);
  EXPECT_NE(WhyNoTrace(R"({"trace": 9, "steps": []})").find("trace: expected version 1"),
            std::string::npos);
  EXPECT_NE(WhyNoTrace(R"({"trace": 1, "steps": [5]})")
                .find("trace: expected a step with primitive, args and results, got 5"),
            std::string::npos);
  EXPECT_NE(
      WhyNoTrace(R"({"trace": 1, "steps": [{"primitive": "unroll", "args": [{}], "results": []}]})")
          .find("trace: no primitive takes the argument {}"),
      std::string::npos);
}

}  // namespace
}  // namespace tenon::test

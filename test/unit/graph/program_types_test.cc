#include "graph/program_types.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "ir/print.h"

namespace tenon::graph {
namespace {

Graph Of(const std::string& text) {
  auto g = Parse(text);
  EXPECT_TRUE(g) << (g ? "" : g.errors()[0].message);
  return g ? *g : Graph();
}

Step Part(int32_t part, std::vector<Slot> inputs, std::vector<Slot> outputs) {
  return {TN_STEP_PART, std::move(inputs), std::move(outputs), {part}, {}};
}

ProgramValue Value(Slot slot) {
  ProgramValue v;
  v.slot = slot;
  v.type = {TN_TYPE_TENSOR, 0};
  return v;
}

// Part 0 takes anything and gives f32[n, 3]; part 1 likewise f32[2, 3]; part 2 reads two values.
Program Of(std::vector<Step> steps) {
  Program p;
  p.parts = {Of("graph @a<n: 0..=9>(%0 \"x\": f32[n, 3]) {\n  %1 \"y\": f32[n, 3] = relu(%0)\n"
                "  return %1 \"y\"\n}\n"),
             Of("graph @b(%0 \"x\": f32[2, 3]) {\n  %1 \"y\": f32[2, 3] = relu(%0)\n"
                "  return %1 \"y\"\n}\n"),
             Of("graph @c<n: 0..=9, m: 0..=9>(%0 \"x\": f32[n, 3], %1 \"z\": f32[m, 3]) {\n"
                "  %2 \"y\": f32[n, 3] = relu(%0)\n  %3 \"w\": f32[m, 3] = relu(%1)\n"
                "  return %2 \"y\", %3 \"w\"\n}\n")};
  p.inputs = {Value(0), Value(1)};
  p.steps = std::move(steps);
  p.slots = 32;
  return p;
}

std::string Text(const std::optional<MadeType>& made) {
  if (!made) return "anything";
  std::string out = made->dtype.ToString();
  for (const int64_t d : made->dims) out += d < 0 ? " ?" : " " + std::to_string(d);
  return out;
}

void ExpectOfLast(const Program& p, const std::string& first, const std::string& second) {
  const auto inputs = MadeInputs(p);
  ASSERT_EQ(inputs.size(), 3U);
  ASSERT_EQ(inputs[2].size(), 2U);
  EXPECT_EQ(Text(inputs[2][0]), first);
  EXPECT_EQ(Text(inputs[2][1]), second);
}

TEST(ProgramTypes, PartsTellAndArgumentsDoNot) {
  ExpectOfLast(Of({Part(0, {0}, {2}), Part(1, {1}, {3}), Part(2, {2, 3}, {4, 5})}), "f32 ? 3",
               "f32 2 3");
  ExpectOfLast(Of({Part(0, {0}, {2}), Part(2, {2, 0}, {4, 5})}), "f32 ? 3", "anything");
}

TEST(ProgramTypes, WhatOtherStepsMakeIsAnything) {
  const Step sequence{TN_STEP_SEQUENCE, {2}, {6}, {}, {}}, at{TN_STEP_AT, {6, 1}, {7}, {}, {}};
  const Step move{TN_STEP_MOVE, {2}, {8}, {}, {}};
  ExpectOfLast(Of({Part(0, {0}, {2}), sequence, at, move, Part(2, {7, 8}, {4, 5})}), "anything",
               "f32 ? 3");
}

TEST(ProgramTypes, APartThatIsCalledTwiceTakesBoth) {
  ExpectOfLast(
      Of({Part(0, {0}, {2}), Part(1, {1}, {3}), Part(2, {2, 3}, {4, 5}), Part(2, {3, 0}, {6, 7})}),
      "f32 ? 3", "anything");
}

TEST(ProgramTypes, BranchesGiveWhatBothHaveInCommon) {
  const StepBody a{{}, {2, 2}, {Part(0, {0}, {2})}}, b{{}, {3, 0}, {Part(1, {1}, {3})}};
  ExpectOfLast(Of({{TN_STEP_IF, {1}, {8, 9}, {}, {a, b}}, Part(2, {8, 9}, {4, 5})}), "f32 ? 3",
               "anything");
  // A branch that fails gives nothing.
  const StepBody fails{{}, {20, 21}, {{TN_STEP_FAIL, {}, {}, {0}, {}}}};
  const StepBody c{{}, {2, 3}, {Part(0, {0}, {2}), Part(1, {1}, {3})}};
  ExpectOfLast(Of({{TN_STEP_BY_RANK, {1}, {8, 9}, {0, 1, 2}, {c, fails}}, Part(2, {8, 9}, {4, 5})}),
               "f32 ? 3", "f32 2 3");
}

TEST(ProgramTypes, LoopsCarryWhatComesBack) {
  // f32[2, 3] goes in, f32[n, 3] comes back; the other goes round as it is. A body that leads an
  // argument back makes it anything.
  const auto loop = [](Slot back) {
    const StepBody body{{10, 11, 12, 13}, {11, back, 13}, {Part(0, {12}, {14})}};
    return Step{TN_STEP_LOOP, {kNoSlot, kNoSlot, 3, 3}, {8, 9}, {2}, {body}};
  };
  ExpectOfLast(Of({Part(1, {1}, {3}), loop(14), Part(2, {8, 9}, {4, 5})}), "f32 ? 3", "f32 2 3");
  ExpectOfLast(Of({Part(1, {1}, {3}), loop(0), Part(2, {8, 9}, {4, 5})}), "anything", "f32 2 3");
}

TEST(ShareParts, EqualOnesOfTheSameNamesAreOne) {
  Program p =
      Of({Part(0, {0}, {2}), Part(3, {1}, {3}), Part(4, {1}, {6}), Part(2, {2, 3}, {4, 5})});
  p.parts.push_back(
      Of("graph @d<k: 0..=9>(%0 \"x\": f32[k, 3]) {\n  %1 \"h\": f32[k, 3] = relu(%0)\n"
         "  return %1 \"y\"\n}\n"));
  p.parts.push_back(
      Of("graph @e<k: 0..=9>(%0 \"u\": f32[k, 3]) {\n  %1 \"h\": f32[k, 3] = relu(%0)\n"
         "  return %1 \"y\"\n}\n"));
  ShareParts(&p);
  ASSERT_EQ(p.parts.size(), 4U);
  EXPECT_EQ(p.parts[3].name, "part3");
  EXPECT_EQ(p.parts[3].value(p.parts[3].inputs[0]).name, "u");
  std::vector<int32_t> called;
  for (const Step& step : p.steps) called.push_back(step.numbers[0]);
  EXPECT_EQ(called, (std::vector<int32_t>{0, 0, 3, 2}));
}

}  // namespace
}  // namespace tenon::graph

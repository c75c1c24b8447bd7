#include "graph/program_waits.h"

#include <gtest/gtest.h>

namespace tenon::graph {
namespace {

Step Simple(int32_t operation, std::vector<Slot> inputs, std::vector<Slot> outputs) {
  return {operation, std::move(inputs), std::move(outputs), {}, {}};
}

Step Part(int32_t part, std::vector<Slot> inputs, std::vector<Slot> outputs) {
  return {TN_STEP_PART, std::move(inputs), std::move(outputs), {part}, {}};
}

ProgramValue Value(Slot slot, std::vector<uint32_t> type = {TN_TYPE_TENSOR, 0}) {
  ProgramValue v;
  v.slot = slot;
  v.type = std::move(type);
  return v;
}

Program Of(std::vector<ProgramValue> inputs, std::vector<Step> steps,
           std::vector<ProgramValue> outputs) {
  Program p;
  p.inputs = std::move(inputs);
  p.steps = std::move(steps);
  p.outputs = std::move(outputs);
  p.slots = 32;
  return p;
}

void ExpectWaits(const Program& p, int64_t places, int64_t in_loops,
                 const std::vector<Waits>& of_parts = {{}, {}}) {
  const Waits waits = DeviceWaits(p, of_parts);
  EXPECT_EQ(waits.places, places);
  EXPECT_EQ(waits.in_loops, in_loops);
}

TEST(ProgramWaits, WhatIsHandedOnStays) {
  ExpectWaits(Of({Value(0), Value(1)},
                 {Part(0, {0}, {2}), Simple(TN_STEP_SEQUENCE, {2, 1}, {3}),
                  Simple(TN_STEP_LENGTH, {3}, {4}), Simple(TN_STEP_MOVE, {2}, {5})},
                 {Value(5)}),
              0, 0);
}

TEST(ProgramWaits, StepsReadPositionsAndPartsWhatStepsMade) {
  // The position comes from a part; the length, made on the host, goes to one.
  const Program p =
      Of({Value(0)},
         {Part(0, {0}, {1, 2}), Simple(TN_STEP_SEQUENCE, {0, 1}, {3}),
          Simple(TN_STEP_AT, {3, 2}, {4}), Simple(TN_STEP_LENGTH, {3}, {5}), Part(1, {4, 5}, {6})},
         {Value(6)});
  ExpectWaits(p, 2, 0);
  ExpectWaits(p, 2 + 3, 1, {{2, 1}, {1, 0}});
}

TEST(ProgramWaits, OutputsAndSequencesCross) {
  // A sequence passed in is copied on the host, joined there, and its result leaves on the device.
  ExpectWaits(Of({Value(0, {TN_TYPE_SEQUENCE, TN_TYPE_TENSOR, 0})},
                 {Simple(TN_STEP_JOIN, {0}, {1})}, {Value(1)}),
              2, 0);
  ExpectWaits(Of({Value(0, {TN_TYPE_STRINGS})}, {Part(0, {0}, {1})}, {Value(1, {TN_TYPE_STRINGS})}),
              2, 0);
}

TEST(ProgramWaits, LoopsCarryBothSides) {
  // Slot 4 goes in on the device and comes back from a step on the host: the part waits for it.
  const StepBody body{
      {2, 3, 4}, {5, 6, 7}, {Part(0, {4}, {5, 7}), Simple(TN_STEP_SPLIT, {4}, {6})}};
  const Step loop{TN_STEP_LOOP, {kNoSlot, kNoSlot, 0}, {8, 9}, {1, 0, 0}, {body}};
  // In the body: the part's operand, what is split, the condition. Behind it: what is collected,
  // and both outputs.
  ExpectWaits(Of({Value(0)}, {loop}, {Value(8), Value(9)}), 6, 3);
}

TEST(ProgramWaits, BranchesGiveEither) {
  const StepBody host{{}, {1}, {Simple(TN_STEP_LENGTH, {3}, {1})}}, device{{}, {0}, {}};
  const Step branch{TN_STEP_IF, {0}, {2}, {}, {host, device}};
  ExpectWaits(Of({Value(0)}, {branch}, {}), 1, 0);
  ExpectWaits(Of({Value(0)}, {branch, Part(0, {2}, {4})}, {Value(4)}), 2, 0);
}

}  // namespace
}  // namespace tenon::graph

// A network some of whose values are no tensors of numbers: graphs of tensors, and a program that
// says what happens between them (tenon/program_abi.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "tenon/program_abi.h"

namespace tenon::graph {

using Slot = int32_t;
inline constexpr Slot kNoSlot = -1;

struct StepBody;

/// What its operation says of inputs, outputs, numbers and bodies stands in program_abi.h.
struct Step {
  int32_t operation;  // TN_STEP_…
  std::vector<Slot> inputs, outputs;
  std::vector<int32_t> numbers;
  std::vector<StepBody> bodies;
};

struct StepBody {
  std::vector<Slot> inputs, outputs;
  std::vector<Step> steps;
};

/// An input or an output.
struct ProgramValue {
  std::string name;
  Slot slot = kNoSlot;
  std::vector<uint32_t> type;  // in words
  std::string text;            // the type for people: "float32", "string", "sequence(float32)"
  bool is_tensor = false;
  std::vector<std::string> dims;  // of a tensor: numbers and names, "?" where nothing is known
};

/// Besides, `strings` to `slots` are empty where all values are tensors of numbers.
struct Program {
  std::vector<Graph> parts;
  std::vector<std::string> strings;  // their numbers are their places
  std::vector<ProgramValue> inputs, outputs;
  std::vector<Step> steps;
  int32_t slots = 0;

  /// Whether it is no program at all, but a graph: its only part.
  bool IsPlain() const { return slots == 0; }

  /// The words of tn_blob_program, little-endian.
  std::string Encode() const;
};

/// Parts that do the same to inputs and outputs of the same names become one, which several steps
/// call: what follows a value of several ranks is planned for each of them (onnx/program_ways.cc).
void ShareParts(Program* program);

}  // namespace tenon::graph

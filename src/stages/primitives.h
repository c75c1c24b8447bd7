// The primitives of stages, by the file that each is in; tenon/stage_primitives.def is their table.
//
// A step's arguments are plain values, and the kinds of the parameters here say what they must be.
// A loop is one of the stage that was named last before it.
#pragma once

#include <string>
#include <vector>

#include "stages/state.h"

namespace tenon::stages {

/// The step that is being applied.
struct Call {
  State& s;
  const char* name;

  Diagnostic Wrong(StageId stage, const std::string& reason) const {
    return stages::Wrong(name, s[stage], reason);
  }
  /// How a loop runs is said once, and of the loop as it stays.
  Status RequireUnmarked(StageId stage, LoopId loop) const;
};

// ---- Kinds of arguments ----
using Stage = StageId;
using Stages = std::vector<Stage>;
/// One of the loops that the stage has now.
struct Loop {
  LoopId id{};
  size_t place = 0;  // among them
};
using Loops = std::vector<Loop>;
/// A number, or "$" and the name of a choice: as given, and what it is now.
struct Number {
  AttrValue given;
  int64_t value = 0;
};
/// Several: given are numbers, or, with a choice among them, texts.
struct Numbers {
  AttrValue given;
  std::vector<int64_t> values;
};
/// A buffer of the function.
struct Tensor {
  std::string name;
};
using Tensors = std::vector<Tensor>;
/// The name of a thread axis.
struct Axis {
  std::string name;
};
/// A key of attributes of loops that some pass reads.
struct PragmaKey {
  std::string name;
};
using Text = std::string;
/// A text, or nothing at the end of the arguments.
struct OptionalText {
  Text text;
};

// loops.cc
Expected<Made> Split(const Call& c, const Stage& stage, const Loop& loop, const Numbers& factors);
Expected<Made> Fuse(const Call& c, const Stage& stage, const Loops& loops);
Expected<Made> Reorder(const Call& c, const Stage& stage, const Loops& loops);
// places.cc
Expected<Made> ComputeAt(const Call& c, const Stage& stage, const Stage& consumer,
                         const Loop& loop);
Expected<Made> ReverseComputeAt(const Call& c, const Stage& stage, const Stage& producer,
                                const Loop& loop);
Expected<Made> ComputeRoot(const Call& c, const Stage& stage);
Expected<Made> ComputeInline(const Call& c, const Stage& stage);
/// A stage inside a loop of its consumer computes only what the iteration before has not.
Expected<Made> RollingBuffer(const Call& c, const Stage& stage);
Expected<Made> SetScope(const Call& c, const Stage& stage, const Text& scope);
// new_stages.cc
/// One copy of the tensor for all readers.
Expected<Made> CacheRead(const Call& c, const Tensor& tensor, const Text& scope,
                         const Stages& readers);
/// The stage computes the new one's tensor, from which its own is then copied: loops that it had
/// are the new stage's.
Expected<Made> CacheWrite(const Call& c, const Stage& stage, const Tensors& tensors,
                          const Text& scope);
Expected<Made> RFactor(const Call& c, const Stage& stage, const Loop& loop, const Number& axis);
/// The padded stage, then the copies of what it reads.
Expected<Made> PadEinsum(const Call& c, const Stage& stage, const Numbers& multiples);
Expected<Made> TransformBlockLayout(const Call& c, const Stage& stage, const Text& map);
Expected<Made> ReverseComputeInline(const Call& c, const Stage& stage);

}  // namespace tenon::stages

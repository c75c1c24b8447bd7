// Algorithms: ways to compute an operator other than by its definition, for the anchors of fused
// groups. Each states when it applies and which schedule rule goes with the tensors it builds.
#pragma once

#include "ops/group.h"

namespace tenon::ops {

struct Algorithm {
  const char* name;
  const char* rule;
  /// True when the algorithm can compute this anchor on the operands' layouts, for the group's
  /// target.
  bool (*applies)(const Group& group, const graph::Node& anchor);
  /// The anchor's result; attributes for the rule go into `attrs`.
  Operand (*build)(Group& group, const graph::Node& anchor, Attrs* attrs);
};

/// The first algorithm of the operator that applies, or null: the definition.
const Algorithm* ChooseAlgorithm(const Group& group, const graph::Node& anchor);

}  // namespace tenon::ops

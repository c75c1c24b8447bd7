// What is known of the tensors that a program gives to its parts.
#pragma once

#include <optional>
#include <vector>

#include "graph/program.h"

namespace tenon::graph {

/// The type of a tensor that a part has made. Sizes that only a call knows are -1.
struct MadeType {
  DType dtype;
  std::vector<int64_t> dims;
  friend bool operator==(const MadeType&, const MadeType&) = default;
};

/// For each part, of each of its inputs: the type of all that may come there, where nothing but
/// what parts make does, handed on by branches and loops; nothing, where the value may be an
/// argument of the call or what another step makes.
std::vector<std::vector<std::optional<MadeType>>> MadeInputs(const Program& program);

}  // namespace tenon::graph

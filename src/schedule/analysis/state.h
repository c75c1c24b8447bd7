// The state that a primitive works on.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dependence/body.h"
#include "schedule/analysis/judged_loops.h"

namespace tenon::primitive {

using Place = Body::Place;
using Access = Body::Access;

struct State {
  Module* module;  // changed by Outline and Tensorize only
  Func func;       // the function being scheduled
  const std::map<std::string, int64_t>* decisions =
      nullptr;  // what "$name" in arguments stands for

  /// What became of names (schedule/apply.h), as far as a primitive's results do not say it.
  std::vector<std::pair<std::string, std::string>> renamed = {};

  /// What is known of loops from the steps before; null where nothing is remembered.
  JudgedLoops* judged = nullptr;

  /// The function with another body.
  void SetBody(Stmt body);
};

using Result = Expected<Names>;
using Ints = std::vector<int64_t>;

/// Simplifies trip counts, bindings and guards under `stmt`, given what the analyzer knows about
/// its surroundings. Guards that always hold vanish.
Stmt Tidy(const Stmt& stmt, Analyzer* analyzer);

}  // namespace tenon::primitive

// The state that a primitive works on.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "schedule/analysis/body.h"

namespace tenon::primitive {

struct State {
  Module* module;  // changed by Outline and Tensorize only
  Func func;       // the function being scheduled
  const std::map<std::string, int64_t>* decisions =
      nullptr;  // what "$name" in arguments stands for

  /// What became of names (schedule/apply.h), as far as a primitive's results do not say it.
  std::vector<std::pair<std::string, std::string>> renamed = {};

  /// The function with another body.
  void SetBody(Stmt body);
};

using Result = Expected<Names>;
using Ints = std::vector<int64_t>;

}  // namespace tenon::primitive

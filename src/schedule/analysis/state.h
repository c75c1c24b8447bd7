// The state that a primitive works on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "schedule/analysis/body.h"

namespace tenon::primitive {

struct State {
  Module* module;  // changed by Outline and Tensorize only
  Func func;       // the function being scheduled
  const std::map<std::string, int64_t>* decisions =
      nullptr;  // what "$name" in arguments stands for

  /// The function with another body.
  void SetBody(Stmt body);
};

using Result = Expected<Names>;
using Ints = std::vector<int64_t>;

}  // namespace tenon::primitive

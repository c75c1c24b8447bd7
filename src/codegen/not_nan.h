// Which floats are never NaN, as far as a function's own text tells.
//
// A running maximum starts from -infinity and drops what is NaN, so it is none itself. Who knows
// that may take the machine's maximum, which gives its second operand where one is NaN.
#pragma once

#include <unordered_set>

#include "loop/func.h"

namespace tenon::codegen {

class NotNan {
 public:
  /// Looks at what the function stores in memory that it allocates itself.
  explicit NotNan(const PrimFunc& func);

  /// True where no lane of a float can be NaN; false where that is not known.
  bool Holds(const Expr& e) const;

 private:
  bool Holds(const Expr& e, int* budget) const;

  std::unordered_set<const BufferNode*> numbers_;  // hold no NaN
};

}  // namespace tenon::codegen

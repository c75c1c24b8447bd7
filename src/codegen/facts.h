// What is cheaply known about the value of an index expression, for addresses and divisions: is it
// never negative, and of what is it a multiple. Looks at the expression alone and at what is known
// of its variables.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "ir/expr.h"

namespace tenon::codegen {

/// `multiple` divides the value; 0 says that the value is 0.
struct IndexFact {
  bool nonnegative = false;
  int64_t multiple = 1;
};

class IndexFacts {
 public:
  /// States what holds for a variable until it is stated anew.
  void Set(const VarNode* var, IndexFact fact) { vars_[var] = fact; }
  /// Facts of a scalar integer or index expression; of a vector, what holds for each lane.
  IndexFact Of(const Expr& e) const;

 private:
  IndexFact OfBinary(const Binary& b) const;
  std::unordered_map<const VarNode*, IndexFact> vars_;
};

}  // namespace tenon::codegen

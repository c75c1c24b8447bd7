// What a function needs of its sizes so that no access is outside its buffer and no index is
// divided by zero: found where the function is made, checked where it is called.
//
// An access reaches its ends at the ends of the loops around it. Most requirements are about one
// such iteration, the witness: wherever it runs (no loop around it is empty, every condition on the
// way holds), its index is inside. So what is refused is wrong for certain. An index that neither
// rises nor falls with its loops, and is not known to be inside, is asked about at every iteration:
// here, of a few with known numbers, or at the call, by loops over them. What depends on data is
// not looked at, nor what is too long to be written down: an index of more than 4096 operations.
#pragma once

#include <string>
#include <vector>

#include "loop/func.h"
#include "support/expected.h"

namespace tenon {

/// The attribute of an exported function, or one that is to be, that lists its requirements as
/// text: "n + 2 < m if n >= 1: A[i + 3] along dim 0", "i * i % k < n for i in 0..m: A[i * i % k]
/// …".
inline constexpr const char* kRequiresAttr = "requires";

/// The attribute of an exported function that lists, as text, the conditions on its dims that every
/// call must meet whatever its accesses are: "n % 4 == 0".
inline constexpr const char* kConditionsAttr = "conditions";

/// Lists who asked for each of those conditions, and for the range of each dim, for messages: "node
/// 'add' (Add) needs of 'x' and 'y'", or "". Left out where no asker is known.
inline constexpr const char* kConditionAskersAttr = "condition_askers";
inline constexpr const char* kRangeAskersAttr = "range_askers";

/// A condition on the function's dims and integer scalars.
struct Requirement {
  /// A loop every iteration of which it is about.
  struct Loop {
    Var var;
    Expr min, end;
  };
  Ref<const Binary> holds;  // 0 <= index, index < extent, divisor != 0
  Expr when;                // null: at every call
  std::string what;         // the place: "A[i + 3] along dim 0", "i % n"
  std::vector<Loop> every;  // outermost first

  std::string ToString() const;
  /// The variables are the function's. Nothing where the text is none.
  static std::vector<Requirement> Parse(const PrimFunc& func);
};

/// The requirements of a function that are not certain to hold. Errors: an iteration that is sure
/// to run once its loops do, and reads or writes outside a buffer or divides by zero, whatever the
/// sizes.
Expected<std::vector<Requirement>> RequirementsOf(const PrimFunc& func, const Module& module);

/// The function with its requirements as an attribute, unless it has that already.
Expected<Func> WithRequirements(const Func& func, const Module& module);

}  // namespace tenon

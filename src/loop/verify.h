// The verifier of the loop IR: a list of rules per stage (verify_rules.def), each a function that
// looks at one function of a module and says what is wrong.
#pragma once

#include <string>
#include <vector>

#include "loop/func.h"
#include "support/expected.h"

namespace tenon {

/// What a module must be fit for.
enum class Stage : uint8_t {
  kSchedulable,  // any point between building and code generation: well formed; blocks, where there
                 // are any, tell the truth
  kLowered,  // what back ends take (codegen.h): flat buffers, serial loops, no blocks but markers
};

/// Checks every rule of the stage on every function and reports up to 20 violations, function by
/// function. Each names its function and construct in `loc.item`. What is sound but has no lowering
/// on the function's target yet is "unsupported: <construct>".
Status Verify(const Module& module, Stage stage);

struct VerifyRule {
  const char* name;
  Stage stage;  // a rule of kSchedulable holds at every stage
  const char* doc;
};
/// Every rule, in the order in which they run.
const std::vector<VerifyRule>& VerifyRules();

}  // namespace tenon

// tenon-opt --interpret: runs a function of a text and prints what it is called with and leaves.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "interp/arguments.h"

namespace tenon {

struct InterpretOptions {
  std::string function;             // "": the text's only candidate
  std::vector<std::string> dims;    // "n=8"
  std::vector<std::string> values;  // "A=1,2,3", row-major; one number fills
  uint32_t seed = 1;                // of what is not given: small integers
  int team = 1;
};

/// Every parameter with its type and value, a line each row. Errors: a parameter of that name there
/// is not, sizes that do not fit, and what the interpreter reports.
Expected<std::string> InterpretText(const Module& module, const InterpretOptions& options);

}  // namespace tenon

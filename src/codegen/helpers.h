// Small functions that emitted source calls where an operator of the language does not mean what
// ours does: division that cannot trap, saturating conversions, 16-bit floats, unaligned access.
// Only those that are used are written out, each for the types it is used with.
#pragma once

#include <set>
#include <string>

#include "codegen/language.h"

namespace tenon::codegen {

class Helpers {
 public:
  explicit Helpers(const Language& language) : language_(language) {}

  /// The name of helper `family` for a type; `from` for those of two types. A family that does not
  /// exist for the type is a bug of the caller.
  std::string Use(const std::string& family, DType type, DType from = DType::Handle());
  /// The helpers used so far, each behind those that it calls. Independent of the order of use.
  std::string Text() const;

 private:
  const Language& language_;
  std::set<std::pair<int, std::string>> texts_;  // by place in the table, then by text
};

}  // namespace tenon::codegen

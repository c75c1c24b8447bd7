// Names that nothing else has, and copies of statements under such names.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "ir/visit.h"
#include "loop/func.h"

namespace tenon {

/// The names that are taken, so that new ones are others. A name, once given, stays taken.
class NameSupply {
 public:
  /// How a name that is taken goes on: `mark`, and a number from `first` on.
  explicit NameSupply(std::string mark, int first) : mark_(std::move(mark)), first_number_(first) {}
  /// With all names of the function's variables, buffers and blocks; base, base.1, base.2, …
  explicit NameSupply(const PrimFunc& func);

  void Take(const std::string& name) { used_.insert(name); }
  /// `base` itself where it is free, else with the first number that makes it so.
  std::string Fresh(const std::string& base);

 private:
  const std::string mark_;
  const int first_number_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> next_;  // of a base: numbers below are taken
};

/// A copy of `stmt` with `vars` replaced and everything that it binds (variables, buffers, block
/// names) made anew.
Stmt FreshCopy(const Stmt& stmt, VarMap vars, NameSupply* names);

}  // namespace tenon

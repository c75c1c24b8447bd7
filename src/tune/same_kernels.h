// Which of a task's candidates are the same kernel. Choices may come to nothing: how a loop is
// shared out by one worker, or how an axis of one block is split. Such candidates are one, which is
// tried once; what it takes holds for all of them.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "support/expected.h"
#include "tune/build_ahead.h"

namespace tenon::tune {

/// A hash of a kernel's loop IR and of how its operands lie.
std::string IdentityOf(const LoweredCandidate& lowered);

class SameKernels {
 public:
  /// The first candidate, of those that were asked about, that is the same kernel as this one:
  /// itself, where none was. One that cannot be lowered is a kernel of its own.
  size_t FirstOf(size_t place, const Expected<std::string>& identity);
  bool Knows(size_t place) const { return first_.contains(place); }
  /// The same of one that was asked about before.
  size_t Known(size_t place) const { return first_.at(place); }

 private:
  std::map<std::string, size_t> kernels_;
  std::map<size_t, size_t> first_;
};

}  // namespace tenon::tune

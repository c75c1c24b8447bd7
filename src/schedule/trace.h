// The trace of a schedule: which primitives were applied, with what, giving what. It prints as
// text, one primitive per line, parses back, and replays on a function.
//
//   i.0, i.1 = split("i", [-1, 8])
//   reorder(["i.0", "j", "i.1"])
//   16 = decide("tile", [8, 16, 32], 8)
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attrs.h"
#include "support/expected.h"

namespace tenon {

/// One applied primitive. Results are names of loops, blocks, buffers or functions; of a decision,
/// the value chosen.
struct TraceStep {
  std::string primitive;        // its row in primitives.def: "split", "compute_at", …
  std::vector<AttrValue> args;  // as the method of Schedule takes them
  std::vector<std::string> results;

  /// The line, without its end.
  std::string ToString() const;
  friend bool operator==(const TraceStep&, const TraceStep&) = default;
};

struct Trace {
  std::vector<TraceStep> steps;

  /// One line per step.
  std::string ToString() const;
  /// Reads what ToString writes; blank lines and lines that start with '#' are skipped.
  static Expected<Trace> Parse(std::string_view text);
  /// One JSON object: {"trace": 1, "steps": [{"primitive": …, "args": […], "results": […]}, …]},
  /// where 1 is the version of the form. For files and databases.
  std::string ToJson() const;
  static Expected<Trace> FromJson(std::string_view text);
  /// The choices made, by name; the last one where a name was decided twice.
  std::map<std::string, int64_t> Decisions() const;
  friend bool operator==(const Trace&, const Trace&) = default;
};

}  // namespace tenon

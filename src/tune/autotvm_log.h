// Logs of AutoTVM, version 0.2, as hints: which tiles were good elsewhere. A line says what was
// computed by a template's name and arguments, and the config by its entities (an index means
// nothing outside of the space it was of). Tiles that have the meaning of one of our knobs name the
// point that comes nearest; it is measured like any other.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/expected.h"
#include "tune/task.h"

namespace tenon::tune {

struct AutotvmRecord {
  std::string target, task;
  std::vector<std::vector<int64_t>> shapes;            // of the tensors among its arguments
  std::map<std::string, std::vector<int64_t>> splits;  // by entity, outermost first
  double seconds = 0;                                  // 0: it failed
};

struct AutotvmLog {
  std::vector<AutotvmRecord> records;  // in the order of the file
  Diagnostics skipped;                 // what could not be read, each with file and line
};

/// Lines that are no records are passed over: broken ones, pickles, which nobody should read, those
/// of another version, and Ansor's, whose hash keys cannot be recreated.
AutotvmLog ParseAutotvmLog(std::string_view text, const std::string& file);

/// Candidates of a task that the log's records about its shapes come nearest to, the fastest record
/// first, each once.
std::vector<size_t> HintsFor(const Task& task, const Machine& machine, const AutotvmLog& log,
                             size_t most);

}  // namespace tenon::tune

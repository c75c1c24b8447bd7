// Records as a session writes them.
#pragma once

#include <string>

#include "graph/text.h"
#include "tune/record.h"
#include "tune/task.h"

namespace tenon::tune {

inline Record RecordOf(const Task& task, const Candidate& c, double seconds, bool leader) {
  Record r;
  r.kernel = task.kernel;
  r.target = "llvm";
  r.algorithm = c.algorithm->name;
  r.epoch = c.algorithm->epoch;
  r.point = graph::ChoicesText(c.point);
  r.cache = "warm";
  r.outcome = kOk;
  r.leader = leader;
  r.seconds = seconds;
  return r;
}

}  // namespace tenon::tune

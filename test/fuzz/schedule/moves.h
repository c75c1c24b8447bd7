// Random primitives, legal ones and others, with arguments near legal.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/schedule/subject.h"
#include "schedule/schedule.h"

namespace tenon::fuzz {

/// What must not be: a wrong result, a crash that was caught, a refusal that does not say why.
class Finding : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// No finding, but nothing to wait for.
class TooLong : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How often each primitive was applied and refused, and what refusals said (without names and
/// numbers).
struct Counts {
  struct Row {
    int64_t applied = 0, refused = 0;
  };
  std::map<std::string, Row> primitives;
  std::map<std::string, int64_t> reasons;
  std::string last_refusal;  // as it was said
};

struct MoveOptions {
  size_t most_steps = 12;
  bool threads = true;  // loops over thread axes, which no CPU has
  bool gpu = false;     // mostly those, with what belongs to them
  bool meet = false;    // and of launches whose blocks wait for each other
};

/// Applies one step, a choice or a primitive. A refused one leaves the schedule as it was, and its
/// message is looked at: throws a Finding where it does not name what it is about. Names in the
/// step's results are ignored. True when it was legal.
bool TryStep(Schedule* schedule, const TraceStep& step, Counts* counts);

/// A refusal whose message holds `part`, made by the seeds' schedules: the text of a case for
/// test/text/schedule with as few steps as show it; "" where there is none among `count` seeds.
std::string RefusalWith(const std::string& part, uint64_t seed, uint64_t count);

/// A schedule of the subject by some random steps that turned out legal.
Schedule RandomSchedule(const Subject& subject, Random& random, const MoveOptions& options,
                        Counts* counts);

/// Primitives of the table that no move asks for.
std::vector<std::string> PrimitivesWithoutMove();

}  // namespace tenon::fuzz

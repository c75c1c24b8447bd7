#include "fuzz/schedule/moves.h"

#include <algorithm>
#include <cctype>

#include "fuzz/schedule/mover.h"
#include "loop/print.h"
#include "schedule/run.h"
#include "schedule/steps.h"
#include "support/check.h"

namespace tenon::fuzz {

using primitive::Args;

namespace {

// "compute_at(#, #) of block #: loop # is …": what is said, without of whom.
std::string Reason(const std::string& primitive, const std::string& rest) {
  std::string out;
  bool word = false;
  for (size_t i = 0; i < rest.size(); ++i) {
    const char c = rest[i];
    const bool name = std::isdigit(static_cast<unsigned char>(c)) || c == '.' || c == '_';
    if (name && i + 1 < rest.size() && rest[i + 1] != ' ') word = true;
    out += c;
    if (c == ' ' || c == ',') {
      if (word) {
        size_t from = out.find_last_of(' ', out.size() - 2);
        out = out.substr(0, from == std::string::npos ? 0 : from + 1) + "# ";
      }
      word = false;
    }
  }
  return primitive + out;
}

// "primitive(arguments): reason" or "primitive(arguments) of block B: reason". What is no choice of
// a trace is said by "replay: primitive(arguments) is not …".
void CheckRefusal(const TraceStep& step, const Diagnostics& errors, Counts* counts) {
  const std::string heading = Schedule::Steps::Heading(step.primitive, step.args);
  if (errors.empty()) throw Finding(heading + " is refused without a word");
  for (const Diagnostic& d : errors) {
    if (Schedule::IsChoice(step.primitive) &&
        d.message == "replay: " + heading + " is not what a choice looks like") {
      continue;
    }
    std::string rest = d.message.substr(std::min(heading.size(), d.message.size()));
    bool well = d.message.starts_with(heading);
    if (rest.starts_with(" of block ")) {
      const size_t colon = rest.find(": ");
      well = well && colon != std::string::npos && colon > std::string(" of block ").size();
      rest = rest.substr(std::min(colon, rest.size()));
    }
    well = well && rest.starts_with(": ") && rest.size() > 8;
    if (!well) throw Finding(heading + " is refused with: " + d.ToString());
    if (counts == nullptr) continue;
    ++counts->reasons[Reason(step.primitive, rest)];
    counts->last_refusal = d.message;
  }
}

bool SameState(const Schedule& a, const Schedule& b) {
  return a.func() == b.func() && a.module().funcs == b.module().funcs && a.trace() == b.trace();
}

}  // namespace

bool TryStep(Schedule* schedule, const TraceStep& step, Counts* counts) {
  Schedule next = *schedule;
  try {
    if (Schedule::IsChoice(step.primitive)) {
      Schedule::Steps::ReplayChoice(next, step);
    } else {
      const primitive::PrimitiveRow* row = primitive::FindPrimitive(step.primitive);
      TN_CHECK(row, "{} is no primitive", step.primitive);
      Schedule::Steps::Apply(next, row->name, step.args, 0);
    }
  } catch (const InternalError& error) {
    throw Finding(Schedule::Steps::Heading(step.primitive, step.args) + " throws " + error.what());
  }
  const bool legal = next.ok();
  if (counts != nullptr) {
    Counts::Row& row = counts->primitives[step.primitive];
    ++(legal ? row.applied : row.refused);
  }
  if (legal) {
    *schedule = std::move(next);
    return true;
  }
  CheckRefusal(step, next.status().errors(), counts);
  if (!SameState(*schedule, next)) {
    throw Finding(Schedule::Steps::Heading(step.primitive, step.args) +
                  " is refused, but has changed something");
  }
  return false;
}

Schedule RandomSchedule(const Subject& subject, Random& random, const MoveOptions& options,
                        Counts* counts) {
  Schedule schedule(subject.module, kFunction);
  const auto steps =
      static_cast<size_t>(Between(random, 3, static_cast<int64_t>(options.most_steps)));
  for (size_t tries = 0; tries < 5 * options.most_steps; ++tries) {
    if (schedule.trace().steps.size() >= steps) break;
    Mover mover(&schedule, random, options, counts);
    if (!mover.CanMove() || mover.IsLarge()) break;
    try {
      mover.Move();
    } catch (const Finding& finding) {
      throw Finding(std::string(finding.what()) + "\n" + schedule.trace().ToString() +
                    Print(subject.module));
    }
  }
  return schedule;
}

namespace {

using Steps = std::vector<TraceStep>;

// The last step is refused after the others, with that in its message.
bool IsRefused(const Subject& subject, const Steps& steps, const std::string& part) {
  Schedule schedule(subject.module, kFunction);
  Counts counts;
  for (const TraceStep& step : steps) {
    counts.last_refusal.clear();
    const bool legal = TryStep(&schedule, step, &counts);
    if (!legal && &step != &steps.back()) return false;
  }
  return counts.last_refusal.find(part) != std::string::npos;
}

std::string AsCase(const Subject& subject, Steps steps, const std::string& part) {
  for (size_t i = steps.size() - 1; i-- > 0;) {
    Steps fewer = steps;
    fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
    if (IsRefused(subject, fewer, part)) steps = fewer;
  }
  // With the results that a trace must give.
  Schedule schedule(subject.module, kFunction);
  for (const TraceStep& step : steps) TryStep(&schedule, step, nullptr);
  std::string out;
  for (const TraceStep& step : schedule.trace().steps) out += "//> " + step.ToString() + "\n";
  return out + "//> ! " + steps.back().ToString() + "\n" + Print(subject.module);
}

}  // namespace

std::string RefusalWith(const std::string& part, uint64_t seed, uint64_t count) {
  std::string best;
  int found = 0;
  for (uint64_t s = seed; s < seed + count && found < 12; ++s) {
    Random random(s);
    const Subject subject = RandomSubject(random);
    Schedule schedule(subject.module, kFunction);
    for (int tries = 0; tries < 60; ++tries) {
      Counts counts;
      Mover mover(&schedule, random, {}, &counts);
      if (!mover.CanMove() || mover.IsLarge()) break;
      mover.Move();
      if (counts.last_refusal.find(part) == std::string::npos) continue;
      Steps steps = schedule.trace().steps;
      steps.push_back(mover.last_refused());
      if (!IsRefused(subject, steps, part)) continue;
      const std::string text = AsCase(subject, steps, part);
      if (best.empty() || text.size() < best.size()) best = text;
      ++found;
      break;
    }
  }
  return best;
}

std::vector<std::string> PrimitivesWithoutMove() {
  std::vector<std::string> out;
  for (const std::string& name : primitive::PrimitiveNames()) {
    if (!Mover::HasMove(name)) out.push_back(name);
  }
  return out;
}

}  // namespace tenon::fuzz

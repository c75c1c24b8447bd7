#include "fuzz/schedule/reduce.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "fuzz/schedule/moves.h"
#include "loop/print.h"

namespace tenon::fuzz {

namespace {

using Steps = std::vector<TraceStep>;

// What of the steps is legal in turn; `finding`: whether one of them was a finding by itself.
Schedule Apply(const Subject& subject, const Steps& steps, bool* finding) {
  Schedule schedule(subject.module, kFunction);
  try {
    for (const TraceStep& step : steps) TryStep(&schedule, step, nullptr);
  } catch (const Finding&) {
    *finding = true;
  }
  return schedule;
}

bool FailsHere(const Subject& subject, const Steps& steps, const FailsFn& fails) {
  bool finding = false;
  const Schedule schedule = Apply(subject, steps, &finding);
  return finding || fails(subject, schedule);
}

bool FailsApart(const Subject& subject, const Steps& steps, const FailsFn& fails) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(3);
    _exit(FailsHere(subject, steps, fails) ? 1 : 0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status != 0;
}

}  // namespace

std::string Reduced(const Subject& subject, const Trace& trace, const FailsFn& fails, bool apart) {
  const auto fails_alone = apart ? FailsApart : FailsHere;
  Steps steps;
  size_t length = 0;
  for (; length <= trace.steps.size(); ++length) {
    steps.assign(trace.steps.begin(), trace.steps.begin() + static_cast<ptrdiff_t>(length));
    if (fails_alone(subject, steps, fails)) break;
  }
  std::string out;
  if (length > trace.steps.size()) out = "// not alone: the steps of the seed\n";
  for (size_t i = steps.size(); i-- > 0 && length <= trace.steps.size();) {
    Steps fewer = steps;
    fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
    if (fails_alone(subject, fewer, fails)) steps = fewer;
  }
  bool finding = false;
  const Trace smallest = Apply(subject, steps, &finding).trace();
  for (const TraceStep& step : finding ? steps : smallest.steps) {
    out += "//> " + step.ToString() + "\n";
  }
  return out + Print(subject.module);
}

}  // namespace tenon::fuzz

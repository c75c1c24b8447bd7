// Random schedules of all kinds of kernels: whatever is accepted must mean the same, whatever is
// refused must say why. Values are small integers, exact in any order of additions also as floats.
//
//   schedule_fuzz [--seed N] [--count N] [--through interp,llvm,c] …
//   schedule_fuzz --gpu [--through interp,opencl] …     kernels of a GPU: threads, their memory
//   schedule_fuzz --meet …                              and launches whose blocks meet
//   schedule_fuzz --gpu --through cuda --out FOLDER …   their libraries, for replay.py on a machine
//                                                       with a GPU (--target: another one's)
//
// A finding is shown with its seed, the steps that are needed for it and the function, as the text
// of a case for test/text/schedule. `--seed N --count 1` does one again.
#include <fmt/format.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "fuzz/schedule/check.h"
#include "fuzz/schedule/compiled.h"
#include "fuzz/schedule/moves.h"
#include "fuzz/schedule/recorded.h"
#include "fuzz/schedule/reduce.h"
#include "loop/print.h"
#include "support/check.h"
#include "support/opencl_code.h"

namespace tenon::fuzz {

namespace {

constexpr int kSkipped = 77;
constexpr int64_t kMostSeconds = 30;  // of processor time, for one schedule or one compiler's run

struct Options {
  uint64_t seed = 20261122, count = 2000, findings = 10;
  std::vector<std::string> through = {"interp"}, compilers = {TENON_CC " -O1", "gcc -O1"};
  size_t batch = 100;
  bool gpu = false, meet = false;
  std::string out, target = "cuda -arch=sm_90 -host=llvm -mcpu=x86-64";  // of what is recorded
  bool show = false, reasons = false, verbose = false, expect_all = false;
};

bool Has(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// The schedule that a seed makes, with what it is compared with.
struct Sequence {
  Subject subject;
  std::vector<Run> runs;
  Schedule schedule;
};

Sequence MakeSequence(uint64_t seed, const Options& options, Counts* counts) {
  Random random(seed);
  Subject subject = RandomSubject(random);
  MoveOptions moves;
  moves.gpu = options.gpu;
  moves.meet = options.meet;
  moves.threads = options.gpu || seed % 8 == 0;
  Schedule schedule = RandomSchedule(subject, random, moves, counts);
  return {subject, RunsOf(subject), std::move(schedule)};
}

uint64_t working_seed = 0;

// A crash ends the run, but not without saying whose it is.
void OnSignal(int number) {
  const uint64_t seed = RunningSeed() != 0 ? RunningSeed() : working_seed;
  char text[160];
  const int size = std::snprintf(text, sizeof(text), "\nsignal %d%s in --seed %llu --count 1%s\n",
                                 number, number == SIGPROF ? " (it takes too long)" : "",
                                 static_cast<unsigned long long>(seed),
                                 RunningSeed() != 0 ? ", its compiled code" : "");
  if (write(STDERR_FILENO, text, static_cast<size_t>(size)) < 0) _exit(3);
  _exit(2);
}

void Watch() {
  static std::array<char, 1 << 16> stack;  // for when the other one is full
  stack_t own{};
  own.ss_sp = stack.data();
  own.ss_size = stack.size();
  sigaltstack(&own, nullptr);
  struct sigaction action{};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_ONSTACK;
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGPROF}) {
    sigaction(number, &action, nullptr);
  }
}

void StartClock() {
  itimerval limit{};
  limit.it_value.tv_sec = kMostSeconds;
  setitimer(ITIMER_PROF, &limit, nullptr);
}

class Fuzzer {
 public:
  explicit Fuzzer(Options options)
      : options_(std::move(options)),
        llvm_(Has(options_.through, "llvm")),
        c_(Has(options_.through, "c")),
        opencl_(Has(options_.through, "opencl")),
        cuda_(Has(options_.through, "cuda")) {}

  int Run() {
    for (uint64_t seed = options_.seed; Done() < options_.count; ++seed) {
      One(seed);
      if (units_.size() >= options_.batch) Compile();
      if (findings_ >= options_.findings) break;
    }
    Compile();
    return Report();
  }

 private:
  // Those that no processor runs are not counted where code is asked for.
  size_t Done() const { return Compiles() ? compiled_ + units_.size() + findings_ : tried_; }
  bool Compiles() const { return llvm_ || c_ || opencl_ || cuda_; }
  Target CodeTarget() const {
    if (cuda_) return Target::Parse(options_.target).value();
    if (options_.meet) return Target::Parse("cuda -arch=null -host=llvm -mcpu=x86-64").value();
    if (options_.gpu) return test::OpenClTarget();
    return c_ ? Target::Parse("c").value() : Target::Host();
  }

  void One(uint64_t seed) {
    working_seed = seed;
    StartClock();
    Sequence sequence{{}, {}, Schedule({}, kFunction)};
    try {
      ++tried_;
      sequence = MakeSequence(seed, options_, &counts_);
      steps_ += sequence.schedule.trace().steps.size();
      if (options_.show) {
        fmt::print("{}{}", sequence.schedule.trace().ToString(), Print(sequence.schedule.module()));
      }
      Check(seed, sequence);
    } catch (const TooLong&) {
      ++too_long_;
    } catch (const Finding& finding) {
      Show(seed, finding.what());
    } catch (const std::exception& error) {
      Show(seed, error.what());
    }
  }

  void Check(uint64_t seed, const Sequence& s) {
    CheckForm(s.subject, s.schedule);
    CheckMeaning(s.schedule, s.runs, seed);
    const std::string name = fmt::format("f{}", seed);
    std::optional<Module> lowered = Lowered(s.schedule, CodeTarget(), name);
    if (!lowered) return;
    ++lowered_;
    CheckLowered(*lowered, name, s.schedule, s.runs, 1 + static_cast<int>(seed % 3), seed);
    if (!Compiles()) return;
    units_.push_back({seed, name, s.schedule.func(), *lowered, s.runs, {}});
    if (!cuda_) return;
    units_.back().exported = Exported(s.schedule, CodeTarget(), name);
    if (!CanBeCalled(units_.back(), CodeTarget())) units_.pop_back();
  }

  void Compile() {
    StartClock();
    std::vector<Found> found;
    if (llvm_) found = RunByLlvm(units_, Target::Host());
    if (c_) {
      for (Found& f : RunByC(units_, Target::Parse("c").value(), options_.compilers)) {
        found.push_back(std::move(f));
      }
    }
    size_t left_out = 0;
    if (opencl_) found = RunByOpenCl(units_, CodeTarget(), &left_out);
    if (cuda_) found = RecordBatch();
    compiled_ += units_.size() - left_out;
    units_.clear();
    for (const Found& f : found) Show(f.seed, f.what);
  }

  std::vector<Found> RecordBatch() {
    return Record(units_, CodeTarget(), options_.out, fmt::format("{:03}", batches_++));
  }

  void Show(uint64_t seed, const std::string& what) {
    ++findings_;
    fmt::print("\n--seed {} --count 1: {}\n", seed, what);
    auto fails = [&](const Subject& subject, const Schedule& schedule) {
      return Fails(seed, {subject, RunsOf(subject), schedule});
    };
    try {
      Counts none;
      Sequence s = MakeSequence(seed, options_, &none);
      fmt::print("{}", Reduced(s.subject, s.schedule.trace(), fails, !opencl_));
    } catch (const std::exception& error) {
      fmt::print("(no smaller one: {})\n", error.what());
    }
    std::fflush(stdout);
  }

  // Whether this, alone, is a finding too.
  bool Fails(uint64_t seed, const Sequence& s) {
    Fuzzer alone(options_);
    StartClock();
    try {
      alone.Check(seed, s);
    } catch (const TooLong&) {
      return false;
    } catch (const std::exception&) {
      return true;
    }
    if (alone.llvm_ && !RunByLlvm(alone.units_, Target::Host()).empty()) return true;
    size_t left_out = 0;
    if (cuda_) {
      return !Record(alone.units_, CodeTarget(), options_.out, "alone").empty();
    }
    if (opencl_ && !RunByOpenCl(alone.units_, CodeTarget(), &left_out).empty()) return true;
    return alone.c_ &&
           !RunByC(alone.units_, Target::Parse("c").value(), options_.compilers).empty();
  }

  int Report() {
    fmt::print("seed {}: {} schedules, {} steps", options_.seed, tried_, steps_);
    fmt::print(", {} lowered", lowered_);
    if (Compiles()) {
      const char* by = opencl_ ? "OpenCL" : cuda_ ? "libraries" : c_ ? "C" : "LLVM";
      fmt::print(", {} compiled through {}", compiled_, by);
    }
    if (too_long_ > 0) fmt::print(", {} left as they take too long", too_long_);
    fmt::print("; {} findings\n", findings_);
    bool complete = true;
    for (const std::string& name : PrimitivesWithoutMove()) {
      fmt::print("{} is a primitive that nobody tries\n", name);
      complete = false;
    }
    for (const auto& [name, row] : counts_.primitives) {
      if (options_.verbose) {
        fmt::print("  {:<24} {:>9} legal {:>9} refused\n", name, row.applied, row.refused);
      }
      if (!options_.expect_all || (row.applied > 0 && row.refused > 0)) continue;
      fmt::print("{}: {} legal and {} refused steps, expected both\n", name, row.applied,
                 row.refused);
      complete = false;
    }
    if (options_.reasons) {
      for (const auto& [reason, count] : counts_.reasons) {
        fmt::print("{:>8}  {}\n", count, reason);
      }
    }
    return findings_ == 0 && complete ? 0 : 1;
  }

  Options options_;
  bool llvm_, c_, opencl_, cuda_;
  int batches_ = 0;
  Counts counts_;
  std::vector<Unit> units_;
  size_t tried_ = 0, lowered_ = 0, compiled_ = 0, steps_ = 0, too_long_ = 0, findings_ = 0;
};

}  // namespace

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Random schedules of all kinds of kernels, checked for their meaning.");
  app.add_option("--seed", options.seed, "the first of the seeds")->capture_default_str();
  app.add_option("--count", options.count, "how many seeds")->capture_default_str();
  app.add_option("--through", options.through, "interp, and llvm or c; or opencl; or cuda")
      ->delimiter(',');
  auto* out =
      app.add_option("--out", options.out, "for cuda: where libraries go, a folder that is");
  out->check(CLI::ExistingDirectory);
  app.add_option("--target", options.target, "for cuda: what they are for")->capture_default_str();
  app.add_flag("--gpu", options.gpu, "schedules of kernels of a GPU");
  app.add_flag("--meet", options.meet, "those, and launches whose blocks wait for each other");
  app.add_option("--compiler", options.compilers, "command lines for C")->capture_default_str();
  app.add_option("--findings", options.findings, "stop after so many")->capture_default_str();
  app.add_option("--batch", options.batch, "schedules per object")->capture_default_str();
  std::vector<std::string> refusals;
  app.add_option("--refusal", refusals, "show a small case of a refusal that says this");
  app.add_flag("--reasons", options.reasons, "list what refusals said");
  app.add_flag("--all-primitives", options.expect_all,
               "fail where one was never legal, or never refused");
  app.add_flag("--show", options.show, "print each schedule and what it makes of the function");
  app.add_flag("-v,--verbose", options.verbose, "list how often each primitive was legal");
  CLI11_PARSE(app, argc, argv);
  setenv("TENON_NUM_THREADS", "3", 0);
  if (options.meet) options.gpu = true;
  if (Has(options.through, "cuda")) {
    options.gpu = true;
    if (options.out.empty()) throw std::runtime_error("--through cuda needs --out");
  }
  if (Has(options.through, "opencl")) {
    options.gpu = true;
    const std::string why = test::WithoutOpenCl();
    if (!why.empty()) fmt::print("skipped: {}\n", why);
    if (!why.empty()) return kSkipped;
  }
  Watch();
  for (const std::string& part : refusals) {
    fmt::print("// {}\n{}\n", part, RefusalWith(part, options.seed, options.count));
  }
  if (!refusals.empty()) return 0;
  fmt::print("schedule_fuzz --seed {} --count {}\n", options.seed, options.count);
  std::fflush(stdout);
  return Fuzzer(options).Run();
}

}  // namespace tenon::fuzz

int main(int argc, char** argv) {
  try {
    return tenon::fuzz::Main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}

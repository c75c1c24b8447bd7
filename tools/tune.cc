// tenon tune MODEL --log FILE
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

#include "compile_arguments.h"
#include "console.h"
#include "driver/tune.h"
#include "guard.h"
#include "numbers.h"
#include "support/file.h"
#include "tune_function.h"
#include "tune_table.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

struct Arguments {
  CompileArguments how;
  driver::TuneOptions options;
  std::string time_limit, worker_limit = "30s", worker_memory = "4G";
  double stop_gain = -1;  // percent; negative: nobody said
  std::string searcher = "improvement", trace, hints;
  bool json = false, quiet = false;
};

std::atomic<bool> interrupted = false;

// The first asks for an end, the second ends at once: whatever is in the log stays there.
void OnInterrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
}

Status Finish(Arguments* args) {
  driver::TuneOptions& o = args->options;
  TN_RETURN_IF_ERROR(args->how.Finish());
  o.how = args->how.options;
  o.log = std::exchange(o.how.log, "");
  if (o.log.empty()) return MakeError("where do records go? expected --log FILE");
  if (!args->time_limit.empty()) {
    TN_ASSIGN_OR_RETURN(o.session.seconds, ParseSeconds(args->time_limit));
  }
  if (!args->hints.empty()) {
    TN_ASSIGN_OR_RETURN(const std::string lines, ReadFile(args->hints));
    o.session.hints = tune::ParseAutotvmLog(lines, args->hints);
  }
  TN_ASSIGN_OR_RETURN(o.worker_seconds, ParseSeconds(args->worker_limit));
  TN_ASSIGN_OR_RETURN(o.worker_bytes, ParseBytes(args->worker_memory));
  // Who gives no number wants an end all the same.
  const bool is_bounded = o.session.trials > 0 || o.session.seconds > 0;
  if (args->stop_gain >= 0) {
    o.session.stop_gain = args->stop_gain / 100;
  } else if (!is_bounded) {
    o.session.stop_gain = 0.01;
  }
  return Ok();
}

TuneTable::Form FormOf(const Arguments& args) {
  if (args.json) return TuneTable::Form::kJson;
  return args.quiet ? TuneTable::Form::kSummary : TuneTable::Form::kLive;
}

int TuneFunction(const Arguments& args, const Common& common) {
  const driver::TuneOptions& o = args.options;
  FunctionTuning how{
      .how = o.how, .log = o.log, .trace = args.trace, .json = args.json, .quiet = args.quiet};
  how.tuning.searcher = args.searcher;
  static_cast<tune::Limits&>(how.tuning.session) = o.session;
  how.tuning.jobs = o.how.jobs;
  // Who gives no number wants an end all the same.
  if (how.tuning.session.trials == 0 && how.tuning.session.seconds == 0)
    how.tuning.session.trials = 64;
  how.tuning.session.bench.race_seconds = o.session.race_seconds;
  how.tuning.worker = {
      .program = o.worker, .most_bytes = o.worker_bytes, .time_limit = o.worker_seconds};
  const Status status = TuneLoopText(how, interrupted);
  return status ? kDone : Report(InFile(status.errors(), o.how.model), common);
}

int Tune(Arguments& args, const Common& common) {
  if (Status status = Finish(&args); !status) return ReportUsage(status.errors(), common);
  std::signal(SIGINT, OnInterrupt);
  Report(args.options.session.hints.skipped, common);
  if (IsLoopText(args.options.how.model)) return TuneFunction(args, common);
  TuneTable table(FormOf(args), args.options.session.trials, args.options.session.seconds);
  args.options.changed = [&](const tune::SessionState& state) { table.Show(state); };
  Expected<driver::TuneReport> report = driver::Tune(args.options, interrupted);
  table.Clear();
  if (!report) return Report(InFile(std::move(report.errors()), args.options.how.model), common);
  table.PrintSummary(*report, args.options.log);
  return kDone;
}

}  // namespace

Run AddTune(CLI::App& app, const Common& common) {
  auto args = std::make_shared<Arguments>();
  tune::SessionOptions& session = args->options.session;
  CLI::App* verb =
      app.add_subcommand("tune", "measure kernels of a model on this machine, into a log");
  verb->footer(
      "Examples:\n"
      "  tenon tune model.onnx --log tuning.log --time-limit 5m\n"
      "  tenon compile model.onnx -o model.so --log tuning.log\n"
      "What a log knows is not measured again; ctrl-C ends with the best so far. Without a limit "
      "it\n"
      "ends where less than 1 % is expected of more. docs/tuning.md has the whole story.");
  verb->add_option("model", args->how.options.model,
                   "an ONNX file, a graph's text, or a function of loop IR")
      ->required();
  const char* group = "How long";
  verb->add_option("--trials", session.trials, "at most so many candidates, failures included")
      ->group(group)
      ->check(AtLeast(1));
  verb->add_option("--time-limit", args->time_limit, "at most so long, as 30s or 5m")->group(group);
  verb->add_option("--early-stopping", session.early_stopping,
                   "end after so many trials in a row without a better kernel")
      ->group(group)
      ->check(AtLeast(1));
  verb->add_option("--stop-gain", args->stop_gain,
                   "end where less than so many percent of the whole are expected of more")
      ->group(group)
      ->check(AtLeast(0));
  verb->add_option("--hints", args->hints,
                   "a log of AutoTVM 0.2: what was good there is tried first")
      ->group(group);
  const char* function = "Of a function of loop IR";
  verb->add_option("--searcher", args->searcher, "what says which point comes next")
      ->group(function)
      ->check(CLI::IsMember(tune::SearcherNames()))
      ->capture_default_str();
  verb->add_option("--trace", args->trace, "takes the best schedule, for tenon-opt --replay")
      ->group(function);
  const char* measuring = "Measuring";
  verb->add_option("--candidate-time", session.race_seconds,
                   "seconds for timing one candidate, at most")
      ->group(measuring)
      ->check(AtLeast(0.01))
      ->capture_default_str();
  verb->add_option("--finals", session.finals,
                   "at the end the best so many points of each kernel, what led, and the first "
                   "choice race once more, against the best; --json has the ratios")
      ->group(measuring)
      ->check(AtLeast(0));
  verb->add_option("--exhaustive", session.exhaustive,
                   "instead of searching, try all points of each kernel where they are no more "
                   "than this; else so many, a quarter of them the best predicted and the others "
                   "of all structures, and then the neighbours of the best")
      ->group(measuring)
      ->check(AtLeast(1));
  verb->add_option("--neighbours-of", session.neighbours_of,
                   "with --exhaustive: how many of the best these are; 0: there are none")
      ->group(measuring)
      ->check(AtLeast(0))
      ->capture_default_str();
  verb->add_option("--worker-time", args->worker_limit,
                   "a candidate that has not answered after so long has failed")
      ->group(measuring)
      ->capture_default_str();
  verb->add_option("--worker-memory", args->worker_memory, "of the process that measures")
      ->group(measuring)
      ->capture_default_str();
  args->how.AddTo(verb);
  verb->get_option("--log")
      ->description(
          "where records go (required); made where it is not there, and what it knows is "
          "not measured again")
      ->group("What to write");
  verb->add_flag("--json", args->json, "a JSON object for each trial, and one at the end");
  verb->add_flag("-q,--quiet", args->quiet, "the summary only");
  return [args, &common] { return Tune(*args, common); };
}

}  // namespace tenon::tools

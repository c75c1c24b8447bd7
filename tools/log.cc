// tenon log ACTION FILE: looking at logs of tuning, and putting them together.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "console.h"
#include "log_text.h"
#include "numbers.h"
#include "tune/log.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

struct Arguments {
  std::string action, file;
  std::vector<std::string> others;
  int64_t keep = 8;
  bool json = false;
};

Expected<int> Merge(const Arguments& args, const Common& common) {
  if (args.others.empty()) return MakeError("merge: expected the logs to take records from");
  // All are read first: a log is not changed for the sake of one that cannot be read.
  std::vector<tune::LogContents> contents;
  for (const std::string& other : args.others) {
    TN_ASSIGN_OR_RETURN(tune::LogContents c, tune::ReadLog(other));
    contents.push_back(std::move(c));
  }
  TN_ASSIGN_OR_RETURN(tune::Log log, tune::Log::Open(args.file));
  for (size_t i = 0; i < contents.size(); ++i) {
    TN_ASSIGN_OR_RETURN(const int64_t added, log.Merge(contents[i]));
    Print("{}: {} of {} records are new\n", args.others[i], added, contents[i].records.size());
    Report(contents[i].skipped, common);
  }
  return kDone;
}

// The best of each kernel in each of its circumstances, and what is not to be tried again.
Expected<int> Prune(const Arguments& args) {
  // Opening makes what is not there, which is for those who write.
  TN_RETURN_IF_ERROR(tune::ReadLog(args.file));
  TN_ASSIGN_OR_RETURN(tune::Log log, tune::Log::Open(args.file));
  TN_ASSIGN_OR_RETURN(const tune::LogContents contents, log.Read());
  std::map<std::string, std::vector<const tune::Record*>> groups;
  std::set<std::string> keep;
  for (const tune::Record& r : contents.records) {
    if (r.algorithm == tune::kNetwork || r.algorithm == tune::kFusion) {
      keep.insert(r.id);
    } else if (r.outcome == tune::kOk) {
      groups[fmt::format("{} {} {} {} {}", r.kernel, r.machine, r.team, r.cache, r.target)]
          .push_back(&r);
    } else if (r.outcome != tune::kStarted || tune::IsAlive(r.owner)) {
      keep.insert(r.id);
    }
  }
  for (auto& [key, records] : groups) {
    std::stable_sort(records.begin(), records.end(), [](const auto* a, const auto* b) {
      if (a->leader != b->leader) return a->leader;
      return a->seconds < b->seconds;
    });
    const auto most = std::min(records.size(), static_cast<size_t>(args.keep));
    for (size_t i = 0; i < most; ++i) keep.insert(records[i]->id);
  }
  TN_ASSIGN_OR_RETURN(const int64_t removed, log.KeepOnly(keep));
  Print("{}: {} records removed, {} kept\n", args.file, removed, keep.size());
  return kDone;
}

Expected<int> LogAction(const Arguments& args, const Common& common) {
  if (args.action == "merge") return Merge(args, common);
  if (!args.others.empty()) return MakeError(args.action + ": expected one file");
  if (args.action == "prune") return Prune(args);
  TN_ASSIGN_OR_RETURN(const tune::LogContents contents, tune::ReadLog(args.file));
  if (args.action == "export") {
    WriteOut(tune::ToLines(contents));
  } else if (args.action == "best") {
    PrintBest(contents, args.json);
  } else {
    PrintLog(contents, args.json);
  }
  FlushOutput();
  return contents.skipped.empty() ? kDone : Report(contents.skipped, common);
}

}  // namespace

Run AddLog(CLI::App& app, const Common& common) {
  auto args = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("log", "look at logs of tuning, and put them together");
  verb->footer(
      "Actions:\n"
      "  show FILE            what it holds: kernels, trials, failures\n"
      "  best FILE            the best point of each kernel\n"
      "  export FILE          as lines of JSON on standard output, which every action reads, too\n"
      "  merge INTO FROM …    adds the records that are not there yet; INTO is made if need be\n"
      "  prune FILE           keeps the best of each kernel, and what is not to be tried again");
  verb->add_option("action", args->action, "what to do")
      ->required()
      ->check(CLI::IsMember({"show", "best", "export", "merge", "prune"}));
  verb->add_option("file", args->file, "a log")->required();
  verb->add_option("from", args->others, "merge: logs, or lines of JSON");
  verb->add_option("--keep", args->keep, "prune: records of a kernel")
      ->check(AtLeast(1))
      ->capture_default_str();
  verb->add_flag("--json", args->json, "show and best: print one JSON object instead");
  return [args, &common]() -> int {
    Expected<int> status = LogAction(*args, common);
    return status ? *status : Report(status.errors(), common);
  };
}

}  // namespace tenon::tools

// The verbs of `tenon`: each adds its subcommand and returns what runs when it is chosen.
#pragma once

#include <functional>
#include <string>

#include "cli.h"
#include "support/diagnostic.h"

namespace tenon::tools {

/// Exit statuses that users script against.
enum ExitStatus {
  kDone = 0,
  kInputAtFault = 1,
  kWrongUsage = 2,
  kResultsDiffer = 3,
  kBug = 4,
  kLimitHit = 5
};

/// Options of every verb.
struct Common {
  bool verbose = false;
  std::string error_format = "text";
};

using Run = std::function<int()>;

/// Prints diagnostics to stderr as the user asked; returns the exit status that they call for.
int Report(const Diagnostics& diagnostics, const Common& common);

/// The same of wrong usage: returns kWrongUsage.
int ReportUsage(const Diagnostics& diagnostics, const Common& common);

/// Says of errors that name a file in their message that they are about it.
Diagnostics InFile(Diagnostics errors, const std::string& file);

Run AddCompile(CLI::App& app, const Common& common);
Run AddRun(CLI::App& app, const Common& common);
Run AddBench(CLI::App& app, const Common& common);
Run AddTune(CLI::App& app, const Common& common);
Run AddLog(CLI::App& app, const Common& common);
Run AddDoctor(CLI::App& app, const Common& common);
Run AddReport(CLI::App& app, const Common& common);
Run AddInspect(CLI::App& app, const Common& common);
Run AddReduce(CLI::App& app, const Common& common);
Run AddCache(CLI::App& app, const Common& common);

}  // namespace tenon::tools

#include "driver/tune.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>

#include "driver/check_options.h"
#include "driver/functions.h"
#include "driver/graph_pipeline.h"
#include "driver/source.h"
#include "graph/pass/constants.h"
#include "graph/text.h"
#include "measure/worker_process.h"
#include "support/deep_stack.h"
#include "support/file.h"
#include "tune/log.h"

namespace tenon::driver {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderPrefix = "tenon-tune.";

/// A folder for the libraries of a session; gone with it. Those of sessions that were killed are
/// removed by the next one.
class SessionFolder {
 public:
  static Expected<SessionFolder> Make() {
    std::error_code fault;
    const fs::path parent = fs::temp_directory_path(fault);
    if (fault) return MakeError("there is no folder for temporary files: " + fault.message());
    RemoveLeftovers(parent);
    const fs::path path = parent / fmt::format("{}{}", kFolderPrefix, getpid());
    fs::create_directory(path, fault);
    if (fault)
      return MakeError(
          fmt::format("cannot make the folder '{}': {}", path.string(), fault.message()));
    return SessionFolder(path);
  }
  SessionFolder(SessionFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  SessionFolder& operator=(SessionFolder&&) = delete;
  ~SessionFolder() {
    std::error_code none;
    if (!path_.empty()) fs::remove_all(path_, none);
  }
  std::string path() const { return path_; }

 private:
  explicit SessionFolder(fs::path path) : path_(std::move(path)) {}

  static void RemoveLeftovers(const fs::path& parent) {
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(parent, none)) {
      const std::string name = entry.path().filename();
      if (!name.starts_with(kFolderPrefix)) continue;
      pid_t process = 0;
      const char* end = name.data() + name.size();
      const auto [rest, fault] = std::from_chars(name.data() + kFolderPrefix.size(), end, process);
      if (fault != std::errc() || rest != end || process <= 0) continue;
      if (kill(process, 0) != 0 && errno == ESRCH) fs::remove_all(entry.path(), none);
    }
  }

  fs::path path_;
};

bool IsGraphText(const std::string& path) {
  const Expected<MappedFile> file = MappedFile::Open(path);
  return file && file->text().starts_with("graph @");
}

Expected<std::vector<graph::Graph>> ReadGraphs(const CompileOptions& how) {
  if (IsGraphText(how.model)) {
    TN_ASSIGN_OR_RETURN(const std::string text, ReadFile(how.model));
    TN_ASSIGN_OR_RETURN(graph::Graph g, graph::Parse(text, how.model));
    return std::vector<graph::Graph>{std::move(g)};
  }
  TN_ASSIGN_OR_RETURN(graph::Program program, ImportModel(how));
  return std::move(program.parts);
}

// Code is measured where it runs.
Status CheckRunsHere(const Target& target) {
  const Target host = Target::Host();
  if (target.IsDevice() || target.kind().name != host.kind().name || target.arch() != host.arch() ||
      target.IsContained()) {
    return MakeError(fmt::format(
        "only code for CPUs of this machine is measured: expected a target llvm, but got '{}'",
        target.ToString()));
  }
  const std::vector<std::string> missing = target.MissingOn(host);
  if (missing.empty()) return Ok();
  return MakeError(
      fmt::format("the target has '{}', which this machine lacks: its code cannot be "
                  "measured here",
                  missing[0]));
}

// Whether weights are more than stays near a core from call to call.
bool HasFarWeights(const std::vector<graph::Graph>& graphs, const Machine& machine) {
  int64_t bytes = 0;
  for (const graph::Graph& g : graphs) {
    for (const graph::Value& v : g.values) {
      if (v.IsConstant()) bytes += static_cast<int64_t>(v.payload.bytes().size());
    }
  }
  return machine.memory.size() > 1 && bytes > machine.memory[1].capacity_bytes;
}

Expected<std::string> LibraryOf(const Module& module, const Target& target) {
  TN_ASSIGN_OR_RETURN(const Built built, BuildFunctions(module, {.target = &target}));
  return MakeOutput(built, "so");
}

void Append(tune::Tasks more, tune::Tasks* tasks) {
  for (tune::Task& task : more.tasks) {
    const auto same = std::find_if(tasks->tasks.begin(), tasks->tasks.end(),
                                   [&](const auto& t) { return t.kernel == task.kernel; });
    if (same == tasks->tasks.end()) {
      tasks->tasks.push_back(std::move(task));
    } else {
      same->launches += task.launches;
    }
  }
  for (std::string& why : more.left_out) tasks->left_out.push_back(std::move(why));
}

Expected<TuneReport> TuneHere(const TuneOptions& options, const std::atomic<bool>& stop) {
  TN_ASSIGN_OR_RETURN(const Target target, CheckOptions(options.how));
  TN_RETURN_IF_ERROR(CheckRunsHere(target));
  const Machine machine = Machine::Of(target);
  TN_ASSIGN_OR_RETURN(std::vector<graph::Graph> graphs, ReadGraphs(options.how));
  tune::Tasks tasks;
  for (graph::Graph& g : graphs) {
    TN_ASSIGN_OR_RETURN(g, RunGraphPasses(std::move(g), machine, options.how, nullptr, {}));
    Append(tune::TasksOf(g, machine), &tasks);
  }
  TN_ASSIGN_OR_RETURN(tune::Log log, tune::Log::Open(options.log));
  TN_ASSIGN_OR_RETURN(const SessionFolder folder, SessionFolder::Make());
  tune::SessionOptions session = options.session;
  session.team = machine.workers;
  session.far_weights = HasFarWeights(graphs, machine);
  measure::WorkerProcess worker({.program = options.worker,
                                 .team = session.team,
                                 .most_bytes = options.worker_bytes,
                                 .time_limit = options.worker_seconds});
  const tune::SessionTools tools{
      [&](const Module& module) { return LibraryOf(module, target); },
      [&](const measure::RaceRequest& request) { return worker.Ask(request); }};
  TN_ASSIGN_OR_RETURN(tune::SessionState state,
                      tune::RunSession(tasks.tasks, machine, session, tools, folder.path(), &log,
                                       options.changed, stop));
  return TuneReport{std::move(state), std::move(tasks.left_out), worker.starts()};
}

}  // namespace

Expected<TuneReport> Tune(const TuneOptions& options, const std::atomic<bool>& stop) {
  std::optional<Expected<TuneReport>> report;
  OnDeepStack([&] { report = TuneHere(options, stop); });
  return *std::move(report);
}

}  // namespace tenon::driver

#include "driver/workbench.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <mutex>

#include "driver/functions.h"
#include "support/thread_pool.h"
#include "tune/machine_key.h"

namespace tenon::driver {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderPrefix = "tenon-tune.";

void RemoveLeftovers(const fs::path& parent) {
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, none)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kFolderPrefix)) continue;
    pid_t process = 0;
    const char* end = name.data() + name.size();
    const auto [rest, fault] = std::from_chars(name.data() + kFolderPrefix.size(), end, process);
    const bool is_ours = fault == std::errc() && (rest == end || *rest == '.') && process > 0;
    if (!is_ours) continue;
    if (kill(process, 0) != 0 && errno == ESRCH) fs::remove_all(entry.path(), none);
  }
}

Expected<std::string> MakeFolder() {
  static std::atomic<int> made = 0;
  std::error_code fault;
  const fs::path parent = fs::temp_directory_path(fault);
  if (fault) return MakeError("there is no folder for temporary files: " + fault.message());
  RemoveLeftovers(parent);
  const fs::path path = parent / fmt::format("{}{}.{}", kFolderPrefix, getpid(), ++made);
  fs::create_directory(path, fault);
  if (fault)
    return MakeError(
        fmt::format("cannot make the folder '{}': {}", path.string(), fault.message()));
  return path.string();
}

Expected<std::string> LibraryOf(const Module& module, const Target& target) {
  TN_ASSIGN_OR_RETURN(const Built built, BuildFunctions(module, {.target = &target}));
  return MakeOutput(built, "so");
}

}  // namespace

Status CheckRunsHere(const Target& target) {
  const Target host = Target::Host();
  const Target& cpu = target.Cpu();
  if (cpu.kind().name != host.kind().name || cpu.arch() != host.arch() || cpu.IsContained()) {
    return MakeError(fmt::format(
        "only code that runs on this machine is measured: expected a target llvm, or a device's "
        "with such a host, but got '{}'",
        target.ToString()));
  }
  const std::vector<std::string> missing = cpu.MissingOn(host);
  if (missing.empty()) return Ok();
  return MakeError(
      fmt::format("the target has '{}', which this machine lacks: its code cannot be "
                  "measured here",
                  missing[0]));
}

std::string MachineKeyOf(const Target& target) {
  if (!target.IsDevice()) return tune::MachineKey();
  static std::mutex mutex;
  static std::map<std::string, std::string> keys;  // by kind of device
  const std::string device(target.kind().name);
  const std::lock_guard lock(mutex);
  std::string& key = keys[device];
  if (key.empty()) {
    measure::WorkerProcess worker({});
    const Expected<measure::RaceAnswer> found = worker.Ask({.device = device});
    const bool is_there = found && found->outcome == measure::Outcome::kOk;
    key = tune::DeviceKey(is_there ? found->machine : "no device");
  }
  return key;
}

int64_t TeamOf(const Machine& machine) {
  return machine.target->IsDevice() ? 1 : std::max<int64_t>(1, machine.workers);
}

Workbench::Workbench(const Target& target, const measure::WorkerOptions& worker, int jobs,
                     std::string folder)
    : target_(target), folder_(std::move(folder)), worker_(worker) {
  tools_.build = [this](const Module& module) { return LibraryOf(module, target_); };
  // What this CPU's cores do does not change what a device takes.
  if (target_.IsDevice()) tools_.builders = jobs > 0 ? jobs : AvailableCpus();
  tools_.race = [this](const measure::RaceRequest& request) { return worker_.Ask(request); };
}

Expected<std::string> Workbench::FindDevice() {
  if (!target_.IsDevice()) return std::string();
  TN_ASSIGN_OR_RETURN(const measure::RaceAnswer found,
                      worker_.Ask({.device = std::string(target_.kind().name)}));
  device_ = found.machine;
  if (found.outcome == measure::Outcome::kOk) return std::string();
  tools_.build = [this](const Module& module) -> Expected<std::string> {
    TN_RETURN_IF_ERROR(BuildFunctions(module, {.target = &target_}));
    return std::string("built");
  };
  tools_.race =
      [why = found.message](const measure::RaceRequest& request) -> Expected<measure::RaceAnswer> {
    measure::RaceAnswer answer;
    // Nothing will be compared with what the reference computes.
    if (request.candidate.path.empty()) return answer;
    answer.outcome = measure::Outcome::kError;
    answer.message = why;
    return answer;
  };
  return found.message;
}

Expected<std::unique_ptr<Workbench>> Workbench::Make(const Target& target,
                                                     const measure::WorkerOptions& worker,
                                                     int jobs) {
  TN_ASSIGN_OR_RETURN(std::string folder, MakeFolder());
  return std::unique_ptr<Workbench>(new Workbench(target, worker, jobs, std::move(folder)));
}

Workbench::~Workbench() {
  std::error_code none;
  fs::remove_all(folder_, none);
}

}  // namespace tenon::driver

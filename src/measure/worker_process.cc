#include "measure/worker_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

extern char** environ;

namespace tenon::measure {

namespace {

namespace fs = std::filesystem;

Diagnostic SystemError(const std::string& what, int number) {
  return MakeError(fmt::format("{}: {}", what, std::strerror(number)));
}

RaceAnswer Ended(Outcome outcome, std::string message) {
  RaceAnswer answer;
  answer.outcome = outcome;
  answer.message = std::move(message);
  return answer;
}

// A pipe to a process that may be gone is an error of write(), not a signal.
void IgnoreBrokenPipes() { signal(SIGPIPE, SIG_IGN); }

}  // namespace

Expected<std::string> FindWorker() {
  if (const char* given = std::getenv("TENON_MEASURE"); given && *given) {
    if (access(given, X_OK) == 0) return std::string(given);
    return MakeError(fmt::format("TENON_MEASURE is '{}', which is no program", given));
  }
  std::error_code fault;
  const fs::path self = fs::read_symlink("/proc/self/exe", fault);
  std::vector<fs::path> folders = {self.parent_path()};
  // In other programs, such as Python, from where this code was loaded.
  if (Dl_info here; dladdr(reinterpret_cast<const void*>(&FindWorker), &here) && here.dli_fname) {
    const fs::path library = fs::path(here.dli_fname).parent_path();
    folders.insert(folders.end(), {library, library / "../bin"});
  }
  for (const fs::path& folder : folders) {
    const fs::path beside = folder / "tenon-measure";
    if (access(beside.c_str(), X_OK) == 0) return beside.lexically_normal().string();
  }
  return MakeError(
      fmt::format("the program that measures is not there: neither '{}' nor what TENON_MEASURE "
                  "names",
                  (folders.back() / "tenon-measure").lexically_normal().string()));
}

Status WorkerProcess::Start() {
  IgnoreBrokenPipes();
  std::string program = options_.program;
  if (program.empty()) {
    TN_ASSIGN_OR_RETURN(program, FindWorker());
  }
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0) return SystemError("cannot make a pipe", errno);
  if (pipe2(from, O_CLOEXEC) != 0) {
    const int fault = errno;
    close(to[0]);
    close(to[1]);
    return SystemError("cannot make a pipe", fault);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  std::vector<std::string> words = {program, "--most-bytes", std::to_string(options_.most_bytes)};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> settings = {fmt::format("TENON_NUM_THREADS={}", options_.team)};
  for (char** e = environ; *e; ++e) {
    if (!std::string_view(*e).starts_with("TENON_NUM_THREADS=")) settings.emplace_back(*e);
  }
  std::vector<char*> envp;
  for (std::string& setting : settings) envp.push_back(setting.data());
  envp.push_back(nullptr);
  const int fault =
      posix_spawn(&process_, program.c_str(), &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]);
  close(from[1]);
  to_ = to[1];
  from_ = from[0];
  if (fault != 0) {
    process_ = -1;
    End();
    return SystemError(fmt::format("cannot start the worker '{}'", program), fault);
  }
  ++starts_;
  return Ok();
}

void WorkerProcess::End() {
  for (int* fd : {&to_, &from_}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

bool WorkerProcess::Send(const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(to_, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

Expected<RaceAnswer> WorkerProcess::Ask(const RaceRequest& request) {
  using Clock = std::chrono::steady_clock;
  if (process_ < 0) TN_RETURN_IF_ERROR(Start());
  const double limit =
      request.candidate.path.empty() ? options_.reference_limit : options_.time_limit;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(limit));
  std::string answer;
  bool sent = Send(ToLine(request));
  while (sent && !answer.ends_with('\n')) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) {
      End();
      return Ended(Outcome::kTimeout, fmt::format("no answer within {:g} s", limit));
    }
    pollfd ready{from_, POLLIN, 0};
    const int n = poll(&ready, 1, static_cast<int>(left.count()) + 1);
    if (n <= 0) continue;
    char piece[65536];
    const ssize_t got = read(from_, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    answer.append(piece, static_cast<size_t>(got));
  }
  if (answer.ends_with('\n')) {
    Expected<RaceAnswer> parsed = ParseAnswer(answer);
    // Its memory cannot be trusted any more.
    if (!parsed || parsed->outcome == Outcome::kOutside || parsed->outcome == Outcome::kCrash)
      End();
    return parsed;
  }
  int status = 0;
  close(to_);
  to_ = -1;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  End();
  if (WIFSIGNALED(status))
    return Ended(Outcome::kCrash, fmt::format("the worker ended by signal {} ({})",
                                              WTERMSIG(status), strsignal(WTERMSIG(status))));
  return Ended(Outcome::kCrash,
               fmt::format("the worker ended with status {}", WEXITSTATUS(status)));
}

}  // namespace tenon::measure

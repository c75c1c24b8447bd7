// Random networks, compiled and called, against the interpreter.
//
//   graph_fuzz [--seed N] [--count N] [--jobs N]
//   graph_fuzz --seed N --count 1 --show           one network as text
//   graph_fuzz --only LSTM …                       networks made around one operator
//   graph_fuzz --keep FOLDER …                     for ort_peer.py, which asks ONNX Runtime
//   graph_fuzz --target "cuda -arch=sm_90a" …      on that device, at the level of networks
//
// Each network is checked by a process of its own, so that what crashes or hangs is told like any
// other finding. A finding is shown with its seed and made smaller. In the end there is a table of
// how often each operator was there with each element type (--json: as JSON).
#include <fmt/format.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "frontend/onnx/reduce_model.h"
#include "fuzz/graph/check.h"
#include "fuzz/graph/network.h"
#include "message_gist.h"
#include "support/atomic_file.h"
#include "unit/driver/folder.h"

namespace tenon::fuzz {

namespace {

constexpr int64_t kMostSeconds = 20;  // of processor time, for one network
constexpr const char* kTargets[] = {"llvm", "llvm -mcpu=x86-64", "llvm -mcpu=core-avx2"};

struct Options {
  uint64_t seed = 1, count = 200, least = 0;
  int jobs = 1, steps = 5;
  size_t findings = 20;
  double seconds = 0;
  bool show = false, json = false, refusals = false, verbose = false, no_reduce = false,
       spoil = false, unchecked = false;
  std::string keep, out, only, target;
};

CheckOptions OptionsOf(uint64_t seed, const std::string& folder, const std::string& target) {
  CheckOptions check;
  check.folder = folder;
  check.narrow = seed / 2 % 2 == 1;
  if (!target.empty()) {
    check.levels = {2};
    check.target = target;
    return check;
  }
  check.levels = {static_cast<int>(seed / std::size(kTargets) % 3)};
  if (seed % 10 == 0) check.levels = {0, 1, 2, 3};
  check.target = kTargets[seed % std::size(kTargets)];
  return check;
}

// A process that checks a network; read its answer with Collect.
struct Worker {
  uint64_t seed = 0;
  pid_t pid = 0;
  int from = -1;
};

void StartClock() {
  itimerval limit{};
  limit.it_value.tv_sec = kMostSeconds;
  setitimer(ITIMER_PROF, &limit, nullptr);
}

// `make` gives the network, in the new process.
Worker Start(uint64_t seed, const Options& options, bool keep,
             const std::function<Network()>& make) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::fflush(stdout);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("no process");
  if (pid > 0) {
    close(ends[1]);
    return {seed, pid, ends[0]};
  }
  close(ends[0]);
  StartClock();
  nlohmann::json said;
  {
    const driver::test::Folder folder;
    CheckOptions check = OptionsOf(seed, folder / ".", options.target);
    if (keep) check.keep = options.keep;
    check.spoil = options.spoil;
    const Network network = make();
    // Written first: a crash does not take it along.
    nlohmann::json counts = nlohmann::json::array();
    for (const auto& [key, n] : network.counts) counts.push_back({key.first, key.second, n});
    const std::string head = counts.dump() + "\n";
    if (write(ends[1], head.data(), head.size()) < 0) _exit(3);
    const Checked checked = Check(network, seed, check);
    said = {{"kind", checked.finding.kind},
            {"what", checked.finding.what},
            {"interpreted", checked.interpreted},
            {"calls", checked.calls}};
  }
  const std::string text = said.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (write(ends[1], text.data(), text.size()) < 0) _exit(3);
  _exit(0);
}

struct Collected {
  Checked checked;
  std::map<std::pair<std::string, Elem>, int> counts;
};

Collected Collect(const Worker& worker) {
  std::string text;
  char part[4096];
  for (ssize_t n; (n = read(worker.from, part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(n));
  close(worker.from);
  int status = 0;
  waitpid(worker.pid, &status, 0);
  Collected out;
  const size_t end = text.find('\n');
  if (end != std::string::npos) {
    for (const auto& row : nlohmann::json::parse(text.substr(0, end)))
      out.counts[{row[0], static_cast<Elem>(row[1].get<int>())}] = row[2];
  }
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    out.checked.finding = {number == SIGPROF ? "time" : "crash",
                           fmt::format("signal {} ({})", number, strsignal(number))};
  } else if (WEXITSTATUS(status) != 0 || end == std::string::npos) {
    out.checked.finding = {"crash", fmt::format("exit status {}", WEXITSTATUS(status))};
  } else {
    const nlohmann::json said = nlohmann::json::parse(text.substr(end + 1));
    out.checked = {{said["kind"], said["what"]}, said["interpreted"], said["calls"]};
  }
  return out;
}

bool IsSame(const Finding& a, const Finding& b) {
  if (a.kind != b.kind) return false;
  return a.kind == "difference" || a.kind == "time" ||
         tools::GistOf(a.what) == tools::GistOf(b.what);
}

class Fuzzer {
 public:
  explicit Fuzzer(Options options) : options_(std::move(options)) {}

  int Run() {
    if (options_.unchecked) {
      for (uint64_t i = 0; i < options_.count; ++i, ++networks_) {
        for (const auto& [key, n] : RandomNetwork(options_.seed + i, options_.steps).counts)
          counts_[key] += n;
      }
      return Report(Elapsed());
    }
    std::vector<Worker> running;
    uint64_t next = options_.seed;
    const uint64_t end = options_.seed + options_.count;
    const auto goes_on = [&] { return next < end && shown_ < options_.findings && !TimeIsOver(); };
    while (goes_on() || !running.empty()) {
      while (goes_on() && running.size() < static_cast<size_t>(options_.jobs)) {
        const uint64_t seed = next++;
        if (!options_.only.empty() && SubjectOf(seed).rule->name() != options_.only) continue;
        running.push_back(
            Start(seed, options_, true, [&, seed] { return RandomNetwork(seed, options_.steps); }));
      }
      if (running.empty()) break;  // the last seeds were of other operators
      const Worker worker = running.front();
      running.erase(running.begin());
      Take(worker.seed, Collect(worker));
    }
    return Report(Elapsed());
  }

 private:
  double Elapsed() const { return difftime(time(nullptr), start_); }
  bool TimeIsOver() const { return options_.seconds > 0 && Elapsed() >= options_.seconds; }

  void Take(uint64_t seed, const Collected& c) {
    ++networks_;
    interpreted_ += c.checked.interpreted;
    calls_ += static_cast<size_t>(c.checked.calls);
    const Finding& finding = c.checked.finding;
    if (finding.kind.empty()) {
      for (const auto& [key, n] : c.counts) counts_[key] += n;
      return;
    }
    ++kinds_[finding.kind];
    const bool fresh = gists_[finding.kind + ": " + tools::GistOf(finding.what)]++ == 0;
    const bool is_refusal = finding.kind == "refusal";
    if (is_refusal ? !(options_.refusals && fresh) : !fresh && finding.kind != "difference") return;
    ++shown_;
    fmt::print("\n--seed {} --count 1: {}: {}\n", seed, finding.kind, finding.what);
    if (!options_.no_reduce && !TimeIsOver())
      Reduce(seed, finding);
    else
      Save(seed, RandomNetwork(seed, options_.steps).model);
    std::fflush(stdout);
  }

  // The smallest model that has the finding, as file and text, or the smallest until time is over.
  void Reduce(uint64_t seed, const Finding& finding) {
    Network network = RandomNetwork(seed, options_.steps, true);
    const auto fails = [&](const std::string& model) {
      Network smaller = network;
      smaller.model = model;
      return IsSame(Collect(Start(seed, options_, false, [&] { return smaller; })).checked.finding,
                    finding);
    };
    if (!fails(network.model)) {
      network = RandomNetwork(seed, options_.steps);
      if (!fails(network.model)) return fmt::print("(it did not happen again)\n");
    }
    const Expected<std::string> small = onnx::ReduceModel(
        network.model, [&](const std::string& model) { return !TimeIsOver() && fails(model); });
    if (!small) return fmt::print("(no smaller one: {})\n", ToString(small.errors()));
    fmt::print("{}", onnx::ModelText(*small).value());
    Save(seed, *small);
  }

  void Save(uint64_t seed, const std::string& model) const {
    if (options_.out.empty()) return;
    const std::string path = fmt::format("{}/{}.onnx", options_.out, seed);
    if (WriteFile(path, model)) fmt::print("{}\n", path);
  }

  int Report(double seconds) {
    size_t least = SIZE_MAX, short_of = 0;
    nlohmann::json table = nlohmann::json::object();
    for (const Subject& s : AllSubjects()) {
      const int n = counts_[{s.rule->row(), s.elem}];
      least = std::min(least, static_cast<size_t>(n));
      short_of += static_cast<size_t>(n) < options_.least;
      table[s.rule->row()][InfoOf(s.elem).name] = n;
      if (static_cast<size_t>(n) < options_.least || options_.verbose)
        fmt::print("{:<52} {:<9} {:>6}\n", s.rule->row(), InfoOf(s.elem).name, n);
    }
    if (options_.refusals || options_.verbose) {
      for (const auto& [gist, n] : gists_) fmt::print("{:>6}  {}\n", n, gist);
    }
    if (options_.json) {
      fmt::print("{}\n", nlohmann::json{{"networks", networks_},
                                        {"interpreted", interpreted_},
                                        {"calls", calls_},
                                        {"findings", kinds_},
                                        {"operators", table}}
                             .dump());
    }
    fmt::print(
        "seed {}: {} networks, {} of them interpreted, {} calls in {:.0f} s; {} operators with "
        "their types, each at least {} times",
        options_.seed, networks_, interpreted_, calls_, seconds, AllSubjects().size(), least);
    size_t faults = 0;
    for (const auto& [kind, n] : kinds_) {
      fmt::print("; {}: {}", kind, n);
      if (kind != "refusal" || options_.refusals) faults += n;
    }
    fmt::print("\n");
    return faults == 0 && short_of == 0 ? 0 : 1;
  }

  Options options_;
  time_t start_ = time(nullptr);
  std::map<std::pair<std::string, Elem>, int> counts_;
  std::map<std::string, size_t> kinds_, gists_;
  size_t networks_ = 0, interpreted_ = 0, calls_ = 0, shown_ = 0;
};

}  // namespace

int Main(int argc, char** argv) {
  Options options;
  bool missing = false;
  CLI::App app("Random networks, compiled and called, against the interpreter.");
  app.add_option("--seed", options.seed, "the first of the seeds")->capture_default_str();
  app.add_option("--count", options.count, "how many seeds")->capture_default_str();
  app.add_option("--seconds", options.seconds,
                 "begin nothing after so many, and make findings no smaller");
  app.add_option("--jobs", options.jobs, "processes at a time")->capture_default_str();
  app.add_option("--steps", options.steps, "operators of a network")->capture_default_str();
  app.add_option("--findings", options.findings, "stop after so many")->capture_default_str();
  app.add_option("--least", options.least,
                 "fail where an operator was there less often with a type");
  app.add_option("--keep", options.keep, "a folder for the networks, their inputs and outputs")
      ->check(CLI::ExistingDirectory);
  app.add_option("--target", options.target, "what to compile for, in place of CPUs in turn");
  app.add_option("--only", options.only, "of the seeds those made around this operator");
  app.add_option("--out", options.out, "a folder for the findings' models")
      ->check(CLI::ExistingDirectory);
  app.add_flag("--refusals", options.refusals, "networks that are refused are findings");
  app.add_flag("--no-reduce", options.no_reduce, "show findings as they are");
  app.add_flag("--spoil", options.spoil, "make results wrong: whether the fuzzer finds that");
  app.add_flag("--show", options.show, "print each network as text, and check none");
  app.add_flag("--unchecked", options.unchecked, "make networks and count, check none");
  app.add_flag("--missing", missing,
               "list the importer's operators that no rule makes, and fail where there is one");
  app.add_flag("--json", options.json, "the counts as JSON");
  app.add_flag("-v,--verbose", options.verbose, "the counts as a table");
  CLI11_PARSE(app, argc, argv);
  setenv("TENON_NUM_THREADS", "2", 0);
  if (missing) {
    for (const std::string& name : OperatorsWithoutRule()) fmt::print("{}\n", name);
    return OperatorsWithoutRule().empty() ? 0 : 1;
  }
  for (uint64_t seed = options.seed; options.show && seed < options.seed + options.count; ++seed)
    fmt::print("{}", onnx::ModelText(RandomNetwork(seed, options.steps, true).model).value());
  if (options.show) return 0;
  fmt::print("graph_fuzz --seed {} --count {}\n", options.seed, options.count);
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

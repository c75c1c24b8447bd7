#include "measure/worker.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <tuple>

#include "measure/elements.h"
#include "measure/guarded_memory.h"
#include "measure/operand_memory.h"
#include "measure/paired_test.h"
#include "measure/protocol.h"
#include "support/atomic_file.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/sanitizers.h"
#include "tenon/c_api.h"

namespace tenon::measure {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBurstSeconds = 0.2e-3;
// Workers of one library's team look for work so long after a call; another's must not meet them.
constexpr auto kQuiet = std::chrono::microseconds(120);

Diagnostic CallError() { return MakeError(tn_last_error(nullptr)); }

double SecondsBy(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

int64_t Preemptions() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

/// The elements of a kernel's operands, which all programs of it are called with. A program of
/// other operands, a clock say, has its own.
class Inputs {
 public:
  explicit Inputs(std::string kernel) : kernel_(std::move(kernel)) {}
  const std::string& kernel() const { return kernel_; }

  const std::vector<std::byte>& Of(const Parameter& p, size_t index) {
    std::vector<std::byte>& elements = elements_[{index, p.dtype, p.dims}];
    if (elements.empty())
      elements = MakeElements(p, Hasher().Text(kernel_).Int(index).Finish().low);
    return elements;
  }

  /// The same as the parameter lays them out. Candidates in a row mostly want the same, so one
  /// layout of each operand is kept.
  const std::vector<std::byte>& Laid(const Parameter& p, size_t index, size_t bytes) {
    Layout layout{p.dtype, p.dims, p.shape, p.begin, {}, p.padding};
    for (const StorageTerm& t : p.terms)
      std::get<4>(layout).insert(std::get<4>(layout).end(),
                                 {t.axis, t.divisor, t.modulus, t.stride});
    auto& [known, storage] = laid_[index];
    if (!known || *known != layout || storage.size() != bytes) {
      storage.assign(bytes, std::byte{0});
      Store(p, Of(p, index), storage.data());
      known = std::move(layout);
    }
    return storage;
  }

 private:
  const std::string kernel_;
  using Key = std::tuple<size_t, std::string, std::vector<int64_t>>;
  using Layout = std::tuple<std::string, std::vector<int64_t>, std::vector<int64_t>,
                            std::vector<int64_t>, std::vector<int64_t>, double>;
  std::map<Key, std::vector<std::byte>> elements_;
  std::map<size_t, std::pair<std::optional<Layout>, std::vector<std::byte>>> laid_;  // by operand
};

/// A kernel that is loaded, with operands to call it on.
class LoadedProgram {
 public:
  static Expected<std::unique_ptr<LoadedProgram>> Load(const Program& program, tn_dl_device device,
                                                       Inputs* inputs) {
    std::unique_ptr<LoadedProgram> out(new LoadedProgram(program, device));
    if (tn_module_load(program.path.c_str(), &out->module_) != 0) return CallError();
    if (tn_module_get_function(out->module_, program.function.c_str(), &out->function_) != 0)
      return CallError();
    for (size_t i = 0; i < program.parameters.size(); ++i)
      TN_RETURN_IF_ERROR(out->AddOperand(program.parameters[i], i, inputs));
    return out;
  }
  ~LoadedProgram() {
    for (std::vector<tn_ffi_any>& args : turns_) {
      for (tn_ffi_any& arg : args) tn_value_release(&arg);
    }
    if (module_) tn_module_unload(module_);
  }
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  const std::string& path() const { return program_.path; }

  Status Call(int64_t team) {
    tn_call_options_t options{};
    options.struct_bytes = sizeof options;
    options.max_team = static_cast<int32_t>(team);
    const std::vector<tn_ffi_any>& args = turns_[next_];
    next_ = next_ + 1 == turns_.size() ? 0 : next_ + 1;
    tn_ffi_any result{};
    if (tn_call(function_, &options, args.data(), static_cast<int32_t>(args.size()), &result) != 0)
      return CallError();
    // A whole network gives its results.
    tn_value_release(&result);
    return Ok();
  }
  /// Until all calls are done.
  Status Wait() const {
    if (device_.device_type == TN_DL_CPU) return Ok();
    return tn_stream_wait(device_, nullptr) == 0 ? Ok() : Status(CallError());
  }

  /// Seconds of a call, from several. What one thread does is measured by its own clock: while it
  /// is off its CPU that stands.
  Expected<double> Time(int64_t calls, int64_t team) {
    const bool alone = team == 1 && device_.device_type == TN_DL_CPU;
    const clockid_t clock = alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    const double start = SecondsBy(clock);
    for (int64_t i = 0; i < calls; ++i) TN_RETURN_IF_ERROR(Call(team));
    TN_RETURN_IF_ERROR(Wait());
    return (SecondsBy(clock) - start) / static_cast<double>(calls);
  }

  /// Results in row-major order, each with its parameter.
  Expected<std::vector<std::vector<std::byte>>> Answers() const {
    TN_RETURN_IF_ERROR(Wait());
    std::vector<std::vector<std::byte>> out;
    for (size_t i = 0; i < program_.parameters.size(); ++i) {
      const Parameter& p = program_.parameters[i];
      if (!p.output) continue;
      std::vector<std::byte> storage(memory_[i].front().bytes());
      TN_RETURN_IF_ERROR(memory_[i].front().Read(storage.data()));
      out.push_back(measure::Load(p, storage.data()));
    }
    return out;
  }
  std::vector<Parameter> Outputs() const {
    std::vector<Parameter> out;
    for (const Parameter& p : program_.parameters) {
      if (p.output) out.push_back(p);
    }
    return out;
  }
  Expected<bool> IsWhole() const {
    for (const std::vector<OperandMemory>& copies : memory_) {
      for (const OperandMemory& m : copies) {
        TN_ASSIGN_OR_RETURN(const bool whole, m.IsWhole());
        if (!whole) return false;
      }
    }
    return true;
  }

 private:
  LoadedProgram(const Program& program, tn_dl_device device) : program_(program), device_(device) {}

  Status AddOperand(const Parameter& p, size_t index, Inputs* inputs) {
    TN_ASSIGN_OR_RETURN(const int64_t bytes, StorageBytes(p));
    const auto copies = static_cast<size_t>(std::clamp<int64_t>(p.copies, 1, 64));
    std::vector<OperandMemory>& blocks = memory_.emplace_back();
    // Of results: not a number, and no answer.
    std::vector<std::byte> nothing;
    if (p.output) nothing.assign(static_cast<size_t>(bytes), std::byte{0xFF});
    const std::vector<std::byte>& storage =
        p.output ? nothing : inputs->Laid(p, index, static_cast<size_t>(bytes));
    for (size_t c = 0; c < copies; ++c) {
      TN_ASSIGN_OR_RETURN(OperandMemory block, OperandMemory::Make(device_, storage.size()));
      TN_RETURN_IF_ERROR(block.Write(storage.data()));
      blocks.push_back(std::move(block));
    }
    // As many turns as the operand with the most copies has.
    const size_t before = turns_.size();
    if (copies > before) {
      turns_.resize(copies);
      for (size_t t = before; t < copies; ++t) {
        for (size_t i = 0; i < index; ++i) TN_RETURN_IF_ERROR(AddArgument(t, i));
      }
    }
    for (size_t t = 0; t < turns_.size(); ++t) TN_RETURN_IF_ERROR(AddArgument(t, index));
    return Ok();
  }

  Status AddArgument(size_t turn, size_t index) {
    const Parameter& p = program_.parameters[index];
    tn_tensor_t* tensor = nullptr;
    void* data = memory_[index][turn % memory_[index].size()].data();
    if (tn_tensor_wrap(data, FindElementType(p.dtype)->dl, static_cast<int32_t>(p.shape.size()),
                       p.shape.data(), device_, &tensor) != 0)
      return CallError();
    tn_ffi_any arg{};
    arg.type_index = TN_FFI_TENSOR;
    arg.u.v_obj = reinterpret_cast<tn_ffi_object*>(tensor);
    turns_[turn].push_back(arg);
    return Ok();
  }

  const Program program_;
  const tn_dl_device device_;
  tn_module_t* module_ = nullptr;
  tn_packed_fn function_ = nullptr;
  std::vector<std::vector<OperandMemory>> memory_;  // by parameter, then its copies
  std::vector<std::vector<tn_ffi_any>> turns_;      // arguments of calls, which take turns
  size_t next_ = 0;
};

using Results = std::vector<std::vector<std::byte>>;

Status WriteResults(const Results& results, const std::string& path) {
  std::string bytes;
  for (const std::vector<std::byte>& r : results)
    bytes.append(reinterpret_cast<const char*>(r.data()), r.size());
  return WriteFile(path, bytes);
}

// Nullopt: no such file, or it holds something else.
std::optional<Results> ReadResults(const Program& program, const std::string& path) {
  const Expected<std::string> bytes = ReadFile(path);
  if (!bytes) return std::nullopt;
  Results out;
  size_t at = 0;
  for (const Parameter& p : program.parameters) {
    if (!p.output) continue;
    size_t size = static_cast<size_t>(FindElementType(p.dtype)->bytes);
    for (const int64_t d : p.dims) size *= static_cast<size_t>(d);
    if (size > bytes->size() - at) return std::nullopt;
    const auto* begin = reinterpret_cast<const std::byte*>(bytes->data()) + at;
    out.emplace_back(begin, begin + size);
    at += size;
  }
  return at == bytes->size() ? std::optional(std::move(out)) : std::nullopt;
}

RaceAnswer Failed(Outcome outcome, std::string message) {
  RaceAnswer answer;
  answer.outcome = outcome;
  answer.message = std::move(message);
  return answer;
}

class Worker {
 public:
  RaceAnswer Run(const RaceRequest& request) {
    try {
      Expected<RaceAnswer> answer = Race(request);
      return answer ? *answer : Failed(Outcome::kError, answer.errors()[0].message);
    } catch (const std::bad_alloc&) {
      return Failed(Outcome::kError, "more memory is needed than a worker may have");
    }
  }

 private:
  Expected<RaceAnswer> Race(const RaceRequest& request) {
    if (!inputs_ || inputs_->kernel() != request.kernel) {
      reference_.reset();
      incumbent_.reset();
      inputs_.emplace(request.kernel);
    }
    TN_ASSIGN_OR_RETURN(device_, DeviceOf(request.device));
    TN_RETURN_IF_ERROR(FindResults(request));
    if (request.candidate.path.empty()) return Found();
    TN_RETURN_IF_ERROR(OpenIncumbent(request));
    TN_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedProgram> candidate,
                        LoadedProgram::Load(request.candidate, device_, &*inputs_));
    Expected<RaceAnswer> answer = Judge(request, *candidate);
    // A device that has failed once fails whatever is asked of it next: another process asks.
    if (!answer && device_.device_type != TN_DL_CPU)
      return Failed(Outcome::kCrash, answer.errors()[0].message);
    return answer;
  }

  Expected<RaceAnswer> Found() const {
    char text[256] = "";
    if (tn_device_describe(device_, text, sizeof text) != 0) return CallError();
    RaceAnswer answer;
    answer.machine = text;
    return answer;
  }

  Expected<RaceAnswer> Judge(const RaceRequest& request, LoadedProgram& candidate) {
    const RaceAnswer outside = Failed(Outcome::kOutside, "it writes beside its operands");
    TN_RETURN_IF_ERROR(candidate.Call(request.team));
    TN_RETURN_IF_ERROR(candidate.Wait());
    TN_ASSIGN_OR_RETURN(const bool whole, candidate.IsWhole());
    if (!whole) return outside;
    TN_ASSIGN_OR_RETURN(const std::string difference, Difference(candidate));
    if (!difference.empty()) return Failed(Outcome::kWrong, difference);
    TN_ASSIGN_OR_RETURN(RaceAnswer answer, Pairs(request, *incumbent_, candidate));
    TN_ASSIGN_OR_RETURN(const bool still_whole, candidate.IsWhole());
    if (!still_whole) return outside;
    return answer;
  }

  Status FindResults(const RaceRequest& request) {
    if (request.reference.path.empty() || reference_) return Ok();
    TN_RETURN_IF_ERROR(FindReference(request));
    scales_.clear();
    for (const Parameter& p : request.reference.parameters) {
      if (p.output) scales_.push_back(ScaleOf(p, (*reference_)[scales_.size()]));
    }
    return Ok();
  }
  // Its results: from the file, or by a call of it.
  Status FindReference(const RaceRequest& request) {
    if (!request.results.empty()) reference_ = ReadResults(request.reference, request.results);
    if (reference_) return Ok();
    TN_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedProgram> program,
                        LoadedProgram::Load(request.reference, device_, &*inputs_));
    TN_RETURN_IF_ERROR(program->Call(request.team));
    TN_ASSIGN_OR_RETURN(reference_, program->Answers());
    return request.results.empty() ? Ok() : WriteResults(*reference_, request.results);
  }

  Status OpenIncumbent(const RaceRequest& request) {
    if (incumbent_ && incumbent_->path() == request.incumbent.path) return Ok();
    incumbent_.reset();
    TN_ASSIGN_OR_RETURN(incumbent_, LoadedProgram::Load(request.incumbent, device_, &*inputs_));
    return incumbent_->Call(request.team);
  }

  Expected<std::string> Difference(const LoadedProgram& candidate) const {
    if (!reference_) return std::string();
    const std::vector<Parameter> outputs = candidate.Outputs();
    TN_ASSIGN_OR_RETURN(const auto results, candidate.Answers());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string difference =
          FirstDifference(outputs[i], results[i], (*reference_)[i], scales_[i]);
      if (!difference.empty()) return fmt::format("result {}: {}", i, difference);
    }
    return std::string();
  }

  // Calls of a burst, of at least the one that is timed to know.
  static Expected<int64_t> CallsOf(LoadedProgram& program, int64_t team) {
    TN_ASSIGN_OR_RETURN(double seconds, program.Time(1, team));
    TN_ASSIGN_OR_RETURN(const double again, program.Time(1, team));
    seconds = std::max(std::min(seconds, again), 1e-9);
    return std::clamp(static_cast<int64_t>(kBurstSeconds / seconds), int64_t{1}, int64_t{10000});
  }

  static Expected<double> Burst(LoadedProgram& program, int64_t calls, int64_t team) {
    if (team > 1) {
      std::this_thread::sleep_for(kQuiet);
      TN_RETURN_IF_ERROR(program.Call(team));  // wakes its workers
    }
    return program.Time(calls, team);
  }

  static Expected<RaceAnswer> Pairs(const RaceRequest& request, LoadedProgram& incumbent,
                                    LoadedProgram& candidate) {
    const int64_t team = request.team;
    TN_ASSIGN_OR_RETURN(const int64_t incumbent_calls, CallsOf(incumbent, team));
    TN_ASSIGN_OR_RETURN(const int64_t candidate_calls, CallsOf(candidate, team));
    const bool is_long = incumbent_calls == 1 || candidate_calls == 1;
    PairedRace race({.noise = request.noise,
                     .most_pairs = static_cast<size_t>(std::max(request.most_pairs, int64_t{1}))},
                    request.seconds);
    const Clock::time_point start = Clock::now();
    const auto taken = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    for (int64_t turn = 0; race.GoesOn(taken()); ++turn) {
      const int64_t preempted = Preemptions();
      double first = 0, second = 0;
      const bool swapped = turn % 2 == 1;
      TN_ASSIGN_OR_RETURN(first, swapped ? Burst(candidate, candidate_calls, team)
                                         : Burst(incumbent, incumbent_calls, team));
      TN_ASSIGN_OR_RETURN(second, swapped ? Burst(incumbent, incumbent_calls, team)
                                          : Burst(candidate, candidate_calls, team));
      race.Add(swapped ? second : first, swapped ? first : second,
               is_long && Preemptions() != preempted);
    }
    RaceAnswer answer;
    answer.faster = race.IsFaster();
    answer.incumbent_seconds = Median(race.incumbent_seconds());
    answer.log_ratio = Median(race.log_ratios());
    answer.noise = NoiseOf(race.log_ratios());
    answer.pairs = static_cast<int64_t>(race.log_ratios().size());
    answer.dropped = static_cast<int64_t>(race.aside());
    answer.timing_seconds = taken();
    return answer;
  }

  tn_dl_device device_{TN_DL_CPU, 0};
  std::optional<Inputs> inputs_;
  std::optional<Results> reference_;
  std::vector<double> scales_;  // of these
  std::unique_ptr<LoadedProgram> incumbent_;
};

bool WriteAll(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

int RunWorker(int requests, int answers, const WorkerLimits& limits) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever asked has no use for answers any more
  signal(SIGINT, SIG_IGN);           // the session ends in its own time
#ifndef TN_ASAN                      // whose own tables are data too, and larger
  if (limits.most_bytes > 0) {
    const rlimit limit{static_cast<rlim_t>(limits.most_bytes),
                       static_cast<rlim_t>(limits.most_bytes)};
    setrlimit(RLIMIT_DATA, &limit);
  }
#endif
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  static const std::string kTouched =
      ToLine(Failed(Outcome::kOutside, "it reads or writes beside its operands"));
  ReportTouchedGuards(answers, kTouched.c_str(), kTouchedGuard);
  Worker worker;
  std::string waiting;
  char piece[65536];
  for (;;) {
    const size_t end = waiting.find('\n');
    if (end == std::string::npos) {
      const ssize_t n = read(requests, piece, sizeof piece);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return 0;
      waiting.append(piece, static_cast<size_t>(n));
      continue;
    }
    const Expected<RaceRequest> request = ParseRequest(waiting.substr(0, end));
    waiting.erase(0, end + 1);
    const RaceAnswer answer =
        request ? worker.Run(*request) : Failed(Outcome::kError, request.errors()[0].message);
    if (!WriteAll(answers, ToLine(answer))) return 1;
  }
}

}  // namespace tenon::measure

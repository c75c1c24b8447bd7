#include "tune/kernel_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <deque>
#include <map>
#include <set>

#include "measure/elements.h"
#include "measure/paired_test.h"
#include "support/strings.h"
#include "tune/history.h"
#include "tune/machine_key.h"

namespace tenon::tune {

namespace {

using Clock = std::chrono::steady_clock;

// "{a: 1, b: -2}"; nullopt of anything else.
std::optional<graph::Choices> ReadChoices(std::string_view text) {
  graph::Choices out;
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') return std::nullopt;
  for (const std::string& part : Split(text.substr(1, text.size() - 2), ',')) {
    const std::string item(Trim(part));
    if (item.empty()) continue;
    const size_t colon = item.rfind(": ");
    if (colon == std::string::npos) return std::nullopt;
    graph::Choice c{item.substr(0, colon), 0};
    const char* end = item.data() + item.size();
    const auto [rest, fault] = std::from_chars(item.data() + colon + 2, end, c.value);
    if (fault != std::errc() || rest != end) return std::nullopt;
    out.push_back(std::move(c));
  }
  return out;
}

std::optional<Pick> PickOf(const Record& record, const SearchProblem& problem) {
  const auto at = std::find(problem.algorithms.begin(), problem.algorithms.end(), record.algorithm);
  const std::optional<graph::Choices> choices = ReadChoices(record.point);
  if (at == problem.algorithms.end() || !choices) return std::nullopt;
  const auto space = static_cast<size_t>(at - problem.algorithms.begin());
  const Expected<ops::Point> point = problem.spaces[space].PointOf(*choices);
  if (!point) return std::nullopt;
  return Pick{space, *point};
}

class Session {
 public:
  Session(const OpenKernel& kernel, Searcher* searcher, const KernelOptions& options,
          const std::function<void(const Trial&, const KernelState&)>& done,
          const std::atomic<bool>& stop)
      : kernel_(kernel),
        searcher_(searcher),
        options_(options),
        done_(done),
        stop_(stop),
        bench_(Counted(options.bench), kernel.problem.kernel),
        ahead_(options.bench.tools->build, options.bench.tools->builders) {}

  Expected<KernelState> Run(const std::vector<Trial>& before) {
    if (options_.bench.log)
      TN_RETURN_IF_ERROR(options_.bench.log->AddKernel(kernel_.problem.kernel, kernel_.text));
    if (kernel_.reference)
      TN_RETURN_IF_ERROR(bench_.SetReference(ahead_.Start(kernel_.reference, By())));
    TN_RETURN_IF_ERROR(Recall(before));
    const Status made = MakeTrials();
    for (const Queued& q : queue_) TN_RETURN_IF_ERROR(bench_.Withdraw(q.trial.record));
    TN_RETURN_IF_ERROR(made);
    return state_;
  }

 private:
  /// A trial that is being built.
  struct Queued {
    Trial trial;
    Building candidate;
  };

  Status MakeTrials() {
    while (!IsOver()) {
      TN_RETURN_IF_ERROR(FillQueue());
      if (queue_.empty()) {
        state_.stopped = "every point has been tried";
        break;
      }
      Queued next = std::move(queue_.front());
      queue_.pop_front();
      TN_RETURN_IF_ERROR(Try(&next));
    }
    return Ok();
  }

  // What was under way when a session died is built and run with nothing else in the queue, so that
  // a second death is its own.
  bool IsAlone(const Pick& pick) const {
    return options_.suspects.contains(kernel_.problem.Trace(pick));
  }

  LoweredBy By() const {
    return kernel_.lowers_anywhere ? LoweredBy::kBuilder : LoweredBy::kCaller;
  }

  Status FillQueue() {
    // Schedules that are made in this thread take time, too.
    while (queue_.empty() || !IsOver()) {
      if (picks_.empty()) Ask();
      if (picks_.empty()) return Ok();
      const Pick& pick = picks_.front();
      if (!queue_.empty() && (IsAlone(pick) || IsAlone(queue_.back().trial.pick))) return Ok();
      Queued next{{pick, RecordOf(pick)}, {}};
      if (ahead_.threads() > 0) TN_RETURN_IF_ERROR(bench_.Announce(&next.trial.record));
      next.candidate = ahead_.Start([this, pick] { return kernel_.lower(pick); }, By());
      queue_.push_back(std::move(next));
      picks_.pop_front();
    }
    return Ok();
  }

  // For a batch, where nothing is queued, or builders would be idle.
  void Ask() {
    const auto queued = static_cast<int64_t>(queue_.size());
    if (queued > 0 && !(options_.asks_early && queued < ahead_.threads())) return;
    int64_t count = options_.batch;
    if (options_.trials > 0) count = std::min(count, options_.trials - state_.trials - queued);
    if (count <= 0) return;
    for (Pick& pick : searcher_->Next(static_cast<size_t>(count)))
      picks_.push_back(std::move(pick));
  }

  BenchOptions Counted(BenchOptions bench) {
    bench.libraries = &libraries_;
    bench.spent = &spent_;
    return bench;
  }

  // What is known of this kernel; its best point is the incumbent again, which is no trial.
  Status Recall(const std::vector<Trial>& before) {
    const Trial* best = nullptr;
    for (const Trial& t : before) {
      const bool ok = t.record.outcome == kOk;
      searcher_->Observe(t.pick, ok ? std::optional(t.record.seconds) : std::nullopt);
      const bool leads = ok && t.record.leader;
      if (leads && (!best || t.record.seconds < best->record.seconds)) best = &t;
    }
    if (!best) return Ok();
    Record record = RecordOf(best->pick);
    TN_RETURN_IF_ERROR(bench_.Open(ahead_.Start([&] { return kernel_.lower(best->pick); }, By()),
                                   best->record.seconds, &record));
    if (record.outcome == kOk) Lead(best->pick, record);
    return Ok();
  }

  Record RecordOf(const Pick& pick) const {
    Record r;
    r.kernel = kernel_.problem.kernel;
    r.machine = kernel_.machine;
    r.target = kernel_.target;
    r.team = options_.bench.team;
    r.cache = CacheState(false);
    r.algorithm = kernel_.problem.algorithms[pick.space];
    r.epoch = kernel_.epoch;
    r.point = graph::ChoicesText(pick.point);
    if (const std::optional<Quote> quote = kernel_.problem.price(pick))
      r.predicted = quote->seconds;
    return r;
  }

  Status Try(Queued* next) {
    Trial& trial = next->trial;
    const Pick& pick = trial.pick;
    ++state_.trials;
    ++unlucky_;
    TN_RETURN_IF_ERROR(bench_.is_open() ? bench_.Try(next->candidate, &trial.record)
                                        : bench_.Open(next->candidate, 0, &trial.record));
    const bool ok = trial.record.outcome == kOk;
    searcher_->Observe(pick, ok ? std::optional(trial.record.seconds) : std::nullopt);
    if (!ok) ++state_.failures;
    if (trial.record.leader) {
      Lead(pick, trial.record);
      unlucky_ = 0;
    }
    state_.seconds = Seconds();
    if (done_) done_(trial, state_);
    return Ok();
  }

  void Lead(const Pick& pick, const Record& record) {
    state_.best = pick;
    state_.best_seconds = record.seconds;
  }

  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  bool IsOver() {
    state_.seconds = Seconds();
    state_.stopped =
        stop_ ? "it was interrupted" : options_.Reached(state_.trials, state_.seconds, unlucky_);
    return !state_.stopped.empty();
  }

  const OpenKernel& kernel_;
  Searcher* searcher_;
  const KernelOptions& options_;
  const std::function<void(const Trial&, const KernelState&)>& done_;
  const std::atomic<bool>& stop_;
  const Clock::time_point start_ = Clock::now();
  int64_t libraries_ = 0, unlucky_ = 0;
  Spent spent_;
  Bench bench_;
  KernelState state_;
  std::deque<Pick> picks_;    // that the searcher gave, to be queued
  std::deque<Queued> queue_;  // the first is raced next
  BuildAhead ahead_;          // gone before what it builds
};

}  // namespace

std::vector<Trial> TrialsOf(const LogContents& contents, const OpenKernel& kernel, int64_t team,
                            std::set<std::string>* suspects) {
  std::map<std::string, int> deaths;
  std::map<std::string, Trial> out;  // the last record of each point that is one
  for (const Record& r : contents.records) {
    if (r.kernel != kernel.problem.kernel || r.machine != kernel.machine ||
        r.target != kernel.target || r.team != team || r.epoch != kernel.epoch ||
        r.cache != CacheState(false))
      continue;
    const std::optional<Pick> pick = PickOf(r, kernel.problem);
    if (!pick) continue;
    const bool died = r.outcome == kStarted || r.outcome == "crash" || r.outcome == "timeout";
    // One death may have been anybody's.
    if (died && (r.outcome == kStarted && IsAlive(r.owner))) continue;
    if (died && ++deaths[r.Trace()] < 2) {
      if (suspects) suspects->insert(r.Trace());
      continue;
    }
    const auto [at, fresh] = out.emplace(r.Trace(), Trial{*pick, r});
    if (!fresh && r.outcome == kOk &&
        (at->second.record.outcome != kOk || r.leader > at->second.record.leader))
      at->second.record = r;
  }
  std::vector<Trial> trials;
  for (auto& [trace, trial] : out) trials.push_back(std::move(trial));
  return trials;
}

Expected<KernelState> TuneKernel(const OpenKernel& kernel, Searcher* searcher,
                                 const KernelOptions& options, const std::vector<Trial>& before,
                                 const std::function<void(const Trial&, const KernelState&)>& done,
                                 const std::atomic<bool>& stop) {
  return Session(kernel, searcher, options, done, stop).Run(before);
}

Expected<std::vector<measure::Parameter>> ParametersOf(const PrimFunc& func) {
  std::vector<measure::Parameter> out;
  if (!func.dims.empty() || !func.scalars.empty())
    return MakeError(fmt::format("function {} cannot be measured: its sizes are open", func.name));
  const size_t inputs = func.buffers.size() - static_cast<size_t>(func.num_outputs);
  for (size_t i = 0; i < func.buffers.size(); ++i) {
    const BufferNode& b = *func.buffers[i];
    measure::Parameter p;
    p.dtype = LongName(b.dtype);
    if (!measure::FindElementType(p.dtype))
      return MakeError(
          fmt::format("function {} cannot be measured: elements of {}, as '{}' has, "
                      "are not",
                      func.name, p.dtype, b.name));
    if (b.layout || !b.strides.empty())
      return MakeError(
          fmt::format("function {} cannot be measured: '{}' is not compact", func.name, b.name));
    for (const Expr& d : b.shape) {
      const std::optional<int64_t> n = AsInt(d);
      if (!n)
        return MakeError(
            fmt::format("function {} cannot be measured: its sizes are open", func.name));
      p.dims.push_back(*n);
    }
    p.shape = p.dims;
    p.begin.assign(p.dims.size(), 0);
    int64_t stride = 1;
    for (size_t k = p.dims.size(); k-- > 0;) {
      p.terms.insert(p.terms.begin(), {static_cast<int64_t>(k), 1, 0, stride});
      stride *= p.dims[k];
    }
    p.output = i >= inputs;
    out.push_back(std::move(p));
  }
  return out;
}

}  // namespace tenon::tune

// One Session is one run; it keeps, for each task, the incumbent's library and the model's opinion
// of its points. Invariants: an attempt that may kill is in the log before anything is done for it;
// the incumbent of a task that is open has a time, and its library is in the folder.
//
// Attempts stand in a queue while they are lowered and built, as long as there are threads for that
// and one longer; its head is raced, unless it turns out to be a kernel that was. So what is tried
// next is chosen by what was known so many attempts ago, whatever took how long: the same answers
// give the same session. A candidate that was under way when a session died is queued alone, so
// that a second death is its own.
#include "tune/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <optional>
#include <set>

#include "plan/region.h"
#include "plan/sizes.h"
#include "plan/space.h"
#include "tune/boosted_trees.h"
#include "tune/coverage.h"
#include "tune/floor.h"
#include "tune/same_kernels.h"

namespace tenon::tune {

namespace {

using Clock = std::chrono::steady_clock;

// Opinions of other tasks change little with one measurement.
constexpr int64_t kOpinionTrials = 8;
// First choices that fail before a kernel is given up.
constexpr int kMostFirstChoices = 4;
// Of one kernel's candidates that the model chooses: so many are under way behind the one that is
// raced, however many threads there are, since the choice is that much too early.
constexpr int64_t kMostAhead = 8;
// Of the time that trials take, for relayouts after them.
constexpr double kRelayoutsOfTrials = 0.1;

/// What came of a point.
struct Known {
  std::string outcome = kOk;
  double seconds = 0, noise = 0;
};

/// A task and how far it is.
struct TaskRun {
  const Task* task;
  TaskState state;
  std::vector<size_t> leaders;  // still to be tried, the last one first
  std::set<size_t> tried;       // of this session, and what is banned or known
  std::set<size_t> suspects;    // under way when a session or a worker died, once
  size_t incumbent = 0;
  Bench bench;
  size_t next = 0;  // the point that most is expected of
  // What trees add to the model's opinion of each candidate; empty: there were none.
  std::vector<double> by_trees = {};
  bool is_opening = false;             // its first choice is in the queue
  std::map<size_t, Known> known = {};  // by place
  SameKernels same = {};               // of what was tried
  // Which kernels those are that earlier sessions tried; asked for with the first attempt.
  std::deque<std::pair<size_t, BuildAhead::Identity>> recalled = {};
  bool is_recalled = false;
  std::vector<size_t> sample = {};  // of an exhaustive session
  std::deque<size_t> cover = {};    // what it has still to try
  bool has_neighbours = false;      // these are in it
};

/// An attempt that is being built.
struct Queued {
  TaskRun* run;
  size_t place;
  bool opens;       // it is to be the incumbent
  double gain = 0;  // expected of it
  Record record;
  Building candidate, reference;  // the latter where it opens
};

class Session {
 public:
  Session(const Tasks& tasks, const Machine& machine, const SessionOptions& options,
          const SessionTools& tools, const std::string& folder, Log* log,
          const std::function<void(const SessionState&)>& changed, const std::atomic<bool>& stop)
      : relayouts_(tasks.relayouts),
        machine_(machine),
        options_(ForTrials(options, !tasks.relayouts.empty())),
        log_(log),
        changed_(changed),
        stop_(stop),
        target_(machine.target->ToString()),
        bench_{.tools = &tools,
               .folder = folder,
               .log = log,
               .device = options.device,
               .team = options.team,
               .race_seconds = options.race_seconds,
               .libraries = &libraries_,
               .spent = &state_.spent},
        ahead_(tools.build, tools.builders) {
    for (const Task& task : tasks.tasks)
      runs_.push_back({.task = &task, .bench = Bench(bench_, task.kernel)});
  }

  Expected<SessionState> Run() {
    TN_RETURN_IF_ERROR(Begin());
    const Status made = MakeAttempts();
    for (const Queued& q : queue_) TN_RETURN_IF_ERROR(q.run->bench.Withdraw(q.record));
    queue_.clear();
    TN_RETURN_IF_ERROR(made);
    TN_RETURN_IF_ERROR(MeasureRelayouts());
    if (options_.finals > 0) TN_RETURN_IF_ERROR(RaceFinals());
    if (options_.exhaustive > 0) CountCovered();
    Show();
    return state_;
  }

 private:
  // The time is what the session takes with all that comes after trials.
  static SessionOptions ForTrials(SessionOptions options, bool has_relayouts) {
    if (has_relayouts) options.seconds /= 1 + kRelayoutsOfTrials;
    return options;
  }

  // ---- The queue ----

  Status MakeAttempts() {
    while (!IsOver()) {
      TN_RETURN_IF_ERROR(FillQueue());
      if (queue_.empty()) {
        state_.stopped = "every point has been tried";
        break;
      }
      if (!Recalled(queue_.front().run)) continue;
      Queued next = std::move(queue_.front());
      queue_.pop_front();
      TN_ASSIGN_OR_RETURN(const bool is_copy, TakeCopy(&next));
      if (!is_copy) TN_RETURN_IF_ERROR(next.opens ? Open(&next) : Try(&next));
    }
    return Ok();
  }

  Status FillQueue() {
    const auto is_alone = [](const Queued& q) { return q.run->suspects.contains(q.place); };
    const size_t most = 1 + static_cast<size_t>(ahead_.threads());
    while (queue_.size() < most && (queue_.empty() || !is_alone(queue_.back()))) {
      TaskRun* run = nullptr;
      for (auto& r : runs_) {
        if (r.state.gain > (run ? run->state.gain : 0) && !IsFull(r)) run = &r;
      }
      if (!run || HasTrials() || stop_) break;
      const bool opens = !run->bench.is_open() && !run->is_opening;
      const size_t place = opens ? run->incumbent : run->next;
      if (!queue_.empty() && run->suspects.contains(place)) break;
      TN_RETURN_IF_ERROR(Enqueue(run, place, opens));
    }
    return Ok();
  }

  int64_t QueuedOf(const TaskRun& run) const {
    return std::count_if(queue_.begin(), queue_.end(),
                         [&](const Queued& q) { return q.run == &run; });
  }

  bool IsFull(const TaskRun& run) const {
    const bool is_chosen = run.leaders.empty() && options_.exhaustive == 0;
    return is_chosen && QueuedOf(run) > kMostAhead;
  }

  // Whether those in the queue are all that may be made.
  bool HasTrials() const {
    const auto queued =
        std::count_if(queue_.begin(), queue_.end(), [](const Queued& q) { return !q.opens; });
    return options_.trials > 0 && state_.trials + queued >= options_.trials;
  }

  // ---- Points that are the same kernel ----

  Lowering Lower(const TaskRun& run, size_t place) const {
    return [task = run.task, place, this] {
      return LowerCandidate(*task, task->candidates[place], machine_, options_.far_weights);
    };
  }

  // What earlier sessions tried comes before anything of this one.
  void Recall(TaskRun* run) {
    if (run->is_recalled) return;
    run->is_recalled = true;
    for (const auto& [place, known] : run->known)
      run->recalled.emplace_back(place, ahead_.Identify(Lower(*run, place)));
  }
  // Whether all of that is there; else the session is over.
  bool Recalled(TaskRun* run) {
    while (!run->recalled.empty()) {
      if (IsOver()) return false;
      TakeRecalled(run);
    }
    return true;
  }
  void TakeRecalled(TaskRun* run) {
    const auto& [place, identity] = run->recalled.front();
    const Clock::time_point start = Clock::now();
    run->same.FirstOf(place, identity.get());
    state_.spent.building += std::chrono::duration<double>(Clock::now() - start).count();
    run->recalled.pop_front();
  }

  // Whether the kernel is one that was tried, as another point, which its record then says. What
  // was tried itself is no copy: it is to be the incumbent again.
  Expected<bool> TakeCopy(Queued* next) {
    TaskRun* run = next->run;
    const bool is_tried = next->opens || run->bench.is_open();
    if (!is_tried || run->known.contains(next->place)) return false;
    const Clock::time_point start = Clock::now();
    const size_t first = run->same.FirstOf(next->place, next->candidate.Identity());
    state_.spent.building += std::chrono::duration<double>(Clock::now() - start).count();
    if (first == next->place) return false;
    if (!next->record.id.empty()) TN_RETURN_IF_ERROR(run->bench.Withdraw(next->record));
    TN_RETURN_IF_ERROR(Copy(run, first, next->place));
    if (next->opens) {
      run->is_opening = false;
      NextChoice(run);
    }
    Consider(run);
    return true;
  }

  void Keep(const Queued& tried) {
    TaskRun* run = tried.run;
    if (!run->same.Knows(tried.place)) run->same.FirstOf(tried.place, tried.candidate.Identity());
    run->known[tried.place] = {tried.record.outcome, tried.record.seconds, tried.record.noise};
  }

  // Plans ask for points, so the log says of each what is known of its kernel.
  Status Copy(TaskRun* run, size_t first, size_t place) {
    const Known known = run->known.at(first);
    const Candidate& c = run->task->candidates[place];
    Record record = RecordOf(*run, c);
    TN_RETURN_IF_ERROR(log_->Begin(&record));
    record.outcome = known.outcome;
    record.seconds = known.seconds;
    record.noise = known.noise;
    record.message = std::string(kCopyOf) + run->task->candidates[first].Trace();
    TN_RETURN_IF_ERROR(log_->Finish(record));
    if (record.outcome == kOk) Observe(*run, c, record.seconds);
    if (place == run->task->chosen && run->state.first_seconds <= 0)
      run->state.first_seconds = record.seconds;
    run->known[place] = known;
    return Ok();
  }

  // ---- Exhaustive sessions ----

  void BeginCover(TaskRun* run) {
    run->sample = SampleOf(*run->task, static_cast<size_t>(options_.exhaustive));
    run->cover.assign(run->sample.begin(), run->sample.end());
    run->has_neighbours =
        run->sample.size() == run->task->candidates.size() || options_.neighbours_of == 0;
    run->state.sample = run->sample.size();
  }

  // Neighbours of the best of the sample, and of nothing else that was tried, by what its records
  // say and not by what leads: so that a session that goes on where it was killed tries the same
  // points.
  void CoverNeighbours(TaskRun* run) {
    run->has_neighbours = true;
    // What cannot be read cannot be written either, which the next attempt says.
    const Expected<LogContents> contents = log_->Read();
    if (!contents) return;
    const Circumstances here{options_.machine, target_, options_.team,
                             CacheState(options_.far_weights)};
    std::map<std::string, double> measured;
    for (const Record& r : contents->records) {
      if (r.kernel == run->task->kernel && r.outcome == kOk && Counts(r, here))
        measured.emplace(r.Trace(), r.seconds);
    }
    std::vector<std::pair<double, size_t>> order;
    for (const size_t place : run->sample) {
      const auto seconds = measured.find(run->task->candidates[place].Trace());
      if (run->known.contains(place) && seconds != measured.end())
        order.emplace_back(seconds->second, place);
    }
    std::sort(order.begin(), order.end());
    const auto most = static_cast<size_t>(options_.neighbours_of);
    if (order.size() > most) order.resize(most);
    for (const auto& [seconds, place] : order) {
      const std::vector<size_t> next = NeighboursOf(*run->task, place);
      run->cover.insert(run->cover.end(), next.begin(), next.end());
    }
  }

  void CountCovered() {
    for (auto& run : runs_) {
      Recall(&run);
      while (!run.recalled.empty()) TakeRecalled(&run);
      std::set<size_t> kernels;
      for (const auto& [place, known] : run.known) kernels.insert(run.same.Known(place));
      run.state.covered = kernels.size();
      if (run.known.size() == run.task->candidates.size()) run.state.distinct = kernels.size();
    }
  }

  void ConsiderCover(TaskRun* run) {
    const auto pass = [&] {
      while (!run->cover.empty() && run->tried.contains(run->cover.front())) run->cover.pop_front();
    };
    pass();
    if (run->cover.empty() && !run->has_neighbours && QueuedOf(*run) == 0) CoverNeighbours(run);
    pass();
    if (run->cover.empty()) return;
    run->next = run->cover.front();
    run->state.gain = Gain(*run, SecondsOf(*run));
  }

  Status Enqueue(TaskRun* run, size_t place, bool opens) {
    Recall(run);
    const Candidate& c = run->task->candidates[place];
    Queued next{.run = run,
                .place = place,
                .opens = opens,
                .gain = run->state.gain,
                .record = RecordOf(*run, c),
                .candidate = {},
                .reference = {}};
    if (ahead_.threads() > 0) TN_RETURN_IF_ERROR(run->bench.Announce(&next.record));
    if (opens) {
      run->is_opening = true;
      if (!run->bench.has_reference())
        next.reference = ahead_.Start([=, this] { return LowerDefinition(*run->task, machine_); });
    }
    run->tried.insert(place);
    next.candidate = ahead_.Start(Lower(*run, place));
    queue_.push_back(std::move(next));
    Consider(run);
    return Ok();
  }

  // ---- At the end ----

  // What a layout gains in a kernel is measured, so what it costs between two of them is, too.
  Status MeasureRelayouts() {
    const Clock::time_point start = Clock::now();
    const auto seconds = [](Clock::time_point since) {
      return std::chrono::duration<double>(Clock::now() - since).count();
    };
    const double most = kRelayoutsOfTrials * seconds(start_);
    TN_ASSIGN_OR_RETURN(const LogContents contents, log_->Read());
    const History history = HistoryOf(contents);
    for (const Relayout& r : relayouts_) {
      if (stop_ || seconds(start) > most) break;
      const KernelHistory* known = history.Find(r.kernel);
      const bool is_done = known && (known->seconds.contains(Relayout::Trace()) ||
                                     known->IsBanned(Relayout::Trace()));
      if (is_done) continue;
      TN_RETURN_IF_ERROR(log_->AddKernel(r.kernel, r.Text()));
      Bench bench(bench_, r.kernel);
      if (!bench.SetReference(ahead_.Start([&] { return LowerCopy(r, machine_); }))) continue;
      Record record = RecordHere();
      record.kernel = r.kernel;
      record.algorithm = Relayout::Algorithm().name;
      record.epoch = Relayout::Algorithm().epoch;
      record.point = graph::ChoicesText({});
      record.predicted = r.Predicted(machine_);
      TN_RETURN_IF_ERROR(
          bench.Open(ahead_.Start([&] { return LowerRelayout(r, machine_); }), 0, &record));
      if (record.outcome == kOk) ++state_.relayouts;
    }
    return Ok();
  }

  // Times that were taken one after the other hang together by chains of ratios, in which errors
  // add up, and the best of many is the one that was lucky: so those that may be best, whatever has
  // led, and what planning takes without trials run once more against one and the same opponent.
  Status RaceFinals() {
    TN_ASSIGN_OR_RETURN(const LogContents contents, log_->Read());
    const History history = HistoryOf(contents);
    std::set<std::pair<std::string, std::string>> led;  // kernels and traces
    for (const Record& r : contents.records) {
      if (r.leader && r.outcome == kOk) led.emplace(r.kernel, r.Trace());
    }
    for (auto& run : runs_) {
      const KernelHistory* known = history.Find(run.task->kernel);
      if (!known || !run.state.trouble.empty() || stop_) continue;
      if (!run.bench.is_open()) {
        TN_RETURN_IF_ERROR(Enqueue(&run, run.incumbent, true));
        Queued first = std::move(queue_.back());
        queue_.pop_back();
        TN_RETURN_IF_ERROR(Open(&first));
      }
      if (!run.bench.is_open()) continue;
      std::vector<std::pair<double, size_t>> order;
      for (size_t i = 0; i < run.task->candidates.size(); ++i) {
        const auto seconds = known->seconds.find(run.task->candidates[i].Trace());
        if (seconds != known->seconds.end()) order.emplace_back(seconds->second, i);
      }
      std::sort(order.begin(), order.end());
      Recall(&run);
      while (!run.recalled.empty()) TakeRecalled(&run);
      std::vector<std::pair<size_t, Building>> racing;
      std::map<size_t, std::vector<std::string>> traces;  // of the same kernel
      int64_t kernels = 0;
      for (const auto& [seconds, place] : order) {
        const Candidate& c = run.task->candidates[place];
        const size_t first = run.same.Known(place);
        const bool races = kernels < options_.finals || place == run.task->chosen ||
                           led.contains({run.task->kernel, c.Trace()}) || traces.contains(first);
        if (!races) continue;
        std::vector<std::string>& names = traces[first];
        if (names.empty()) {
          ++kernels;
          racing.emplace_back(first, ahead_.Start(Lower(run, place)));
        }
        names.push_back(c.Trace());
      }
      for (const auto& [first, candidate] : racing) {
        if (stop_) break;
        const Expected<double> ratio = run.bench.Compare(candidate);
        if (!ratio) continue;
        for (const std::string& trace : traces[first])
          run.state.finals.push_back({trace, std::exp(*ratio)});
      }
      std::stable_sort(run.state.finals.begin(), run.state.finals.end(),
                       [](const Finalist& a, const Finalist& b) { return a.ratio < b.ratio; });
    }
    return Ok();
  }

  // ---- What is known before ----

  Status Begin() {
    TN_ASSIGN_OR_RETURN(const LogContents contents, log_->Read());
    const History history = HistoryOf(contents);
    // Predictions are wrong in the same way in all states of the caches.
    Transfer transfer;
    Learn(contents, History::Of(contents, {options_.machine, target_, options_.team}), machine_,
          &model_, &transfer);
    for (auto& run : runs_) {
      const Task& task = *run.task;
      TN_RETURN_IF_ERROR(log_->AddKernel(task.kernel, task.Text()));
      run.state = {.name = task.name,
                   .kind = task.kind,
                   .kernel = task.kernel,
                   .launches = task.launches,
                   .weight = task.weight,
                   .points = task.candidates.size()};
      if (const Expected<Floor> floor =
              FloorOf(task.Text(), machine_, options_.team, options_.far_weights))
        run.state.bound = floor->Seconds();
      run.incumbent = task.chosen;
      run.leaders = Leaders(task, static_cast<size_t>(options_.leaders));
      const std::vector<size_t> hints =
          HintsFor(task, machine_, options_.hints, static_cast<size_t>(options_.leaders));
      run.leaders.insert(run.leaders.begin(), hints.begin(), hints.end());
      const KernelHistory* known = history.Find(task.kernel);
      if (const auto kin = known ? std::nullopt : BestOfKin(task, transfer))
        run.leaders.insert(run.leaders.begin(), *kin);
      std::reverse(run.leaders.begin(), run.leaders.end());
      if (known) Remember(*known, &run);
      run.state.first = task.candidates[task.chosen].Trace();
      if (options_.exhaustive > 0) BeginCover(&run);
    }
    GrowTrees();
    for (auto& run : runs_) {
      if (run.state.best_seconds > 0) FindTrusted(run);
    }
    for (auto& run : runs_) Consider(&run);
    return Ok();
  }

  void Remember(const KernelHistory& known, TaskRun* run) {
    const Task& task = *run->task;
    for (size_t i = 0; i < task.candidates.size(); ++i) {
      const std::string trace = task.candidates[i].Trace();
      const auto seconds = known.seconds.find(trace);
      if (seconds != known.seconds.end()) run->known[i] = {kOk, seconds->second, known.noise};
      if (known.failed.contains(trace)) run->known[i].outcome = ToString(measure::Outcome::kError);
      if (seconds != known.seconds.end() || known.IsBanned(trace)) run->tried.insert(i);
      if (known.deaths.contains(trace)) run->suspects.insert(i);
      if (i == task.chosen && seconds != known.seconds.end())
        run->state.first_seconds = seconds->second;
      if (trace == known.best) {
        run->incumbent = i;
        run->state.best_seconds = seconds->second;
      }
    }
    if (run->tried.contains(run->incumbent) && run->state.best_seconds <= 0) NextChoice(run);
  }

  History HistoryOf(const LogContents& contents) const {
    return History::Of(
        contents, {options_.machine, target_, options_.team, CacheState(options_.far_weights)});
  }

  // What its nearest kin, as far as that was measured, says is the best.
  std::optional<size_t> BestOfKin(const Task& task, const Transfer& transfer) const {
    const graph::NodeId node = plan::FindKernel(task.graph, kFunction).value();
    const auto kin =
        transfer.NearestTo(plan::AtSizes(graph::GroupOf(task.graph, node).region, task.sizes));
    if (!kin) return std::nullopt;
    std::optional<size_t> best;
    double least = 0;
    for (size_t i = 0; i < task.candidates.size(); ++i) {
      const Candidate& c = task.candidates[i];
      const Gaussian opinion = model_.Predict(c.features, c.algorithm->name, kin->kernel);
      const double price = c.predicted * std::exp(Transfer::Residual(*kin, c.Trace(), opinion));
      if (best && price >= least) continue;
      best = i;
      least = price;
    }
    return best;
  }

  // ---- Which next ----

  double SecondsOf(const TaskRun& run) const {
    if (run.state.best_seconds > 0) return run.state.best_seconds;
    const Candidate& c = run.task->candidates[run.incumbent];
    return c.predicted * std::exp(Opinion(run, c).mean);
  }
  Gaussian Opinion(const TaskRun& run, const Candidate& c) const {
    Gaussian out = model_.Predict(c.features, c.algorithm->name, run.task->kernel);
    const auto place = static_cast<size_t>(&c - run.task->candidates.data());
    if (!run.by_trees.empty()) out.mean += run.by_trees[place];
    return out;
  }

  void GrowTrees() {
    if (!trees_.Follow(model_)) return;
    state_.trees = trees_.are_there();
    for (auto& run : runs_) {
      std::vector<TreeInput> inputs;
      for (const Candidate& c : run.task->candidates)
        inputs.push_back({c.features, c.algorithm->name});
      run.by_trees = trees_.Predict(inputs);
    }
  }

  // ---- Kernels of open sizes ----

  std::vector<TaskRun*> SizesOf(const TaskRun& run) {
    std::vector<TaskRun*> out;
    for (auto& other : runs_) {
      const bool is_one = !run.task->open.empty() && other.task->open == run.task->open;
      if (is_one || &other == &run) out.push_back(&other);
    }
    return out;
  }

  // Seconds of one launch that are saved, as the whole has them. Plans hold each size against its
  // own best, so a part of one is as much as that part of another, and the sizes of a kernel count
  // together for what it takes.
  double Gain(const TaskRun& run, double seconds) {
    double whole = 0, own = SecondsOf(run);
    if (run.task->open.empty() || own <= 0) return run.state.Weighed(seconds);
    for (const TaskRun* other : SizesOf(run)) whole += other->task->weight * SecondsOf(*other);
    return run.state.Weighed(seconds) * whole / own;
  }

  // What a plan would take at this size of a point; as planning by the log has it (LogPrices).
  double PriceOf(const TaskRun& run, size_t place) const {
    const Candidate& c = run.task->candidates[place];
    const auto known = run.known.find(place);
    if (known != run.known.end())
      return known->second.outcome == kOk ? known->second.seconds : c.predicted * 1e3;
    const Gaussian residual = model_.Predict(c.features, c.algorithm->name, run.task->kernel);
    return c.predicted * std::exp(residual.mean + std::sqrt(residual.variance));
  }

  // A plan is chosen for all sizes together and may take at one of them what was never tried there.
  void FindTrusted(const TaskRun& run) {
    const std::vector<TaskRun*> runs = SizesOf(run);
    for (const TaskRun* r : runs) trusted_.erase(r);
    if (run.task->open.empty() || options_.exhaustive > 0) return;
    const graph::NodeId node = plan::FindKernel(run.task->graph, kFunction).value();
    const graph::Group group = graph::GroupOf(run.task->graph, node);
    const ops::Site site{group.region, group.anchor, machine_};
    std::vector<plan::SizedRegion> sizes;
    std::vector<double> least;
    std::map<std::string, std::vector<size_t>> places;  // of a trace, at each size that has it
    for (const TaskRun* r : runs) {
      plan::SizedRegion& size = sizes.emplace_back();
      size.weight = r->task->weight;
      for (const graph::Dim& d : group.region.dims)
        size.sizes.push_back(AsInt(r->task->sizes.at(d.var.get())).value_or(0));
      for (size_t i = 0; i < r->task->candidates.size(); ++i) {
        std::vector<size_t>& at = places[r->task->candidates[i].Trace()];
        if (at.size() + 1 == sizes.size()) at.push_back(i);
        if (least.size() < sizes.size()) least.push_back(PriceOf(*r, i));
        least.back() = std::min(least.back(), PriceOf(*r, i));
      }
    }
    std::map<const ops::Algorithm*, std::vector<plan::TimedPoint>> points;
    std::map<const ops::Algorithm*, std::vector<std::vector<size_t>>> at;  // their places
    for (const Candidate& c : run.task->candidates) {
      const std::vector<size_t>& everywhere = places.at(c.Trace());
      if (everywhere.size() < runs.size()) continue;
      plan::TimedPoint& p = points[c.algorithm].emplace_back(plan::TimedPoint{c.point, {}});
      for (size_t i = 0; i < runs.size(); ++i)
        p.seconds.push_back(PriceOf(*runs[i], everywhere[i]));
      at[c.algorithm].push_back(everywhere);
    }
    double cost = 0;
    std::vector<size_t> best;
    for (const ops::Algorithm* algorithm : ops::Algorithms()) {
      for (const plan::SizedPlan& p :
           plan::PlansAt(*algorithm, site, points[algorithm], sizes, least)) {
        if (!best.empty() && p.cost >= cost) continue;
        cost = p.cost;
        best.clear();
        for (size_t i = 0; i < runs.size(); ++i) best.push_back(at[algorithm][p.at[i]][i]);
      }
    }
    for (size_t i = 0; i < best.size(); ++i) {
      if (!runs[i]->tried.contains(best[i])) trusted_[runs[i]] = best[i];
    }
  }

  // What is expected of the run's points: its gain, and which of them to try.
  void Consider(TaskRun* run) {
    run->state.gain = 0;
    if (!run->state.trouble.empty()) return;
    if (options_.exhaustive > 0) return ConsiderCover(run);
    while (!run->leaders.empty() && run->tried.contains(run->leaders.back()))
      run->leaders.pop_back();
    const double seconds = SecondsOf(*run), best = std::log(seconds);
    double most = 0;
    for (size_t i = 0; i < run->task->candidates.size(); ++i) {
      const Candidate& c = run->task->candidates[i];
      if (run->tried.contains(i) || (i == run->incumbent && !run->bench.is_open())) continue;
      Gaussian time = Opinion(*run, c);
      time.mean += std::log(std::max(c.predicted, 1e-12));
      const double gain = ExpectedImprovement(best, time);
      if (gain <= most) continue;
      most = gain;
      run->next = i;
    }
    // Leaders are tried whatever the model thinks of them: it learns from what differs.
    if (!run->leaders.empty()) run->next = run->leaders.back();
    run->state.gain = Gain(*run, most * seconds);
    // What a plan of open sizes would take on trust may be slower than what was measured.
    const auto trusted = trusted_.find(run);
    if (trusted == trusted_.end() || run->tried.contains(trusted->second)) return;
    const Candidate& c = run->task->candidates[trusted->second];
    run->next = trusted->second;
    run->state.gain =
        std::max(run->state.gain, Gain(*run, std::sqrt(Opinion(*run, c).variance) * seconds));
  }

  bool IsOver() {
    state_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    double whole = 0, gain = 0;
    for (const auto& run : runs_) {
      whole += run.state.Weighed(SecondsOf(run));
      gain += run.state.gain;
    }
    for (const Queued& q : queue_) gain += q.gain;
    state_.stopped =
        stop_ ? "it was interrupted" : options_.Reached(state_.trials, state_.seconds, unlucky_);
    if (state_.stopped.empty() && options_.stop_gain > 0 && gain < options_.stop_gain * whole) {
      state_.stopped =
          fmt::format("less than {:g} % is expected of more", 100 * options_.stop_gain);
    }
    return !state_.stopped.empty();
  }

  // ---- Records ----

  Record RecordHere() const {
    Record r;
    r.machine = options_.machine;
    r.target = target_;
    r.team = options_.team;
    r.cache = CacheState(options_.far_weights);
    return r;
  }
  Record RecordOf(const TaskRun& run, const Candidate& c) const {
    Record r = RecordHere();
    r.kernel = run.task->kernel;
    r.algorithm = c.algorithm->name;
    r.epoch = c.algorithm->epoch;
    r.point = graph::ChoicesText(c.point);
    r.predicted = c.predicted;
    return r;
  }

  // ---- A kernel's first choice ----

  // Another incumbent, where the one there was does not work.
  void NextChoice(TaskRun* run) {
    for (size_t i = 0; i < run->task->candidates.size(); ++i) {
      if (run->tried.contains(i)) continue;
      run->incumbent = i;
      return;
    }
    run->state.trouble = "no point of it works";
  }

  Status Open(Queued* first) {
    TaskRun* run = first->run;
    run->is_opening = false;
    if (first->reference) {
      const Status reference = run->bench.SetReference(first->reference);
      if (!reference) {
        if (!first->record.id.empty()) TN_RETURN_IF_ERROR(run->bench.Withdraw(first->record));
        return GiveUp(run, reference.errors()[0].message);
      }
    }
    const Candidate& c = run->task->candidates[first->place];
    Record& record = first->record;
    TN_RETURN_IF_ERROR(run->bench.Open(first->candidate, run->state.best_seconds, &record));
    Keep(*first);
    if (record.outcome != kOk) {
      if (++first_choices_[run] >= kMostFirstChoices) return GiveUp(run, record.message);
      NextChoice(run);
      Tell(run, fmt::format("{}: the first choice failed: {}", run->state.name, record.message));
      return Ok();
    }
    run->state.noise = record.noise;
    run->state.best_seconds = record.seconds;
    if (run->state.first_seconds <= 0 && first->place == run->task->chosen)
      run->state.first_seconds = record.seconds;
    run->state.best = c.Trace();
    Observe(*run, c, record.seconds);
    Tell(run, fmt::format("{}: {:.4g} µs, ± {:.2f} %  {}", run->state.name, 1e6 * record.seconds,
                          100 * record.noise, c.Trace()));
    return Ok();
  }

  Status GiveUp(TaskRun* run, const std::string& why) {
    run->state.trouble = why;
    Tell(run, fmt::format("{} is not tuned: {}", run->state.name, why));
    return Ok();
  }

  // ---- A trial ----

  Status Try(Queued* next) {
    TaskRun* run = next->run;
    const Candidate& c = run->task->candidates[next->place];
    Record& record = next->record;
    // The first choice, which was before it in the queue, failed: it has another turn.
    if (!run->bench.is_open()) {
      run->tried.erase(next->place);
      run->leaders.push_back(next->place);
      TN_RETURN_IF_ERROR(run->bench.Withdraw(record));
      Consider(run);
      return Ok();
    }
    ++run->state.trials;
    ++state_.trials;
    ++unlucky_;
    const double before = run->bench.seconds();
    TN_RETURN_IF_ERROR(run->bench.Try(next->candidate, &record));
    Keep(*next);
    std::string what;
    if (record.outcome != kOk) {
      ++run->state.failures;
      ++state_.failures;
      what = fmt::format("{}: {}", record.outcome, record.message);
    } else {
      what = fmt::format("{:.4g} µs, {:.3f} of the best{}", 1e6 * record.seconds,
                         record.seconds / before, record.leader ? ", the best now" : "");
      Observe(*run, c, record.seconds);
    }
    if (record.leader) {
      run->incumbent = next->place;
      run->state.best = c.Trace();
      run->state.best_seconds = record.seconds;
      unlucky_ = 0;
      TellSizes(*run, c.Trace());
    }
    Tell(run, fmt::format("{}: {}  {}", run->state.name, what, c.Trace()));
    return Ok();
  }

  // What leads at one size of a kernel is tried next at the others: one schedule may serve several.
  void TellSizes(const TaskRun& run, const std::string& trace) {
    if (run.task->open.empty()) return;
    for (auto& other : runs_) {
      if (&other == &run || other.task->open != run.task->open) continue;
      const auto& all = other.task->candidates;
      for (size_t i = 0; i < all.size(); ++i) {
        if (all[i].Trace() == trace && !other.tried.contains(i)) other.leaders.push_back(i);
      }
      Consider(&other);
    }
  }

  void Observe(const TaskRun& run, const Candidate& c, double seconds) {
    if (c.predicted > 0)
      model_.Add(c.features, c.algorithm->name, run.task->kernel, std::log(seconds / c.predicted));
  }

  void Tell(TaskRun* run, std::string event) {
    GrowTrees();
    FindTrusted(*run);
    for (TaskRun* size : SizesOf(*run)) Consider(size);
    if (state_.trials % kOpinionTrials == 0) {
      for (auto& other : runs_) Consider(&other);
    }
    state_.event = std::move(event);
    Show();
  }
  void Show() {
    state_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    state_.tasks.clear();
    for (const auto& run : runs_) state_.tasks.push_back(run.state);
    if (changed_) changed_(state_);
  }

  const std::vector<Relayout>& relayouts_;
  const Machine& machine_;
  const SessionOptions options_;
  Log* log_;
  const std::function<void(const SessionState&)>& changed_;
  const std::atomic<bool>& stop_;
  const std::string target_;
  const Clock::time_point start_ = Clock::now();
  std::vector<TaskRun> runs_;
  std::map<const TaskRun*, int> first_choices_;  // that failed
  // Of kernels of open sizes: what a plan by what is known would take there and nobody tried.
  std::map<const TaskRun*, size_t> trusted_;
  ResidualModel model_;
  GrowingTrees trees_;
  SessionState state_;
  std::deque<Queued> queue_;
  int64_t unlucky_ = 0;    // trials since the last new leader
  int64_t libraries_ = 0;  // written
  const BenchOptions bench_;
  BuildAhead ahead_;  // gone before what it builds
};

}  // namespace

std::vector<size_t> Leaders(const Task& task, size_t most) {
  // What is far dearer than the best is not worth its build.
  constexpr double kFar = 4;
  constexpr size_t kMostLayouts = 3;
  std::vector<size_t> out;
  std::set<size_t> structures, layouts;
  if (task.candidates.empty()) return out;
  for (size_t i = 0; i < task.candidates.size() && layouts.size() < kMostLayouts; ++i) {
    const Candidate& c = task.candidates[i];
    if (out.size() == most || c.predicted > kFar * task.candidates[0].predicted) break;
    if (!layouts.insert(c.layout).second) continue;
    structures.insert(c.structure);
    out.push_back(i);
  }
  for (size_t i = 0; i < task.candidates.size() && out.size() < most; ++i) {
    const Candidate& c = task.candidates[i];
    if (c.predicted > kFar * task.candidates[0].predicted) break;
    if (structures.insert(c.structure).second) out.push_back(i);
  }
  return out;
}

Expected<SessionState> RunSession(const Tasks& tasks, const Machine& machine,
                                  const SessionOptions& options, const SessionTools& tools,
                                  const std::string& folder, Log* log,
                                  const std::function<void(const SessionState&)>& changed,
                                  const std::atomic<bool>& stop) {
  return Session(tasks, machine, options, tools, folder, log, changed, stop).Run();
}

}  // namespace tenon::tune

// Tasks of tuning: users' functions of points, and their rules, as the driver takes them.
//
// What users write may throw, a Python exception among it; that passes through searchers and
// sessions as it is, which hold nothing that it could leave in disorder. Only where a schedule of
// one point is made does a tenon::Error mean that there is no such point.
#include <algorithm>
#include <atomic>
#include <set>

#include "driver/tune.h"
#include "driver/tune_kernel.h"
#include "driver/workbench.h"
#include "support/atomic_file.h"
#include "support/hash.h"
#include "tune/log.h"
// The façades' own come last (bridge.h).
#include "api/bridge.h"
#include "api/ir_data.h"
#include "tenon/tuning.hpp"

namespace tenon::inline v0::tuning {

struct TaskData {
  std::unique_ptr<driver::OpenKernel> kernel;
  std::string target;
};

namespace {

graph::Choices ChoicesOf(const Point& point) {
  graph::Choices out;
  for (const auto& [name, value] : point) out.push_back({name, value});
  return out;
}

Point PointOf(const graph::Choices& choices) {
  Point out;
  for (const graph::Choice& c : choices) out[c.name] = c.value;
  return out;
}

tune::Pick Inner(const driver::OpenKernel& kernel, const Pick& pick) {
  const auto& spaces = kernel.open().problem.spaces;
  if (pick.space < 0 || static_cast<size_t>(pick.space) >= spaces.size()) {
    ThrowValue(fmt::format("{} has {} spaces, but not the one of number {}", kernel.open().name,
                           spaces.size(), pick.space));
  }
  const auto space = static_cast<size_t>(pick.space);
  return {space, Take(spaces[space].PointOf(ChoicesOf(pick.point)))};
}

Pick Outer(const tune::Pick& pick) { return {static_cast<int>(pick.space), PointOf(pick.point)}; }

Trial Outer(const tune::Trial& trial) {
  const tune::Record& r = trial.record;
  return {Outer(trial.pick), r.algorithm, r.outcome, r.message,      r.seconds,
          r.predicted,       r.noise,     r.leader,  tune::ToLine(r)};
}

// What a point's schedule cannot do is an error of that point.
template <class F>
auto Caught(const F& make) -> Expected<decltype(make())> {
  try {
    return make();
  } catch (const Error& error) {
    return MakeError(error.what());
  }
}

// ---- Rules ----

// Choices that a user's rule has left open, as knobs of the draft.
void TakeChoices(sketch::Draft* draft, size_t first) {
  const auto& steps = draft->schedule.trace().steps;
  for (size_t i = first; i < steps.size(); ++i) {
    const TraceStep& step = steps[i];
    const auto* name = step.args.empty() ? nullptr : std::get_if<std::string>(&step.args[0]);
    if (!name || !inner::Schedule::IsChoice(step.primitive)) continue;
    if (step.primitive == "sample_perfect_tile") {
      int64_t extent = 1;
      std::vector<int64_t> values;
      for (const std::string& r : step.results) {
        values.push_back(std::stoll(r));
        extent *= values.back();
      }
      inner::Expr product;
      for (size_t k = 0; k < values.size(); ++k) {
        const std::string part = fmt::format("{}.{}", *name, k);
        const inner::Var var =
            draft->space.Add({part, sketch::Divisors(extent, extent), false, false});
        draft->vars[part] = var;
        product = product ? product * var : inner::Expr(var);
      }
      if (product) draft->Require(Eq(product, IndexConst(extent)));
      continue;
    }
    const auto* domain = std::get_if<std::vector<int64_t>>(&step.args[1]);
    if (!domain) continue;
    std::vector<int64_t> rising = *domain;
    std::sort(rising.begin(), rising.end());
    rising.erase(std::unique(rising.begin(), rising.end()), rising.end());
    draft->vars[*name] = draft->space.Add({*name, std::move(rising), false, false});
  }
}

sketch::Rule RuleOf(const SketchRule& rule) {
  if (!rule.ways || !rule.apply)
    ThrowValue(fmt::format("sketch rule '{}' lacks what it does or when", rule.name));
  const auto handle = [](const inner::Schedule& schedule) {
    auto data = std::make_shared<IrScheduleData>(schedule);
    data->func = schedule.func()->name;
    return data;
  };
  return {rule.name, rule.skip_others ? sketch::Then::kSkipOthers : sketch::Then::kTryOthers,
          [=](const sketch::Draft& draft, const std::string& block) {
            return rule.ways(IrSchedule(handle(draft.schedule)), block);
          },
          [=](sketch::Draft* draft, const std::string& block, int way) {
            const auto data = handle(draft->schedule);
            if (draft->point) {
              std::map<std::string, int64_t> given;
              for (const graph::Choice& c : *draft->point) given[c.name] = c.value;
              data->schedule.UseDecisions(std::move(given));
            }
            const size_t before = draft->schedule.trace().steps.size();
            try {
              IrSchedule schedule(data);
              rule.apply(schedule, block, way);
              draft->schedule = schedule.data()->schedule;
            } catch (const Error& error) {
              // At a point, what is not legal there; while deriving, a mistake of the rule.
              if (!draft->point)
                ThrowValue(fmt::format("sketch rule '{}' of block {}: {}", rule.name, block,
                                       error.what()));
              return draft->Refuse();
            }
            TakeChoices(draft, before);
          }};
}

// ---- Policies ----

class PolicySearcher : public tune::Searcher {
 public:
  PolicySearcher(Policy* policy, const driver::OpenKernel& kernel)
      : policy_(policy), kernel_(kernel) {}

  std::vector<tune::Pick> Next(size_t count) override {
    std::vector<tune::Pick> out;
    for (const Pick& pick : policy_->Next(static_cast<int>(count)))
      out.push_back(Inner(kernel_, pick));
    if (out.size() > count) out.resize(count);
    return out;
  }
  void Observe(const tune::Pick& pick, std::optional<double> seconds) override {
    policy_->Observe(Outer(pick), seconds);
  }
  void Hint(const tune::Pick&) override {}

 private:
  Policy* policy_;
  const driver::OpenKernel& kernel_;
};

driver::KernelTuning TuningOf(const Options& o) {
  driver::KernelTuning t;
  t.searcher = o.searcher;
  t.search.seed = o.seed;
  t.search.population = static_cast<size_t>(std::max(0, o.population));
  t.search.rounds = static_cast<size_t>(std::max(0, o.rounds));
  t.search.mutation = o.mutation;
  t.search.random_part = o.random_part;
  t.session.trials = o.trials;
  t.session.seconds = o.seconds;
  t.session.early_stopping = o.early_stopping;
  t.session.batch = std::max<int64_t>(1, o.batch);
  t.session.bench.race_seconds = o.candidate_seconds;
  t.log = o.log;
  t.teachers = o.teachers;
  t.worker.most_bytes = o.worker_bytes;
  t.worker.time_limit = o.worker_seconds;
  return t;
}

// The records of a log's lines, which trials came from.
tune::LogContents ContentsOf(const std::vector<Trial>& trials) {
  std::string lines;
  for (const Trial& t : trials) lines += t.line;
  return tune::ParseLines(lines, "trials");
}

}  // namespace

// ---- Tasks ----

namespace {

ops::Space SpaceOf(const std::vector<Knob>& knobs) {
  ops::Space space;
  std::set<std::string> names;
  for (const Knob& k : knobs) {
    if (k.domain.empty())
      ThrowValue(fmt::format("knob '{}': there is nothing to choose from", k.name));
    if (!std::is_sorted(k.domain.begin(), k.domain.end()))
      ThrowValue(fmt::format("knob '{}': its domain does not rise", k.name));
    if (!names.insert(k.name).second) ThrowValue(fmt::format("knob '{}' is there already", k.name));
    space.Add({k.name, k.domain, false, true});
  }
  return space;
}

std::shared_ptr<TaskData> DataOf(Expected<std::unique_ptr<driver::OpenKernel>> kernel,
                                 const Target& target) {
  auto data = std::make_shared<TaskData>();
  data->kernel = Take(std::move(kernel));
  data->target = target.str();
  return data;
}

}  // namespace

Task Task::FromSpace(const std::string& name, const IrModule& definition,
                     const std::vector<Knob>& space,
                     const std::function<IrModule(const Point&)>& make, const Target& target) {
  auto made = [make](const ops::Point& point) {
    return Caught(
        [&] { return WithImplementations(WithRequirements(make(PointOf(point)).data())); });
  };
  return Task(DataOf(
      driver::OpenKernel::OfTemplate(name, definition.data().module,
                                     Machine::Of(target.data().target), SpaceOf(space), made),
      target));
}

Task Task::FromTemplate(const std::string& name, const IrModule& definition, const Template& make,
                        const Target& target) {
  Config config;
  try {
    make(config);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("template '{}': {}", name, error.what()));
  }
  return FromSpace(
      name, definition, config.knobs(),
      [make](const Point& point) {
        Config chosen(point);
        return make(chosen);
      },
      target);
}

Task Task::FromSketches(const IrModule& definition, const Target& target,
                        const SketchOptions& options) {
  std::vector<sketch::Rule> rules;
  for (const SketchRule& rule : options.rules) rules.push_back(RuleOf(rule));
  return Task(DataOf(driver::OpenKernel::OfSketches(
                         definition.data().module, Machine::Of(target.data().target),
                         std::move(rules), static_cast<size_t>(std::max(1, options.most))),
                     target));
}

std::string Task::name() const { return data_->kernel->open().name; }
std::string Task::text() const { return data_->kernel->open().text; }
std::string Task::kernel() const { return data_->kernel->open().problem.kernel; }
Target Task::target() const { return Target(data_->target); }
std::vector<std::string> Task::algorithms() const {
  return data_->kernel->open().problem.algorithms;
}

static const ops::Space& SpaceAt(const driver::OpenKernel& kernel, int index) {
  const auto& spaces = kernel.open().problem.spaces;
  if (index < 0 || static_cast<size_t>(index) >= spaces.size())
    ThrowValue(fmt::format("{} has {} spaces", kernel.open().name, spaces.size()));
  return spaces[static_cast<size_t>(index)];
}

std::vector<Knob> Task::space(int index) const {
  std::vector<Knob> out;
  for (const ops::Knob& k : SpaceAt(*data_->kernel, index).knobs())
    out.push_back({k.name, k.domain});
  return out;
}
int64_t Task::size(int index, int64_t most) const {
  return SpaceAt(*data_->kernel, index).Count(most);
}

std::optional<double> Task::Price(const Pick& pick) const {
  const auto quote = data_->kernel->open().problem.price(Inner(*data_->kernel, pick));
  return quote ? std::optional(quote->seconds) : std::nullopt;
}
Pick Task::Guess(int space) const {
  SpaceAt(*data_->kernel, space);
  const sketch::Sketches* sketches = data_->kernel->sketches();
  if (!sketches) ThrowValue(fmt::format("template '{}' has no guesses", name()));
  const auto i = static_cast<size_t>(space);
  return Outer(tune::Pick{i, sketches->all()[i].guess});
}
std::vector<Pick> Task::Leaders(uint64_t seed, int count) const {
  tune::SearchOptions options;
  options.seed = seed;
  const auto searcher =
      Take(tune::MakeSearcher("improvement", data_->kernel->open().problem, options));
  std::vector<Pick> out;
  for (const tune::Pick& pick : searcher->Next(static_cast<size_t>(std::max(0, count))))
    out.push_back(Outer(pick));
  return out;
}
std::optional<Pick> Task::Predicted(uint64_t seed, int tried) const {
  const auto pick = data_->kernel->Predicted(seed, static_cast<size_t>(std::max(1, tried)));
  return pick ? std::optional(Outer(*pick)) : std::nullopt;
}
IrModule Task::At(const Pick& pick) const {
  return WrapScheduled(Take(data_->kernel->ModuleAt(Inner(*data_->kernel, pick))));
}
IrSchedule Task::ScheduleAt(const Pick& pick) const {
  const sketch::Sketches* sketches = data_->kernel->sketches();
  if (!sketches) ThrowValue(fmt::format("template '{}' makes its schedules itself", name()));
  const tune::Pick inner = Inner(*data_->kernel, pick);
  auto data = std::make_shared<IrScheduleData>(Take(sketches->At(inner.space, inner.point)));
  data->func = data->schedule.func()->name;
  return IrSchedule(data);
}

Result Task::Tune(const Options& options) const {
  driver::KernelTuning tuning = TuningOf(options);
  std::unique_ptr<PolicySearcher> policy;
  if (options.policy) {
    policy = std::make_unique<PolicySearcher>(options.policy, *data_->kernel);
    tuning.policy = policy.get();
  }
  for (const Pick& hint : options.hints) tuning.hints.push_back(Inner(*data_->kernel, hint));
  tuning.before = tune::TrialsOf(ContentsOf(options.before), data_->kernel->open(),
                                 driver::TeamOf(Machine::Of(data_->kernel->target())));
  std::atomic<bool> stop = false;
  tuning.done = [&](const tune::Trial& trial, const tune::KernelState&) {
    if (options.done) options.done(Outer(trial));
    if (options.stop && options.stop()) stop = true;
  };
  const tune::KernelState state = Take(driver::TuneKernel(*data_->kernel, tuning, stop));
  return {Outer(state.best), state.best_seconds, state.trials,
          state.failures,    state.seconds,      state.stopped};
}

std::vector<Trial> Task::ReadTrials(const std::string& log,
                                    std::vector<std::string>* skipped) const {
  const tune::LogContents contents = Take(tune::ReadLog(log));
  if (skipped) {
    for (const Diagnostic& d : contents.skipped) skipped->push_back(d.ToString());
  }
  std::vector<Trial> out;
  for (const tune::Trial& t : tune::TrialsOf(contents, data_->kernel->open(),
                                             driver::TeamOf(Machine::Of(data_->kernel->target()))))
    out.push_back(Outer(t));
  return out;
}

std::string Task::KernelLine() const { return tune::KernelLine(kernel(), text()); }

// ---- Networks ----

std::vector<ModelKernel> ModelKernels(const std::string& model, const ModelOptions& options) {
  std::vector<ModelKernel> out;
  const tune::Tasks tasks = Take(driver::KernelsOf(CompileOptionsOf(model, options)));
  for (const tune::Task& t : tasks.tasks) {
    out.push_back(
        {t.name, t.kind, t.kernel, t.launches, static_cast<int64_t>(t.candidates.size())});
  }
  return out;
}

Result TuneModel(const std::string& model, const ModelOptions& options, const Options& tuning,
                 const std::vector<std::string>& only,
                 const std::function<void(const std::string&)>& done) {
  driver::TuneOptions how;
  how.how = CompileOptionsOf(model, options);
  how.how.log = "";
  how.only = only;
  how.log = tuning.log;
  if (how.log.empty()) ThrowValue("where do records go? a session over a model needs a log");
  how.session.trials = tuning.trials;
  how.session.seconds = tuning.seconds;
  how.session.early_stopping = tuning.early_stopping;
  how.session.race_seconds = tuning.candidate_seconds;
  how.worker_seconds = tuning.worker_seconds;
  how.worker_bytes = tuning.worker_bytes;
  std::atomic<bool> stop = false;
  how.changed = [&](const tune::SessionState& state) {
    if (done) done(state.event);
    if (tuning.stop && tuning.stop()) stop = true;
  };
  const driver::TuneReport report = Take(driver::Tune(how, stop));
  return {{},
          0,
          report.state.trials,
          report.state.failures,
          report.state.seconds,
          report.state.stopped};
}

void MergeLog(const std::string& into, const std::string& from) {
  tune::Log log = Take(tune::Log::Open(into));
  Take(log.Merge(Take(tune::ReadLog(from))));
}

void AppendLines(const std::string& lines, const std::string& from) {
  std::set<std::string> known;
  std::string text;
  if (Expected<std::string> before = ReadFile(lines)) {
    text = std::move(*before);
    for (const tune::Record& r : tune::ParseLines(text, lines).records) known.insert(r.id);
  }
  if (!text.empty() && text.back() != '\n') text += '\n';
  tune::LogContents contents = Take(tune::ReadLog(from));
  std::erase_if(contents.records, [&](const tune::Record& r) { return known.contains(r.id); });
  if (!contents.records.empty()) Take(WriteFile(lines, text + tune::ToLines(contents)));
}

std::vector<std::string> Searchers() { return tune::SearcherNames(); }

}  // namespace tenon::inline v0::tuning

#include "driver/tune_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "driver/workbench.h"
#include "loop/parse.h"
#include "loop/print.h"
#include "loop/rewrite.h"
#include "sketch/work.h"
#include "support/hash.h"
#include "support/strings.h"

namespace tenon::driver {

namespace {

// The function that is not of kind device.
Expected<Func> OnlyKernel(const Module& module) {
  Func found;
  for (const auto& [name, f] : module.funcs) {
    if (f->func_kind == FuncKind::kDevice) continue;
    if (found)
      return MakeError(fmt::format("which function is to be tuned? the module has {} and {}",
                                   found->name, name));
    found = f;
  }
  if (!found) return MakeError("the module has no function to be tuned");
  return found;
}

// The function alone to be called, as `kFunction`.
Expected<Module> AsKernel(const Module& module) {
  TN_ASSIGN_OR_RETURN(const Func func, OnlyKernel(module));
  Module out = module;
  PrimFunc fields(*func);
  fields.name = tune::kFunction;
  fields.attrs.Set("exported", true);
  out.funcs.erase(func->name);
  out.Add(PrimFunc::Make(std::move(fields)));
  return out;
}

Expected<tune::LoweredCandidate> Lowered(const Module& module) {
  tune::LoweredCandidate out;
  TN_ASSIGN_OR_RETURN(out.module, AsKernel(module));
  TN_ASSIGN_OR_RETURN(out.parameters, tune::ParametersOf(*out.module.Find(tune::kFunction)));
  return out;
}

// Others that teach, and trials of each: pricing one by its schedule takes milliseconds.
constexpr size_t kMostTeachers = 8, kMostLessons = 50, kMostSketches = 64;

// The kernels of a log, but for this one, whose sketches were measured; those with most trials
// first.
std::vector<std::string> TeachersIn(const tune::LogContents& contents, const std::string& kernel) {
  std::map<std::string, int64_t> trials;
  for (const tune::Record& r : contents.records) {
    if (r.outcome == tune::kOk && r.kernel != kernel &&
        r.algorithm.starts_with(tune::kSketchPrefix))
      ++trials[r.kernel];
  }
  std::vector<std::string> out;
  for (const auto& [other, count] : trials) out.push_back(other);
  std::stable_sort(out.begin(), out.end(), [&](const std::string& a, const std::string& b) {
    return trials[a] > trials[b];
  });
  if (out.size() > kMostTeachers) out.resize(kMostTeachers);
  return out;
}

// A kernel's function as its text has it, for the machine.
Expected<sketch::Sketches> SketchesOf(const std::string& text, const Machine& machine) {
  TN_ASSIGN_OR_RETURN(Module module, ParseModule(text));
  for (const auto& [name, func] : Module(module).funcs) {
    PrimFunc fields(*func);
    fields.target = *machine.target;
    module.Add(PrimFunc::Make(std::move(fields)));
  }
  TN_ASSIGN_OR_RETURN(const Func func, OnlyKernel(module));
  return sketch::Sketches::Of(module, func->name, machine, {}, kMostSketches);
}

// What predictions of other kernels were wrong by. Rules of users made some of their sketches:
// those are not known here.
void LearnFromOthers(const tune::LogContents& contents, const tune::OpenKernel& kernel,
                     const Machine& machine, int64_t team, tune::ResidualModel* model) {
  for (const std::string& hash : TeachersIn(contents, kernel.problem.kernel)) {
    const auto text = contents.kernels.find(hash);
    if (text == contents.kernels.end() || HashText(text->second).ToHex() != hash) continue;
    const Expected<sketch::Sketches> sketches = SketchesOf(text->second, machine);
    if (!sketches) continue;
    tune::OpenKernel other{.machine = kernel.machine, .target = kernel.target};
    other.epoch = sketch::kEpoch;
    other.problem.kernel = hash;
    for (const sketch::Sketch& s : sketches->all()) {
      other.problem.algorithms.push_back(tune::kSketchPrefix + s.name);
      other.problem.spaces.push_back(s.space);
    }
    size_t lessons = 0;
    for (const tune::Trial& t : tune::TrialsOf(contents, other, team)) {
      if (t.record.outcome != tune::kOk) continue;
      if (lessons++ == kMostLessons) break;
      const auto work = sketches->WorkAt(t.pick.space, t.pick.point);
      const double price = work ? EstimateSeconds(*work, machine) : 0;
      if (price <= 0) continue;
      model->Add(tune::FeaturesOf(*work, machine), t.record.algorithm, hash,
                 std::log(t.record.seconds / price));
    }
  }
}

}  // namespace

Status OpenKernel::Describe(const std::string& name) {
  TN_ASSIGN_OR_RETURN(const Module kernel, AsKernel(definition_));
  open_.name = name;
  open_.text = Print(kernel);
  open_.machine = MachineKeyOf(target_);
  open_.target = target_.ToString();
  open_.problem.kernel = HashText(open_.text).ToHex();
  open_.problem.price = [this](const tune::Pick& pick) -> std::optional<tune::Quote> {
    const std::string trace = open_.problem.Trace(pick);
    if (const auto known = prices_.find(trace); known != prices_.end()) return known->second;
    std::optional<tune::Quote> quote;
    if (const std::optional<WorkDescription> work = work_(pick))
      quote = {EstimateSeconds(*work, machine_), tune::FeaturesOf(*work, machine_)};
    return prices_[trace] = quote;
  };
  open_.problem.identity = [this](const tune::Pick& pick) {
    const Expected<Module> module = make_(pick);
    return module ? HashText(Print(*module)).ToHex() : open_.problem.Trace(pick);
  };
  if (guess_) {
    open_.problem.guess = [this](const tune::Pick& pick) -> std::optional<tune::Quote> {
      const std::optional<WorkDescription> work = guess_(pick);
      if (!work) return std::nullopt;
      return tune::Quote{EstimateSeconds(*work, machine_), tune::FeaturesOf(*work, machine_)};
    };
  }
  open_.lower = [this](const tune::Pick& pick) -> Expected<tune::LoweredCandidate> {
    TN_ASSIGN_OR_RETURN(const Module module, make_(pick));
    return Lowered(module);
  };
  open_.reference = [this] { return Lowered(definition_); };
  return Ok();
}

Expected<std::unique_ptr<OpenKernel>> OpenKernel::OfSketches(const Module& definition,
                                                             const Machine& machine,
                                                             std::vector<sketch::Rule> rules,
                                                             size_t most) {
  TN_ASSIGN_OR_RETURN(const Func func, OnlyKernel(definition));
  if (!func->dims.empty())
    return MakeError(fmt::format("function {} cannot be tuned: its sizes are open", func->name));
  std::unique_ptr<OpenKernel> out(new OpenKernel(machine, definition));
  out->open_.lowers_anywhere = rules.empty();  // rules of users belong to their thread
  TN_ASSIGN_OR_RETURN(
      sketch::Sketches sketches,
      sketch::Sketches::Of(definition, func->name, out->machine_, std::move(rules), most));
  out->sketches_ = std::make_unique<sketch::Sketches>(std::move(sketches));
  out->open_.epoch = sketch::kEpoch;
  sketch::Sketches* all = out->sketches_.get();
  for (const sketch::Sketch& s : all->all()) {
    out->open_.problem.algorithms.push_back(tune::kSketchPrefix + s.name);
    out->open_.problem.spaces.push_back(s.space);
  }
  out->make_ = [all](const tune::Pick& pick) -> Expected<Module> {
    TN_ASSIGN_OR_RETURN(const Schedule schedule, all->At(pick.space, pick.point));
    return schedule.module();
  };
  out->work_ = [all](const tune::Pick& pick) { return all->WorkAt(pick.space, pick.point); };
  bool numeric = true;
  for (size_t i = 0; i < all->all().size() && numeric; ++i)
    numeric = all->IsNumeric(i, all->all()[i].guess);
  if (numeric) {
    out->guess_ = [all](const tune::Pick& pick) { return all->GuessAt(pick.space, pick.point); };
  }
  TN_RETURN_IF_ERROR(out->Describe(func->name));
  return out;
}

Expected<std::unique_ptr<OpenKernel>> OpenKernel::OfTemplate(const std::string& name,
                                                             const Module& definition,
                                                             const Machine& machine,
                                                             ops::Space space, Make make) {
  std::unique_ptr<OpenKernel> out(new OpenKernel(machine, definition));
  out->open_.problem.algorithms = {tune::kTemplatePrefix + name};
  out->open_.problem.spaces = {std::move(space)};
  out->make_ = [make = std::move(make)](const tune::Pick& pick) { return make(pick.point); };
  OpenKernel* self = out.get();
  out->work_ = [self](const tune::Pick& pick) -> std::optional<WorkDescription> {
    const Expected<Module> module = self->make_(pick);
    const Expected<Func> func = module ? OnlyKernel(*module) : Expected<Func>(module.errors());
    if (!func) return std::nullopt;
    return sketch::WorkOf(**func, self->machine_);
  };
  TN_RETURN_IF_ERROR(out->Describe(name));
  return out;
}

std::optional<tune::Pick> OpenKernel::Predicted(uint64_t seed, size_t tried) const {
  tune::SearchOptions options;
  options.seed = seed;
  options.population = tried;
  const auto searcher = tune::MakeSearcher("improvement", open_.problem, options);
  const std::vector<tune::Pick> picks = (*searcher)->Next(1);
  if (picks.empty()) return std::nullopt;
  return picks[0];
}

Expected<tune::KernelState> TuneKernel(const OpenKernel& kernel, const KernelTuning& options,
                                       const std::atomic<bool>& stop) {
  const bool on_device = kernel.target().IsDevice();
  if (!on_device) TN_RETURN_IF_ERROR(CheckRunsHere(kernel.target()));
  measure::WorkerOptions worker = options.worker;
  worker.team = TeamOf(Machine::Of(kernel.target()));
  TN_ASSIGN_OR_RETURN(const std::unique_ptr<Workbench> bench,
                      Workbench::Make(kernel.target(), worker, options.jobs));
  tune::KernelOptions session = options.session;
  session.bench.tools = &bench->tools();
  session.bench.folder = bench->folder();
  session.bench.team = worker.team;
  if (on_device) session.bench.device = std::string(kernel.target().kind().name);
  // Where there is no device a few candidates are built, to see that they can be.
  constexpr int64_t kBuiltWithoutDevice = 8;
  TN_ASSIGN_OR_RETURN(const std::string no_device, bench->FindDevice());
  if (!no_device.empty()) {
    session.trials =
        session.trials > 0 ? std::min(session.trials, kBuiltWithoutDevice) : kBuiltWithoutDevice;
  }
  std::vector<tune::Trial> before = options.before;
  std::vector<tune::LogContents> logs;  // that teach
  for (const std::string& path : options.teachers) {
    if (Expected<tune::LogContents> contents = tune::ReadLog(path))
      logs.push_back(*std::move(contents));
  }
  std::optional<tune::Log> log;
  if (!options.log.empty()) {
    TN_ASSIGN_OR_RETURN(tune::Log opened, tune::Log::Open(options.log));
    log.emplace(std::move(opened));
    session.bench.log = &*log;
    TN_ASSIGN_OR_RETURN(tune::LogContents contents, log->Read());
    for (tune::Trial& t : tune::TrialsOf(contents, kernel.open(), worker.team, &session.suspects))
      before.push_back(std::move(t));
    logs.push_back(std::move(contents));
  }
  tune::Searcher* searcher = options.policy;
  std::unique_ptr<tune::Searcher> made;
  if (!searcher) {
    tune::SearchOptions search = options.search;
    if (!search.model) {
      search.model = std::make_shared<tune::ResidualModel>();
      for (const tune::LogContents& contents : logs)
        LearnFromOthers(contents, kernel.open(), kernel.machine(), worker.team, search.model.get());
    }
    TN_ASSIGN_OR_RETURN(made, tune::MakeSearcher(options.searcher, kernel.open().problem, search));
    searcher = made.get();
    session.asks_early = true;
  }
  for (const tune::Pick& hint : options.hints) searcher->Hint(hint);
  Expected<tune::KernelState> state =
      tune::TuneKernel(kernel.open(), searcher, session, before, options.done, stop);
  if (!state && log) return tune::WithKept(std::move(state.errors()), options.log);
  if (!state) return state;
  if (!no_device.empty()) state->stopped = no_device;
  return state;
}

}  // namespace tenon::driver

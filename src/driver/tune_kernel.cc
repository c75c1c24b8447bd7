#include "driver/tune_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/workbench.h"
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
                      Workbench::Make(kernel.target(), worker));
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
  std::optional<tune::Log> log;
  if (!options.log.empty()) {
    TN_ASSIGN_OR_RETURN(tune::Log opened, tune::Log::Open(options.log));
    log.emplace(std::move(opened));
    session.bench.log = &*log;
    TN_ASSIGN_OR_RETURN(const tune::LogContents contents, log->Read());
    for (tune::Trial& t : tune::TrialsOf(contents, kernel.open(), worker.team))
      before.push_back(std::move(t));
  }
  tune::Searcher* searcher = options.policy;
  std::unique_ptr<tune::Searcher> made;
  if (!searcher) {
    TN_ASSIGN_OR_RETURN(
        made, tune::MakeSearcher(options.searcher, kernel.open().problem, options.search));
    searcher = made.get();
  }
  for (const tune::Pick& hint : options.hints) searcher->Hint(hint);
  TN_ASSIGN_OR_RETURN(tune::KernelState state, tune::TuneKernel(kernel.open(), searcher, session,
                                                                before, options.done, stop));
  if (!no_device.empty()) state.stopped = no_device;
  return state;
}

}  // namespace tenon::driver
